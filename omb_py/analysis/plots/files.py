"""Where figures are written to, and what is not overwritten."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from omb_py.analysis.plots.figures import Picture, draw
from omb_py.analysis.plots.style import FORMATS, Page, image
from omb_py.core.errors import OmbError, UsageError
from omb_py.core.text.files import failing
from omb_py.core.text.files import write as write_file

MARKS = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<svg"}
BEGINNING = 4096
"""Bytes of a file in which a mark of its format stands."""


def targets(
    names: Sequence[str], output: str | None, formats: Sequence[str]
) -> dict[Path, tuple[str, str]]:
    """The figure and the format of each file to write.

    ``output`` is a folder, or a file for exactly one figure; None is the folder that one is in.
    ``formats`` may be empty: that of the file, else PNG. Raises `UsageError` when several figures
    or formats should go into one file, or for a suffix that is no format.
    """
    path = Path(output or ".")
    suffix = path.suffix.lower().removeprefix(".")
    is_folder = output is None or output.endswith("/") or path.is_dir() or not suffix
    if is_folder:
        return {
            path / f"{name}.{form}": (name, form) for name in names for form in formats or ["png"]
        }
    if suffix not in FORMATS:
        raise UsageError(f"{path}: a figure is {', '.join(FORMATS)}; a folder's name ends with /")
    if list(formats) not in ([], [suffix]):
        raise UsageError(f"{path} is one file, not {' and '.join(formats)}: name a folder")
    if len(names) > 1:
        shown = ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
        raise UsageError(
            f"{len(names)} figures ({shown}) do not go into one file: name a folder, "
            "or choose one with --where and --kind"
        )
    return {path: (names[0], suffix)}


def write(
    pictures: Mapping[str, Picture],
    files: Mapping[Path, tuple[str, str]],
    binary: bool = False,
    page: Page | None = None,
) -> Iterable[Path]:
    """Write pictures to their files, as `write_figures` does."""
    return write_figures(lambda name: draw(pictures[name], binary, page), files)


def write_figures(
    draw: Callable[[str], Figure], files: Mapping[Path, tuple[str, str]]
) -> Iterable[Path]:
    """Write figures, drawn by their names, to their files; yields each file that is written.

    Folders are made. Raises `OmbError`, before anything is written, when a file is there that is
    no image of that format, and when one cannot be written.
    """
    for path, (_, form) in files.items():
        if not check_replaceable(path, form):
            raise OmbError(f"{path} is there and is no {form.upper()} file: name another with -o")
    made = ""
    for path, (name, form) in files.items():
        if name != made:
            figure = draw(name)
            made = name
        write_file(path, image(figure, form))
        yield path


def check_replaceable(path: Path, form: str) -> bool:
    """Whether nothing is lost but an image when a file is written."""
    with failing("read", path):
        if not path.exists():
            return True
        if not path.is_file():
            return False
        with path.open("rb") as file:
            beginning = file.read(BEGINNING)
    return not beginning or MARKS[form] in beginning

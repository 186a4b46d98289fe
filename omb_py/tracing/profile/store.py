"""The files of a profile: which there are in the folder of a run, and reading any of them."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path

from omb_py.core.errors import UsageError
from omb_py.core.text import files
from omb_py.tracing.profile import formats, text
from omb_py.tracing.profile.profile import Profile
from omb_py.tracing.records import layout
from omb_py.tracing.records.reading import read
from omb_py.tracing.records.run import open_run, run_of

EXTREMES, ALL = "extremes", "all"
RANK_TEXT = re.compile(r"profile\.(\d+)\.txt")


def write(profile: Profile, folder: str | Path, ranks: str = EXTREMES) -> list[Path]:
    """Write the texts, the CSV and the JSON of a profile, and say which files these are.

    Texts are those of all ranks together and of rank 0 and the ranks with the minimum, the median
    and the maximum communication time, or with ``ranks`` "all" of every rank. Texts of other
    ranks, from an earlier look at the run, go away. Raises `OmbError` when one cannot be written.
    """
    folder = Path(folder)
    chosen = (
        [one.rank for one in profile.members] if ranks == ALL else representative_ranks(profile)
    )
    wanted = {folder / "profile.txt": _text(profile, None)}
    wanted |= {folder / f"profile.{rank}.txt": _text(profile, rank) for rank in chosen}
    wanted[folder / "profile.csv"] = formats.csv_text(profile)
    wanted[folder / "profile.json"] = formats.json_text(profile)
    for path, content in wanted.items():
        files.write(path, content)
    with files.failing("write to", folder):
        for path in folder.iterdir():
            if RANK_TEXT.fullmatch(path.name) and path not in wanted:
                path.unlink()
    return list(wanted)


def representative_ranks(profile: Profile) -> list[int]:
    """Rank 0 and those with the minimum, the median and the maximum communication time."""
    extremes = profile.extremes
    found = {one.rank for one in (extremes.minimum, extremes.median, extremes.maximum) if one}
    return sorted({0, *found} & {member.rank for member in profile.members})


def _text(profile: Profile, rank: int | None) -> str:
    out = io.StringIO()
    text.write(profile, rank, out)
    return out.getvalue()


RECORD, TEXT = "a record", "a profile of mpitrace"
FILES_OF_MPITRACE = "mpi_profile.*"
PACKED_TIMELINE = ".json.gz"
TIMELINE_BEGINS = b'{"displayTimeUnit"'


def load(paths: Sequence[str]) -> Profile:
    """The profile of one run, from its folder, its records, or mpitrace's files.

    Raises `UsageError` where there is none, where a file is damaged, and for several runs.
    """
    if not paths:
        raise UsageError("name the folder of a profile, or its files")
    if len(paths) == 1 and Path(paths[0]).is_dir():
        return _of_folder(Path(paths[0]))
    found = [file for path in paths for file in _files(Path(path))]
    kinds = {kind_of(file): str(file) for file in found}
    if len(kinds) > 1:
        (one, first), (other, second), *_ = kinds.items()
        raise UsageError(f"{first} is {one}, {second} is {other}: give files of one kind")
    (kind,) = kinds
    return _of_records(found) if kind == RECORD else _of_mpitrace(found)


def kind_of(path: Path) -> str:
    """What a file holds, from its first bytes; raises `UsageError` where it cannot be read."""
    files.check(path, UsageError)
    with files.failing("read", path, UsageError), path.open("rb") as file:
        start = file.read(64)
    if not start:
        raise UsageError(f"{path} is empty: what should have written it wrote nothing")
    if start.startswith(layout.MAGIC) or path.name.endswith(layout.SUFFIX):
        return RECORD
    if path.name.endswith(PACKED_TIMELINE) or start.startswith(TIMELINE_BEGINS):
        raise UsageError(
            f"{path} is a timeline: open it at https://ui.perfetto.dev, or name the run's folder"
        )
    if start.startswith((formats.MARK, b"{")):
        raise UsageError(
            f"{path} is written for other programs: name the run's folder, which has its records"
        )
    return TEXT


def _of_folder(folder: Path) -> Profile:
    from omb_py.tracing.profile import recorded

    if layout.record_paths(folder):
        return recorded.profile_of(open_run(folder))
    return load([str(file) for file in _files(folder)])


def _files(path: Path) -> list[Path]:
    """The file, or a folder's: records, or mpitrace's files."""
    if not path.is_dir():
        return [path]
    for pattern in (layout.PATTERN, FILES_OF_MPITRACE):
        if found := sorted(file for file in path.glob(pattern) if file.is_file()):
            return found
    raise UsageError(f"{path} holds no profile: name a folder that omb-py profile made")


def _of_records(files: Sequence[Path]) -> Profile:
    from omb_py.tracing.profile import recorded

    return recorded.profile_of(run_of(map(read, files)))


def _of_mpitrace(files: Sequence[Path]) -> Profile:
    from omb_py.tracing.profile import traced
    from omb_py.tracing.profile.mpitrace import RankFile, read_profile

    found: list[tuple[str, RankFile]] = [(str(file), read_profile(str(file))) for file in files]
    return traced.profile_of(found)

"""Tables, written for people as text or Markdown, and for programs as CSV, JSON or Parquet."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from omb_py.core.dataclass import dataclass
from omb_py.core.errors import UsageError, needing
from omb_py.core.text import files
from omb_py.core.text.words import behind, csv_cell, printable

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Group

FOR_PROGRAMS = ("csv", "json", "parquet")
"""Formats that contain only rows: standard output gets no other text with them."""

SUFFIXES = {
    ".txt": "text",
    ".md": "markdown",
    ".tex": "latex",
    ".csv": "csv",
    ".json": "json",
    ".parquet": "parquet",
    ".html": "html",
    ".prom": "prom",
}
"""The format of a file by the end of its name."""


@dataclass(frozen=True)
class Target:
    """The destination of a table: the file ``path``, or standard output, in a ``format``.

    ``force`` is true if the file's content is to be replaced.
    """

    format: str = "text"
    path: str | None = None
    force: bool = False

    @property
    def is_for_program(self) -> bool:
        """Return whether standard output may contain only the table."""
        return self.path is None and self.format in FOR_PROGRAMS


@dataclass(frozen=True)
class Sheet:
    """A table, and what to say above and below it. The first ``left`` columns are words.

    ``keys`` name the row of results that each row is about, for links of a page; ``benchmark`` is
    empty for a table of several.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    remarks: tuple[str, ...] = ()
    left: int = 1
    above: str = ""
    keys: tuple[Hashable, ...] = ()
    benchmark: str = ""


def target(
    path: str | None,
    format_: str | None,
    force: bool,
    formats: Sequence[str],
) -> Target:
    """Return the target that ``-o``, ``--format`` and ``--force`` ask for.

    Raises `UsageError` for a file that exists already, unless ``force``. Without a given format, it
    also raises it for a name that does not end in one of the command's ``formats``.
    """
    if path is None:
        if format_ == "parquet":
            raise UsageError("--format parquet is no text: name a file with --output")
        return Target(format_ or "text")
    found = format_ or SUFFIXES.get(Path(path).suffix)
    if found is None or found not in formats:
        known = ", ".join(suffix for suffix, kind in SUFFIXES.items() if kind in formats)
        raise UsageError(f"--output {path}: end its name in one of {known}, or add --format")
    files.refuse_existing([path], force)
    return Target(found, path, force)


def write(
    to: Target,
    made: Iterable[Sheet],
    rows: pd.DataFrame | None = None,
    notes: Iterable[str] = (),
    facts: Mapping[str, object] | None = None,
) -> None:
    """Write tables for people, or their ``rows`` for programs.

    ``notes`` stand below the tables. JSON is an object: ``facts`` about the table, and ``rows``.
    Raises `OmbError` when a file cannot be written.
    """
    if to.format in FOR_PROGRAMS:
        if rows is None:
            raise ValueError(f"there are no rows to write as {to.format}")
        write_content(to, content_of(rows, to.format, facts or {}))
    elif to.format in ("markdown", "latex"):
        write_content(to, (markdown if to.format == "markdown" else latex)(list(made), notes))
    elif to.path is None:
        on_console(list(made), notes, sys.stdout)
        sys.stdout.flush()  # a full disk is reported first
    else:
        write_content(to, plain(made, notes))


def write_content(to: Target, content: str | bytes) -> None:
    """Write a text or bytes to a target; raises `OmbError` when it cannot be written."""
    if to.path is not None:
        files.write(to.path, printable(content) if isinstance(content, str) else content)
    elif isinstance(content, str):
        sys.stdout.write(content)
        sys.stdout.flush()
    else:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()


def content_of(rows: pd.DataFrame, format_: str, facts: Mapping[str, object]) -> str | bytes:
    """Return rows as the content of a CSV, JSON or Parquet file; only JSON contains ``facts``."""
    if format_ == "csv":
        import numpy as np

        rows = rows.rename(columns=lambda name: csv_cell(str(name)))
        for name, cells in rows.select_dtypes(["object", "string"]).items():
            escaped = [csv_cell(cell) if isinstance(cell, str) else cell for cell in cells]
            rows[name] = type(cells)(escaped, cells.index, cells.dtype)  # a whole number stays one
        with np.errstate(invalid="ignore"):  # NumPy 1 warns of missing values that become text
            return str(rows.to_csv(index=False))
    if format_ == "parquet":
        out = io.BytesIO()
        rows.to_parquet(out, index=False)
        return out.getvalue()
    return json.dumps({**facts, "rows": records(rows)}, indent=1, ensure_ascii=False) + "\n"


def records(rows: pd.DataFrame) -> list[dict[str, object]]:
    """Return rows as JSON has them; null for a missing value."""
    return list(json.loads(rows.to_json(orient="records", double_precision=15)))


def on_console(made: Sequence[Sheet], notes: Iterable[str], out: TextIO) -> None:
    """Print tables and notes for a terminal; elsewhere, and without rich, as wide as they are."""
    if not out.isatty() or find_spec("rich") is None:
        out.write(plain(made, notes))
        return
    from rich.console import Console

    Console(file=behind(out), highlight=False).print(rendered(made, notes))


def rendered(made: Sequence[Sheet], notes: Iterable[str] = ()) -> Group:
    """Return tables and notes as rich prints them on a terminal."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    def text(words: str, style: str = "") -> Text:
        return Text(printable(words), style=style)

    parts: list[Text | Table] = []
    for sheet in made:
        parts.append(text(sheet.title, "bold"))
        if sheet.above:
            parts.append(text(sheet.above, "dim"))
        table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for index, name in enumerate(sheet.columns):
            table.add_column(text(name), justify="left" if index < sheet.left else "right")
        if sheet.rows:
            for cells in without_repetitions(sheet.rows):
                table.add_row(*map(text, cells))
            parts.append(table)
        parts += [text(remark, "dim") for remark in sheet.remarks]
        parts.append(Text())
    return Group(*parts, *(text(f"Note: {sentence}", "yellow") for sentence in notes))


def plain(made: Iterable[Sheet], notes: Iterable[str]) -> str:
    """Return tables and notes as text, each as wide as it is."""
    lines: list[str] = []
    for sheet in made:
        lines += [sheet.title, *([sheet.above] if sheet.above else [])]
        rows = [sheet.columns, *without_repetitions(sheet.rows)]
        widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
        for cells in rows if sheet.rows else ():
            padded = (
                cell.ljust(width) if index < sheet.left else cell.rjust(width)
                for index, (cell, width) in enumerate(zip(cells, widths, strict=True))
            )
            lines.append((" " * 3).join(padded))
            if cells is sheet.columns:
                lines.append("─" * len(lines[-1]))
        lines += [*sheet.remarks, ""]
    lines += (f"Note: {sentence}" for sentence in notes)
    return "".join(f"{line}\n" for line in lines)


def markdown(made: Sequence[Sheet], notes: Iterable[str]) -> str:
    lines = []
    for sheet in made:
        lines += [f"## {sheet.title}", ""]
        if sheet.above:
            lines += [escaped(sheet.above), ""]
        if sheet.rows:
            marks = ["---" if i < sheet.left else "---:" for i in range(len(sheet.columns))]
            for cells in (sheet.columns, marks, *sheet.rows):
                lines.append(f"| {' | '.join(map(escaped, cells))} |")
            lines.append("")
        for remark in sheet.remarks:
            lines += [escaped(remark), ""]
    lines += [f"**Note:** {sentence}\n" for sentence in notes]
    return "\n".join(lines)


def latex(made: Iterable[Sheet], notes: Iterable[str]) -> str:
    """Return tables for LaTeX's package ``booktabs``; all else is in comments."""
    with needing("analysis"):
        import jinja2  # noqa: F401 - pandas writes LaTeX by it
        from pandas import DataFrame

    text = "% \\usepackage{booktabs}\n"
    for sheet in made:
        align = "l" * sheet.left + "r" * (len(sheet.columns) - sheet.left)
        table = DataFrame(sheet.rows, columns=sheet.columns)
        text += f"% {sheet.title}; {sheet.above}\n"
        text += table.to_latex(index=False, escape=True, column_format=align)
        text += "".join(f"% {remark}\n" for remark in sheet.remarks)
    return text + "".join(f"% Note: {sentence}\n" for sentence in notes)


def escaped(text: str) -> str:
    """Return text without Markdown's own characters in effect; underscores in words stay."""
    return re.sub(r"[\\|*<`[]|\b_|_\b", r"\\\g<0>", text)


def without_repetitions(rows: Sequence[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """Yield rows whose first cell is empty if it is the same as above."""
    above = ""
    for first, *rest in rows:
        yield ("" if first == above else first, *rest)
        above = first

"""Tables with words around them: on a terminal, or as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TextIO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from omb_py.core.dataclass import dataclass

UNLIMITED = 10_000
"""Columns of what is not a terminal."""


@dataclass(frozen=True)
class Sheet:
    """A table, and what to say above and below it. The first ``left`` columns are words."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    remarks: tuple[str, ...] = ()
    left: int = 1
    above: str = ""


def write(made: Sequence[Sheet], kind: str, out: TextIO) -> None:
    """Tables as ``text`` or ``markdown``."""
    if kind == "markdown":
        out.write(markdown(made, ()))
    else:
        on_console(made, (), out)


def on_console(made: Sequence[Sheet], notes: Iterable[str], out: TextIO) -> None:
    """Tables and notes for a terminal; elsewhere as wide as they are."""
    console = Console(file=out, highlight=False)
    if not console.is_terminal:
        console = Console(file=out, highlight=False, width=UNLIMITED)
    for sheet in made:
        console.print(Text(sheet.title, style="bold"))
        if sheet.above:
            console.print(Text(sheet.above, style="dim"))
        table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for index, name in enumerate(sheet.columns):
            table.add_column(Text(name), justify="left" if index < sheet.left else "right")
        if sheet.rows:
            for cells in without_repetitions(sheet.rows):
                table.add_row(*map(Text, cells))
            console.print(table)
        for remark in sheet.remarks:
            console.print(Text(remark, style="dim"))
        console.print()
    for sentence in notes:
        console.print(Text(f"Note: {sentence}", style="yellow"))


def markdown(made: Sequence[Sheet], notes: Iterable[str]) -> str:
    """Tables and notes as Markdown."""
    lines = []
    for sheet in made:
        lines += [f"## {sheet.title}", ""]
        if sheet.above:
            lines += [escaped(sheet.above), ""]
        if sheet.rows:
            right = [i >= sheet.left for i in range(len(sheet.columns))]
            lines += [*markdown_rows(sheet.columns, sheet.rows, right), ""]
        for remark in sheet.remarks:
            lines += [escaped(remark), ""]
    lines += [f"**Note:** {sentence}\n" for sentence in notes]
    return "\n".join(lines)


def markdown_rows(
    columns: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[bool]
) -> Iterator[str]:
    """The lines of a Markdown table; ``right`` says which columns are aligned to the right."""
    marks = ["---:" if number else "---" for number in right]
    for cells in (columns, marks, *rows):
        yield f"| {' | '.join(map(escaped, cells))} |"


def escaped(text: str) -> str:
    """Text in which Markdown sees nothing of its own; underscores in words are no emphasis."""
    return re.sub(r"[\\|*<`[]|\b_|_\b", r"\\\g<0>", text)


def without_repetitions(rows: Sequence[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """Rows whose first cell is empty where it is the same as above."""
    above = ""
    for first, *rest in rows:
        yield ("" if first == above else first, *rest)
        above = first

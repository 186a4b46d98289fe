"""Our own CSV, in a file of its own or printed by a job among other things."""

from __future__ import annotations

import csv
import re
from collections.abc import Container, Iterator, Sequence

from omb_py.results import application
from omb_py.results.columns import KINDS, ORIGIN
from omb_py.results.readers import Found, Notes, Reader, Source, Table, blocks

METADATA = re.compile(r"# ([a-z][a-z0-9_ ]*): (.*)")
TABLES: dict[bytes, tuple[Container[str], set[str]]] = {
    b"run,benchmark,bytes,": (KINDS | ORIGIN, {"run", "benchmark", "bytes", "ranks"}),
    b"run,application,part,": (
        application.KINDS,
        {"run", "application", "part", "ranks", "cores", "host_cores", "scaling", "time_s"},
    ),
}
"""Beginnings of the headers of our two kinds of tables: the columns that are known, and those
without which there is no row."""


def read(source: Source) -> Iterator[Found]:
    """Yield all tables of our columns, with the metadata in the comments before them."""
    found = Found()
    notes = Notes(source, found.problems)
    table: Table | None = None
    run: dict[str, str] = {}
    index, place = 0, 0
    for block in blocks(source.content):
        for line in block.split(b"\n"):
            start, place = place, place + len(line) + 1
            if line.startswith(b"#"):
                run = comment(line.decode(errors="replace"), found, run)
            elif kind := next(filter(line.startswith, TABLES), None):
                names = tuple(line.decode(errors="replace").split(","))
                table = None
                if are_columns(names, *TABLES[kind], notes, index):
                    table = Table(source.path, names, source.content, [])
                    found.tables.append(table)
            elif table is None or not line:
                pass
            elif fields(line) != len(table.columns) or index == source.torn:
                notes.broken(index)
            else:
                extend(table, index + 1, start, place)
            index += 1
        index, place = index - 1, place - 1  # what follows a block's last newline is the next
    notes.finish()
    found.tables[:] = [table for table in found.tables if table.stretches]
    yield found


def comment(line: str, found: Found, run: dict[str, str]) -> dict[str, str]:
    """Return the run whose metadata goes on below a comment."""
    if line.startswith("# run: "):
        run = found.runs.setdefault(line.removeprefix("# run: ").strip(), {})
    if match := METADATA.fullmatch(line):
        run[match[1]] = match[2].strip()
    return run


def are_columns(
    names: Sequence[str], known: Container[str], required: set[str], notes: Notes, index: int
) -> bool:
    """Return whether a line names whole columns; note those that are unknown."""
    if not set(names) >= required or len(set(names)) != len(names):
        notes.add(index, "not a whole line of column names")
        return False
    if unknown := [name for name in names if name not in known]:
        text = f"unknown columns {', '.join(unknown)} are left out: another omb-py wrote them?"
        notes.add(index, text, lost=False)
    return True


def extend(table: Table, number: int, start: int, end: int) -> None:
    """Add a line to a table: to its last stretch if it follows that."""
    if table.stretches and table.stretches[-1][2] == start:
        number, start, _ = table.stretches.pop()
    table.stretches.append((number, start, end))


def fields(line: bytes) -> int:
    """Return the number of fields of a line."""
    if b'"' not in line:
        return line.count(b",") + 1
    try:
        return len(next(csv.reader([line.decode(errors="replace")], strict=True)))
    except csv.Error:
        return 0


READER = Reader("omb-py's CSV", tuple(TABLES), read)

"""Our own CSV, alone in a file or printed by a job among other things."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping

from omb_py.results.readers import Found, Source, Table
from omb_py.results.readers.formats.fixed_width import Notes
from omb_py.results.row import KINDS

METADATA = re.compile(r"# ([a-z][a-z0-9_ ]*): (.*)")
TOO_LONG = re.compile(r"\d{40}")
"""More digits than any column has, and than some conversions to numbers take."""

OF_BENCHMARKS = "run,benchmark,bytes,"
OF_APPLICATIONS = "run,application,part,"
"""What the headers of our two kinds of tables begin with."""


class CsvReader:
    """Tables below a header of our columns, with the metadata in the comments before them.

    ``header`` is what that begins with, ``kinds`` the kind of each column that is known,
    ``required`` those without which there is no row.
    """

    def __init__(
        self, name: str, header: str, kinds: Mapping[str, str], required: Iterable[str]
    ) -> None:
        self.name = name
        self.marks = (header.encode(),)
        self._header = header
        self._kinds = kinds
        self._required = set(required)

    def read(self, source: Source) -> Found:
        found = Found()
        notes = Notes(source, found.problems)
        table: Table | None = None
        run: dict[str, str] = {}
        last = len(source.lines) - 1
        for index, line in enumerate(source.lines):
            if line.startswith("#"):
                if line.startswith("# run: "):
                    run = found.runs.setdefault(line.removeprefix("# run: ").strip(), {})
                if match := METADATA.fullmatch(line):
                    run[match[1]] = match[2].strip()
            elif line.startswith((OF_BENCHMARKS, OF_APPLICATIONS)):
                ours = line.startswith(self._header)
                table = self._table(source, index, found) if ours else None
            elif table is None or not line:
                continue
            elif fields(line) != len(table.columns) or (source.torn and index == last):
                notes.add(index, broken(source, index, line, table))
            elif TOO_LONG.search(line):
                notes.add(index, "a number of too many digits, left out")
            else:
                table.lines.append(line)
                table.numbers.append(index + 1)
        notes.finish()
        found.tables[:] = [table for table in found.tables if table.lines]
        return found

    def _table(self, source: Source, index: int, found: Found) -> Table | None:
        names = tuple(source.lines[index].split(","))
        if not set(names) >= self._required or len(set(names)) != len(names):
            found.problems.append(source.problem(index, "not a whole line of column names"))
            return None
        unknown = [name for name in names if name not in self._kinds]
        if unknown:
            text = f"unknown columns {', '.join(unknown)} are left out: a newer omb-py wrote them?"
            found.problems.append(source.problem(index, text))
        table = Table(source.path, names, [], [])
        found.tables.append(table)
        return table


def fields(line: str) -> int:
    """How many fields a line has."""
    if '"' not in line:
        return line.count(",") + 1
    try:
        return len(next(csv.reader([line], strict=True)))
    except csv.Error:
        return 0


def broken(source: Source, index: int, line: str, table: Table) -> str:
    """What is wrong with a line below a header."""
    torn = source.torn and index == len(source.lines) - 1
    if torn or line.count(",") > len(table.columns) // 2:
        return "an incomplete row, left out"
    return "not a row, left out"


READER = CsvReader("omb-py's CSV", OF_BENCHMARKS, KINDS, ("run", "benchmark", "bytes", "ranks"))

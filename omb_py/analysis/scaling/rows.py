"""Tables that applications wrote, read back: a row for each run."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from math import isfinite
from pathlib import Path
from typing import Any

from omb_py.analysis.table import Paths, found_in, library
from omb_py.core.errors import OmbError
from omb_py.core.text import files
from omb_py.results.application import ApplicationRow
from omb_py.results.readers import Problem, content_of, source_of
from omb_py.results.readers.csv_table import OF_APPLICATIONS, CsvReader

REQUIRED = ("run", "application", "part", "ranks", "cores", "host_cores", "scaling", "time_s")

OPTIONAL = {one.name: str(one.type).endswith("| None") for one in fields(ApplicationRow)}
KINDS = {one.name: str(one.type).removesuffix(" | None") for one in fields(ApplicationRow)}

LEAST, MOST = 1e-9, 1e9
"""Seconds, speed-ups and counts beyond these are none."""

READER = CsvReader("omb-py's CSV of applications", OF_APPLICATIONS, KINDS, REQUIRED)


@dataclass(frozen=True)
class Run:
    """The row of an application as a whole, and the MPI library that it ran on.

    ``parts`` are the seconds of the application's own parts, such as the tests of a training.
    """

    row: ApplicationRow
    mpi: str
    parts: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Runs:
    """All that was read, and what was left out."""

    runs: tuple[Run, ...]
    problems: tuple[Problem, ...]


def load(paths: Paths) -> Runs:
    """Read files, and folders with all that is below them, of which other files are passed over.

    Raises `OmbError` when a file cannot be read or nothing of an application is found.
    """
    runs: list[Run] = []
    problems: list[Problem] = []
    named = [Path(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]
    for path in named:
        before = len(runs)
        for file in found_in(path, problems) if path.is_dir() else [path]:
            content = files.read(file) if path.is_dir() else content_of(file)
            runs += read(str(file), content, problems)
        if len(runs) == before:
            why = f"{problems[0]}; " if problems else ""
            raise OmbError(
                f"{why}{path} holds no results of applications: write them with "
                "omb-py APPLICATION --output FILE.csv"
            )
    once = {run.row.run: run for run in reversed(runs)}  # a log may hold what a table holds, too
    return Runs(tuple(reversed(once.values())), tuple(problems))


def read(path: str, content: bytes, problems: list[Problem]) -> Iterator[Run]:
    """The runs in a file's content whose results are right; never raises."""
    if not any(mark in content for mark in READER.marks):
        return
    (found,) = READER.read(source_of(path, content))
    problems += found.problems
    for table in found.tables:
        runs: dict[str, Run] = {}
        for number, line in table.lines():
            cells = dict(zip(table.columns, cells_of(line), strict=False))
            if cells.get("part"):
                note_part(runs, cells)
                continue
            row = whole_row(cells)
            if row is None:
                text = "a field is not what its column holds; left out"
                problems.append(Problem(path, number, text))
            elif row.check == "Fail":
                text = f"the result of {row.application} was wrong; left out"
                problems.append(Problem(path, number, text))
            else:
                mpi = library(found.runs.get(row.run, {}).get("mpi_library", ""))
                runs[row.run] = Run(row, mpi or "")
        yield from runs.values()


def note_part(runs: dict[str, Run], cells: dict[str, str]) -> None:
    """Add a part that takes time to its run, unless it is of one rank or of MPI calls."""
    run = runs.get(cells.get("run", ""))
    if run is None or cells.get("rank") or cells.get("calls"):
        return
    try:
        seconds = value_of("time_s", cells.get("time_s", ""))
    except ValueError:
        return
    if seconds is not None and 0 <= seconds <= MOST:
        run.parts[cells["part"]] = seconds


def cells_of(line: str) -> list[str]:
    """The cells of a line; none where it cannot be taken apart."""
    try:
        return next(csv.reader([line]))
    except csv.Error:
        return []


def whole_row(cells: dict[str, str]) -> ApplicationRow | None:
    """A row from its cells; None where one is not what its column holds."""
    try:
        row = ApplicationRow(**{name: value_of(name, cells.get(name, "")) for name in KINDS})
    except ValueError:
        return None
    counts = (row.ranks, row.nodes, row.host_cores, row.cores, row.threads)
    times = (row.time_s, row.time_low_s, row.time_high_s)
    speedups = (row.speedup, row.speedup_low, row.speedup_high)
    known = possible(times) and (possible(speedups) or not any(speedups))
    counted = all(0 < count <= MOST for count in counts)
    return row if known and counted and row.scaling in ("strong", "weak") else None


def possible(numbers: Iterable[float | None]) -> bool:
    """Whether all are there, and such as can be measured."""
    return all(number is not None and LEAST <= number <= MOST for number in numbers)


def value_of(name: str, cell: str) -> Any:
    """A cell's value; raises `ValueError` where its column does not hold such."""
    if not cell:
        if OPTIONAL[name] or KINDS[name] == "str":
            return None if OPTIONAL[name] else ""
        raise ValueError(f"{name} is empty")
    if KINDS[name] == "int":
        return int(cell)
    if KINDS[name] == "float":
        if not isfinite(value := float(cell)):
            raise ValueError(f"{name} is {cell}")
        return value
    return cell

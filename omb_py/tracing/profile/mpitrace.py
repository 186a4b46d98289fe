"""A profile from the files that mpitrace wrote: some ranks' calls, and rank 0's table of all.

A file has a table of routines, then for each routine that moves data a table of message sizes,
each row the average of a power of two; rank 0's has a table of all ranks, too. Whole lines are
taken, whatever stands between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

from omb_py.core.dataclass import replace, values
from omb_py.core.errors import UsageError
from omb_py.core.text import files
from omb_py.core.text.units import MEBIBYTE
from omb_py.core.text.words import other_ranks, some_ranks
from omb_py.results.readers import Source, source_of
from omb_py.tracing.profile.profile import (
    MPITRACE,
    CallStats,
    Extreme,
    Extremes,
    Profile,
    RankProfile,
    extremes_of,
)
from omb_py.tracing.records.layout import size_bin

JOB = re.compile(r"mpi_profile\.(.+)\.(\d+)")
"""Name of a file: job and rank."""

BEGINNING = re.compile(r"Data for MPI rank (\d{1,9}) of (\d{1,9}):(?: \(all communicators\))?")
NAME = r"(MPI_\w+(?: \(started\))?)"
COLUMNS = r"\s+#calls\s+avg\. bytes\s+time\(sec\)"
ROUTINES = re.compile(rf"MPI(?:-IO)? Routine{COLUMNS}")
SIZES = re.compile(NAME + COLUMNS)
PARTS = re.compile(r"(Data for communicator sizes .*)|Summary for on-node communication")
NUMBERS = r"(\d{1,12})\s+(\d{1,15}\.\d)\s+(\d{1,12}\.\d{3})"
ROUTINE = re.compile(rf"{NAME}\s+{NUMBERS}")
SIZE = re.compile(NUMBERS)
RANK = r"(?P<rank>\d{1,9})"
TIME = r"(?:\s+\d{1,12}\.\d\d)"
SWITCHES = r"\s+(?P<switches>\d{1,18})"
ON_HOST = rf"(?P<seconds>{TIME}{{4}})\s+(?P<MiB>\d{{1,12}}\.\d\d)(?:{SWITCHES})?"
OLDER = rf"(?P<seconds>{TIME}{{3}})\s+(?P<KiB>\d{{1,15}}){SWITCHES}"
"""Of an older mpitrace: without a host and the system's time."""

HEADS: dict[re.Pattern[str], re.Pattern[str] | None] = {
    SIZES: SIZE,
    ROUTINES: ROUTINE,
    **{
        re.compile(rf"taskid\s+{names}comm\(s\)\s.*"): re.compile(row)
        for names, row in (
            ("", RANK + OLDER),
            (r"host(?:name)?\s+", rf"{RANK}\s+(?P<host>\S+){ON_HOST}"),
            (r"host(?:name)?\s+cpu\s+", rf"{RANK}\s+(?P<host>\S+)\s+-?\d{{1,9}}{ON_HOST}"),
        )
    },
    re.compile(""): None,
}
"""Lines above tables, with the rows below them; an empty line has none."""

RULE = re.compile(r"-{5,}")

UNITS = {"MiB": MEBIBYTE, "KiB": 1024}
SECONDS = r"= (\d{1,12}\.\d{3}) seconds"
SYNCHRONIZATION = r" \(including synchronization\)"
TOTALS = tuple(
    (name, unit, re.compile(form))
    for name, unit, form in (
        ("communication_s", 1, rf"total communication time {SECONDS}(?:{SYNCHRONIZATION})?\."),
        ("elapsed_s", 1, rf"total elapsed time\s+{SECONDS}\."),
        ("user_s", 1, rf"user cpu time\s+{SECONDS}\."),
        ("system_s", 1, rf"system time\s+{SECONDS}\."),
        ("io_s", 1, rf"total MPI-IO time\s+{SECONDS}\."),
        ("memory_bytes", MEBIBYTE, r"max resident set size\s+= (\d{1,12}\.\d{3}) M(?:Bytes|iB)\."),
        ("memory_bytes", UNITS["KiB"], r"maximum memory size\s+= (\d{1,15}) KBytes\."),
    )
)
"""Values of `RankProfile`, their units, and their lines."""

POSITION = re.compile(r"MPI task (\d{1,9}) of \d{1,9} had the (\w+) communication time\.")
COMMUNICATION = re.compile(
    r"(minimum|median|maximum)\s+communication time = (\d{1,12}\.\d{3}) sec for task (\d{1,9})"
)
MOST = re.compile(
    r"Rank (\d{1,9}) reported the largest (memory utilization|elapsed time) : "
    r"(\d{1,12}\.\d\d) (?:MBytes|MiB|sec)"
)

MOST_OF = {"memory utilization": ("memory", MEBIBYTE), "elapsed time": ("elapsed", 1)}
"""Names of `Extremes`, and of the unit of their values."""

SECONDS_OF_TASKS = ("communication_s", "elapsed_s", "user_s", "system_s")
"""Columns of the table of ranks; an older mpitrace has no system time."""


class RoutineRow(NamedTuple):
    """A row of a table: calls of a routine with messages of ``nbytes`` on average."""

    routine: str
    calls: int
    nbytes: float
    seconds: float


@dataclass(frozen=True)
class RankFile:
    """The contents of the file of one rank of ``ranks``.

    ``others`` are the rows of the table of ranks, which only rank 0 has; ``extremes`` those that
    the file names, by the names of `Extremes`. ``notes`` are about contradictions and parts left
    out.
    """

    path: str
    ranks: int
    member: RankProfile
    others: tuple[RankProfile, ...]
    extremes: dict[str, Extreme]
    notes: tuple[str, ...]


def read_file(path: str) -> RankFile:
    """Return the profile in a file; raises `UsageError` if it cannot be read, or is not a
    profile."""
    return parse(source_of(path, files.read(path, UsageError)), path)


def parse(source: Source, path: str) -> RankFile:
    """Return the first profile among a file's lines; raises `UsageError` without one."""
    found = _Found()
    lines = list(source)
    torn = lines.pop() if source.torn is not None else ""
    for number, line in enumerate(map(str.strip, lines), 1):
        if found.ranks and BEGINNING.fullmatch(line):
            found.notes.append(f"another profile begins in line {number} and is left out")
            break
        found.take(line, number)
    if torn.strip():
        found.notes.append(f"line {len(lines) + 1} has no end and is left out")
    return found.file(path)


@dataclass
class _Found:
    """The parts found up to a line.

    ``table`` is the expression of the rows that are expected; those of ``skipped`` ones are of
    communicators of one size, or of a node. ``begun``: the next rule ends a table of routines, and
    is not the one under its head. ``places`` are the extremes that this rank has.
    """

    rank: int = -1
    ranks: int = 0
    told: dict[str, Any] = field(default_factory=dict)
    routines: list[RoutineRow] = field(default_factory=list)
    sizes: list[RoutineRow] = field(default_factory=list)
    others: list[RankProfile] = field(default_factory=list)
    extremes: dict[str, Extreme] = field(default_factory=dict)
    places: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    table: re.Pattern[str] | None = None
    routine: str = ""
    begun: bool = False
    skipped: set[re.Pattern[str]] = field(default_factory=set)

    def take(self, line: str, number: int) -> None:
        """Take a line: it is one of `LINES`, a row of the table that is open, or a total."""
        for form, handle in LINES:
            if match := form.fullmatch(line):
                handle(self, match)
                return
        if self.table is not None:
            self._row(line, number)
        else:
            self._total(line)

    def _beginning(self, match: re.Match[str]) -> None:
        self.rank, self.ranks = int(match[1]), int(match[2])

    def _part(self, match: re.Match[str]) -> None:
        parts = "each size of communicators" if match[1] else "communication on a node"
        note = f"its tables for {parts} are left out"
        self.notes += [] if note in self.notes else [note]
        self.skipped |= {ROUTINE} if match[1] else {ROUTINE, SIZE}  # a node has its own sizes

    def _head(self, match: re.Match[str]) -> None:
        rows = HEADS[match.re]
        self.table, self.begun = None if rows in self.skipped else rows, False
        self.routine = match[1] if rows is SIZE else ""

    def _rule(self, match: re.Match[str]) -> None:
        self.table = self.table if self.table is ROUTINE and not self.begun else None
        self.begun = True

    def _row(self, line: str, number: int) -> None:
        assert self.table is not None
        self.begun = True
        match = self.table.fullmatch(line)
        if match is None:
            self.notes.append(f"line {number} is no whole row of its table and is left out")
        elif self.table in (ROUTINE, SIZE):
            *name, calls, nbytes, seconds = match.groups()
            row = RoutineRow(
                name[0] if name else self.routine, int(calls), float(nbytes), float(seconds)
            )
            (self.routines if name else self.sizes).append(row)
        else:
            told = match.groupdict()
            times = map(float, told["seconds"].split())
            known: dict[str, Any] = dict(zip(SECONDS_OF_TASKS, times, strict=False))
            (memory,) = (float(told[one]) * size for one, size in UNITS.items() if one in told)
            switches = told["switches"] and int(told["switches"])
            known |= {"memory_bytes": memory, "switches": switches}
            self.others.append(RankProfile(int(told["rank"]), told.get("host"), **known))

    def _total(self, line: str) -> None:
        for name, unit, form in TOTALS:
            if match := form.fullmatch(line):
                self.told.setdefault(name, float(match[1]) * unit)
        if match := COMMUNICATION.fullmatch(line):
            self.extremes.setdefault(match[1], Extreme(float(match[2]), int(match[3])))
        if match := MOST.fullmatch(line):
            name, unit = MOST_OF[match[2]]
            self.extremes.setdefault(name, Extreme(float(match[3]) * unit, int(match[1])))
        if (match := POSITION.fullmatch(line)) and match[2] in ("minimum", "median", "maximum"):
            self.places.append(match[2])

    def file(self, path: str) -> RankFile:
        """Return all parts found, with contradictions among the notes."""
        if not self.ranks:
            raise UsageError(f"{path} is no profile that omb-py or mpitrace wrote")
        if self.rank >= self.ranks:
            raise UsageError(f"{path} is damaged: there is no rank {self.rank} of {self.ranks}")
        seconds = self.told.get("communication_s")
        own = {} if seconds is None else dict.fromkeys(self.places, Extreme(seconds, self.rank))
        every = {**own, **self.extremes}
        return RankFile(
            path,
            self.ranks,
            RankProfile(self.rank, cells=tuple(self._cells()), **self.told),
            tuple(one for one in self.others if one.rank < self.ranks),
            {name: one for name, one in every.items() if one.rank < self.ranks},
            (*self.notes, *self._disagreements()),
        )

    def _cells(self) -> Iterator[CallStats]:
        """Yield calls by size; those of each routine that no table of sizes has come with their
        mean."""
        for row in self.sizes:
            if row.calls:
                yield _cell(row, size_bin(ceil(row.nbytes)))
        for row in self.routines:
            sized = [size for size in self.sizes if size.routine == row.routine]
            calls = row.calls - sum(size.calls for size in sized)
            if sized and calls > 0:
                rest = row.calls * row.nbytes - sum(size.calls * size.nbytes for size in sized)
                seconds = row.seconds - sum(size.seconds for size in sized)
                mean = max(0.0, rest) / calls
                row = RoutineRow(row.routine, calls, mean, max(0.0, seconds))
            if calls > 0:
                yield _cell(row, None)

    def _disagreements(self) -> Iterator[str]:
        """Routines whose sizes are not those of all their calls."""
        for row in self.routines:
            sized = sum(size.calls for size in self.sizes if size.routine == row.routine)
            if sized != row.calls and (sized or row.nbytes):
                known = f"sizes are known for {sized} of {row.calls} calls of {row.routine}"
                yield f"{known}: the others have their mean" if sized < row.calls else known


LINES = (
    (BEGINNING, _Found._beginning),
    (PARTS, _Found._part),
    *((form, _Found._head) for form in HEADS),
    (RULE, _Found._rule),
)
"""The lines between the rows of tables, of which a line is one at most, and what takes them."""


def _cell(row: RoutineRow, bin: int | None) -> CallStats:
    nbytes = row.calls * row.nbytes
    return CallStats(row.routine, None, None, bin, None, row.calls, nbytes, row.seconds)


def profile_of(found: Sequence[RankFile]) -> Profile:
    """Return the profile of one run from its files; raises `UsageError` for files of several
    runs."""
    by_rank: dict[int, RankFile] = {}
    for file in found:
        other = by_rank.setdefault(file.member.rank, file)
        if other is not file:
            raise UsageError(
                f"{other.path} and {file.path} are both of rank {file.member.rank}: "
                "give the files of one run"
            )
    names = (JOB.fullmatch(Path(file.path).name) for file in found)
    size = found[0].ranks
    if {file.ranks for file in found} != {size} or len({name[1] for name in names if name}) > 1:
        raise UsageError("these files are of several runs: give the files of one run")
    rows: dict[int, RankProfile] = {}
    extremes: dict[str, Extreme] = {}
    for file in found:
        rows = {row.rank: row for row in reversed(file.others)} | rows
        extremes |= file.extremes
    files_of = {rank: file.member for rank, file in by_rank.items()}
    members = [_merged(files_of.get(rank), rows.get(rank)) for rank in sorted({*files_of, *rows})]
    made = extremes_of(members) if len(members) == size else Extremes()
    return Profile(
        ranks=size,
        members=tuple(members),
        extremes=replace(made, **extremes),
        origin=MPITRACE,
        notes=tuple(_notes(found, members, size)),
    )


def _merged(member: RankProfile | None, row: RankProfile | None) -> RankProfile:
    """Return the values of a rank's file, or of rank 0's table if the file has none."""
    if member is None or row is None:
        known = member or row
        assert known is not None
        return known
    return replace(row, **{name: one for name, one in values(member).items() if one is not None})


def _notes(found: Sequence[RankFile], members: Sequence[RankProfile], size: int) -> Iterator[str]:
    counted = [member.rank for member in members if member.cells is not None]
    if len(counted) < size:
        yield (
            f"mpitrace's files of {some_ranks(counted)} are there: the calls of other ranks are "
            "not known"
        )
    table_only = [member.rank for member in members if member.cells is None]
    if table_only:
        yield f"only rank 0's table has data of {some_ranks(table_only)}"
    if missing := other_ranks(size, (member.rank for member in members)):
        yield f"nothing is known of {missing}"
    for file in found:
        for note in file.notes:
            yield f"{file.path}: {note}"

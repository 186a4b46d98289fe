"""Profiles that mpitrace wrote: what one rank called, how often, with how many bytes, how long.

A profile has a table of routines, then for each routine that moves data a table of message sizes,
each row the average of a power of two. Whole lines are taken, whatever stands between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median_low

from omb_py.errors import UsageError
from omb_py.readers import Source, source_of

BEGINNING = re.compile(r"Data for MPI rank (\d{1,9}) of (\d{1,9}):")
ROUTINES = re.compile(r"MPI Routine\s+#calls\s+avg\. bytes\s+time\(sec\)")
SIZES = re.compile(r"MPI_(\w+)\s+#calls\s+avg\. bytes\s+time\(sec\)")
TASKS = re.compile(r"taskid\s+hostname\s+comm\(s\)\s.*")
NUMBERS = r"(\d{1,12})\s+(\d{1,15}\.\d)\s+(\d{1,12}\.\d{3})"
ROUTINE = re.compile(rf"MPI_(\w+)\s+{NUMBERS}")
SIZE = re.compile(NUMBERS)
TASK = re.compile(r"(\d{1,9})\s+\S+((?:\s+\d{1,12}\.\d\d){5})(?:\s+\d+)?")
COMMUNICATION = re.compile(r"total communication time\s+= (\d{1,12}\.\d{3}) seconds\.")
ELAPSED = re.compile(r"total elapsed time\s+= (\d{1,12}\.\d{3}) seconds\.")
RULE = re.compile(r"-{5,}")


@dataclass(frozen=True)
class Calls:
    """The calls of a routine (without MPI_) with messages of ``nbytes`` on average."""

    routine: str
    calls: int
    nbytes: float
    seconds: float


@dataclass(frozen=True)
class Task:
    """A rank's seconds, in MPI and in all."""

    rank: int
    communicate_s: float
    elapsed_s: float


@dataclass(frozen=True)
class Profile:
    """One rank's profile; what the file does not say is None or empty.

    ``routines`` are the rows of the first table, ``sizes`` those of all message-size
    distributions, ``tasks`` those of the table of ranks, which only rank 0 has. ``notes`` say what
    was left out or does not agree.
    """

    rank: int | None = None
    ranks: int | None = None
    routines: tuple[Calls, ...] = ()
    sizes: tuple[Calls, ...] = ()
    communicate_s: float | None = None
    elapsed_s: float | None = None
    tasks: tuple[Task, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def calls(self) -> tuple[Calls, ...]:
        """All calls by routine and size; those of unknown sizes at their routine's average."""
        known = {one.routine for one in self.sizes}
        names = dict.fromkeys(one.routine for one in (*self.routines, *self.sizes))
        return tuple(
            one
            for name in names
            for one in (self.sizes if name in known else self.routines)
            if one.routine == name
        )

    @property
    def ranks_communicate_s(self) -> tuple[float, float, float] | None:
        """The least, the lower median and the greatest of the ranks' seconds in MPI."""
        seconds = [task.communicate_s for task in self.tasks]
        return (min(seconds), median_low(seconds), max(seconds)) if seconds else None


def read_profile(path: str) -> Profile:
    """The profile in a file; raises `UsageError` when it cannot be read."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from error
    return parsed(source_of(path, content))


def parsed(source: Source) -> Profile:
    """The first profile among a file's lines; never raises, whatever they hold."""
    found = _Found()
    lines = source.lines[:-1] if source.torn else source.lines
    for number, line in enumerate(lines, 1):
        if not found.take(line.strip(), number):
            break
    if source.torn and source.lines[-1].strip():
        found.notes.append(f"line {len(source.lines)} has no end and is left out")
    return found.profile()


@dataclass
class _Found:
    """What was found up to a line; ``table`` is the expression of the rows that are expected."""

    told: dict[str, int | float] = field(default_factory=dict)
    routines: list[Calls] = field(default_factory=list)
    sizes: list[Calls] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    table: re.Pattern[str] | None = None
    routine: str = ""

    def take(self, line: str, number: int) -> bool:
        """Take a line; False where another profile begins."""
        if match := BEGINNING.fullmatch(line):
            if "ranks" in self.told:
                self.notes.append(f"another profile begins in line {number} and is left out")
                return False
            self.told |= {"rank": int(match[1]), "ranks": int(match[2])}
        elif match := SIZES.fullmatch(line):
            self.table, self.routine = SIZE, match[1]
        elif ROUTINES.fullmatch(line) or TASKS.fullmatch(line):
            self.table = ROUTINE if line.startswith("MPI") else TASK
        elif not line:
            self.table = None
        elif RULE.fullmatch(line):
            self.table = self.table if self.table is ROUTINE and not self.routines else None
        elif self.table is not None:
            self._row(line, number)
        else:
            self._total(line)
        return True

    def _row(self, line: str, number: int) -> None:
        assert self.table is not None
        match = self.table.fullmatch(line)
        if match is None:
            self.notes.append(f"line {number} is no whole row of its table and is left out")
        elif self.table is TASK:
            communicate, elapsed = match[2].split()[:2]
            self.tasks.append(Task(int(match[1]), float(communicate), float(elapsed)))
        else:
            *name, calls, nbytes, seconds = match.groups()
            row = Calls(
                name[0] if name else self.routine, int(calls), float(nbytes), float(seconds)
            )
            (self.routines if name else self.sizes).append(row)

    def _total(self, line: str) -> None:
        for name, form in (("communicate_s", COMMUNICATION), ("elapsed_s", ELAPSED)):
            if match := form.fullmatch(line):
                self.told.setdefault(name, float(match[1]))

    def profile(self) -> Profile:
        """All that was found, with what does not agree among the notes."""
        rank, ranks = self.told.get("rank"), self.told.get("ranks")
        return Profile(
            rank=None if rank is None else int(rank),
            ranks=None if ranks is None else int(ranks),
            routines=tuple(self.routines),
            sizes=tuple(self.sizes),
            communicate_s=self.told.get("communicate_s"),
            elapsed_s=self.told.get("elapsed_s"),
            tasks=tuple(self.tasks),
            notes=(*self.notes, *self._disagreements()),
        )

    def _disagreements(self) -> Iterator[str]:
        """Routines whose sizes are not those of all their calls."""
        for one in self.routines:
            sized = sum(size.calls for size in self.sizes if size.routine == one.routine)
            if sized not in (0, one.calls):
                yield f"sizes are told of {sized} of {one.calls} calls of MPI_{one.routine}"

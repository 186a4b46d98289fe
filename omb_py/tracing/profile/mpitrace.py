"""Profiles that mpitrace wrote: what one rank called, how often, with how many bytes, how long.

A profile has a table of routines, then for each routine that moves data a table of message sizes,
each row the average of a power of two; rank 0's has a table of all ranks, too. Whole lines are
taken, whatever stands between them. `text` writes the same tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median_low
from typing import Any

from omb_py.core.errors import UsageError
from omb_py.core.text import files
from omb_py.results.readers import Source, source_of

BEGINNING = re.compile(r"Data for MPI rank (\d{1,9}) of (\d{1,9}):(?: \(all communicators\))?")
OF_SEVERAL = re.compile(r"Data for (?:all|\d{1,9} of) \d{1,9} MPI ranks\b.*:")
NAME = r"MPI_(\w+(?: \((?:pickle|started)\))?)"
COLUMNS = r"\s+#calls\s+avg\. bytes\s+time\(sec\)"
ROUTINES = re.compile(rf"MPI(?:-IO)? Routine{COLUMNS}")
SIZES = re.compile(NAME + COLUMNS)
TASKS = re.compile(r"taskid(?:\s+host(?:name)?(\s+cpu)?)?\s+comm\(s\)\s.*")
PARTS = re.compile(r"(Data for communicator sizes .*)|Summary for on-node communication")
NUMBERS = r"(\d{1,12})\s+(\d{1,15}\.\d)\s+(\d{1,12}\.\d{3})"
ROUTINE = re.compile(rf"{NAME}\s+{NUMBERS}")
SIZE = re.compile(NUMBERS)
REST = r"((?:\s+\d{1,12}\.\d\d){5})(?:\s+(\d{1,18}))?"
TASK = re.compile(rf"(\d{{1,9}})\s+(\S+){REST}")
TASK_ON_CPU = re.compile(rf"(\d{{1,9}})\s+(\S+)\s+-?\d{{1,9}}{REST}")
TASK_IN_KIB = re.compile(r"(\d{1,9})((?:\s+\d{1,12}\.\d\d){3})\s+(\d{1,15})\s+(\d{1,18})")
"""The row of an older mpitrace: without a host and the system's time."""

RULE = re.compile(r"-{5,}")

KIB_IN_MIB = 1024
SECONDS = r"= (\d{1,12}\.\d{3}) seconds"
TOTALS = {
    "communicate_s": re.compile(
        rf"total communication time {SECONDS}(?: \(including synchronization\))?\."
    ),
    "elapsed_s": re.compile(rf"total elapsed time\s+{SECONDS}\."),
    "user_s": re.compile(rf"user cpu time\s+{SECONDS}\."),
    "system_s": re.compile(rf"system time\s+{SECONDS}\."),
    "io_s": re.compile(rf"total MPI-IO time\s+{SECONDS}\."),
    "memory_mib": re.compile(r"max resident set size\s+= (\d{1,12}\.\d{3}) (?:MBytes|MiB)\."),
}
MEMORY_IN_KIB = re.compile(r"maximum memory size\s+= (\d{1,15}) KBytes\.")
POSITION = re.compile(r"MPI task (\d{1,9}) of \d{1,9} had the (\w+) communication time\.")
COMMUNICATION = re.compile(
    r"(minimum|median|maximum)\s+communication time = (\d{1,12}\.\d{3}) sec for task (\d{1,9})"
)
MOST = re.compile(
    r"Rank (\d{1,9}) reported the largest (memory utilization|elapsed time) : "
    r"(\d{1,12}\.\d\d) (?:MBytes|MiB|sec)"
)


@dataclass(frozen=True)
class TracedCalls:
    """The calls of a routine (without MPI_) with messages of ``nbytes`` on average."""

    routine: str
    calls: int
    nbytes: float
    seconds: float


@dataclass(frozen=True)
class Task:
    """A rank's seconds in MPI, in all and on CPUs, its memory, its context switches."""

    rank: int
    communicate_s: float
    elapsed_s: float
    host: str = ""
    user_s: float = 0.0
    system_s: float | None = 0.0
    memory_mib: float = 0.0
    switches: int | None = None


@dataclass(frozen=True)
class RankFile:
    """One rank's profile; what the file does not say is None or empty.

    ``routines`` are the rows of the first table, ``sizes`` those of all message-size
    distributions, ``tasks`` those of the table of ranks, which only rank 0 has. ``spread`` and
    ``most`` have a value and its rank for ``minimum``, ``median``, ``maximum`` (communication
    time) and ``memory utilization`` (MiB), ``elapsed time``. ``position`` is which of the first
    three this rank has. ``of_several``: the calls are those of several ranks together, which no
    rank has made. ``notes`` say what was left out or does not agree.
    """

    rank: int | None = None
    ranks: int | None = None
    of_several: bool = False
    routines: tuple[TracedCalls, ...] = ()
    sizes: tuple[TracedCalls, ...] = ()
    communicate_s: float | None = None
    elapsed_s: float | None = None
    user_s: float | None = None
    system_s: float | None = None
    io_s: float | None = None
    memory_mib: float | None = None
    tasks: tuple[Task, ...] = ()
    spread: dict[str, tuple[float, int]] = field(default_factory=dict)
    most: dict[str, tuple[float, int]] = field(default_factory=dict)
    position: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def calls(self) -> tuple[TracedCalls, ...]:
        """All calls by routine and size; those of unknown sizes have their mean."""
        names = dict.fromkeys(one.routine for one in (*self.routines, *self.sizes))
        every = (*self.sizes, *self.unsized)
        return tuple(one for name in names for one in every if one.routine == name)

    @property
    def unsized(self) -> tuple[TracedCalls, ...]:
        """The calls of each routine that no table of sizes has."""
        found = []
        for one in self.routines:
            sized = [size for size in self.sizes if size.routine == one.routine]
            calls = one.calls - sum(size.calls for size in sized)
            if not sized:
                found.append(one)
            elif calls > 0:
                rest = one.calls * one.nbytes - sum(size.calls * size.nbytes for size in sized)
                seconds = one.seconds - sum(size.seconds for size in sized)
                found.append(
                    TracedCalls(one.routine, calls, max(0.0, rest) / calls, max(0.0, seconds))
                )
        return tuple(found)

    @property
    def ranks_communicate_s(self) -> tuple[float, float, float] | None:
        """The minimum, the lower median and the maximum of the ranks' seconds in MPI."""
        seconds = [task.communicate_s for task in self.tasks]
        return (min(seconds), median_low(seconds), max(seconds)) if seconds else None


def read_profile(path: str) -> RankFile:
    """The profile in a file; raises `UsageError` when it cannot be read."""
    return parse(source_of(path, files.read(path, UsageError)))


def parse(source: Source) -> RankFile:
    """The first profile among a file's lines; never raises, whatever they hold."""
    found = _Found()
    lines = list(source)
    torn = lines.pop() if source.torn is not None else ""
    for number, line in enumerate(lines, 1):
        if not found.take(line.strip(), number):
            break
    if torn.strip():
        found.notes.append(f"line {len(lines) + 1} has no end and is left out")
    return found.profile()


@dataclass
class _Found:
    """What was found up to a line.

    ``table`` is the expression of the rows that are expected. ``begun``: the next rule ends a table
    of routines, and is not the one under its head. ``of_part``: tables are those of communicators
    of one size, or of a node (``on_node``, with sizes of their own).
    """

    told: dict[str, Any] = field(default_factory=dict)
    routines: list[TracedCalls] = field(default_factory=list)
    sizes: list[TracedCalls] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)
    spread: dict[str, tuple[float, int]] = field(default_factory=dict)
    most: dict[str, tuple[float, int]] = field(default_factory=dict)
    position: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    table: re.Pattern[str] | None = None
    routine: str = ""
    begun: bool = False
    of_part: bool = False
    on_node: bool = False

    def take(self, line: str, number: int) -> bool:
        """Take a line; False where another profile begins."""
        if match := BEGINNING.fullmatch(line):
            if "ranks" in self.told:
                self.notes.append(f"another profile begins in line {number} and is left out")
                return False
            self.told |= {"rank": int(match[1]), "ranks": int(match[2])}
        elif OF_SEVERAL.fullmatch(line):
            self.told["of_several"] = True
        elif match := PARTS.fullmatch(line):
            parts = "each size of communicators" if match[1] else "communication on a node"
            note = f"its tables for {parts} are left out"
            self.notes += [] if note in self.notes else [note]
            self.of_part = True
            self.on_node = self.on_node or not match[1]
        elif match := SIZES.fullmatch(line):
            self.table, self.routine = None if self.on_node else SIZE, match[1]
        elif ROUTINES.fullmatch(line):
            self.table, self.begun = None if self.of_part else ROUTINE, False
        elif match := TASKS.fullmatch(line):
            self.table = TASK_ON_CPU if match[1] else TASK if "host" in line else TASK_IN_KIB
        elif not line:
            self.table = None
        elif RULE.fullmatch(line):
            self.table = self.table if self.table is ROUTINE and not self.begun else None
            self.begun = True
        elif self.table is not None:
            self._row(line, number)
        else:
            self._total(line)
        return True

    def _row(self, line: str, number: int) -> None:
        assert self.table is not None
        self.begun = True
        match = self.table.fullmatch(line)
        if match is None:
            self.notes.append(f"line {number} is no whole row of its table and is left out")
        elif self.table in (TASK, TASK_ON_CPU):
            rank, host, seconds, switches = match.groups()
            communicate, elapsed, user, system, memory = map(float, seconds.split())
            last = None if switches is None else int(switches)
            task = Task(int(rank), communicate, elapsed, host, user, system, memory, last)
            self.tasks.append(task)
        elif self.table is TASK_IN_KIB:
            rank, seconds, kib, switches = match.groups()
            communicate, elapsed, user = map(float, seconds.split())
            memory = int(kib) / KIB_IN_MIB
            task = Task(int(rank), communicate, elapsed, "", user, None, memory, int(switches))
            self.tasks.append(task)
        else:
            *name, calls, nbytes, seconds = match.groups()
            row = TracedCalls(
                name[0] if name else self.routine, int(calls), float(nbytes), float(seconds)
            )
            (self.routines if name else self.sizes).append(row)

    def _total(self, line: str) -> None:
        for name, form in TOTALS.items():
            if match := form.fullmatch(line):
                self.told.setdefault(name, float(match[1]))
        if match := MEMORY_IN_KIB.fullmatch(line):
            self.told.setdefault("memory_mib", int(match[1]) / KIB_IN_MIB)
        if match := COMMUNICATION.fullmatch(line):
            self.spread.setdefault(match[1], (float(match[2]), int(match[3])))
        if match := MOST.fullmatch(line):
            self.most.setdefault(match[2], (float(match[3]), int(match[1])))
        if match := POSITION.fullmatch(line):
            self.position.append(match[2])

    def profile(self) -> RankFile:
        """All that was found, with what does not agree among the notes."""
        return RankFile(
            **self.told,
            routines=tuple(self.routines),
            sizes=tuple(self.sizes),
            tasks=tuple(self.tasks),
            spread=self.spread,
            most=self.most,
            position=tuple(self.position),
            notes=(*self.notes, *self._disagreements()),
        )

    def _disagreements(self) -> Iterator[str]:
        """Routines whose sizes are not those of all their calls."""
        for one in self.routines:
            sized = sum(size.calls for size in self.sizes if size.routine == one.routine)
            if sized != one.calls and (sized or one.nbytes):
                known = f"sizes are known for {sized} of {one.calls} calls of MPI_{one.routine}"
                yield f"{known}: the others have their mean" if sized < one.calls else known

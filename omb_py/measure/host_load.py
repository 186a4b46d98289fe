"""The load of this job's cores by other programs during the measurement.

The kernel counts CPU time for each core (``/proc/stat``, proc(5)) and for each process, and how
long a thread waited in a run queue (``/proc/PID/schedstat``, Documentation/scheduler/sched-stats).
Both are read before and after all measurements. The cores' time, less that of the ranks and their
launcher, belongs to other processes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from functools import partial

from omb_py.core.dataclass import dataclass
from omb_py.core.job import Job
from omb_py.measure.conditions import content, cores_of, own_cores

PROC = "/proc"
TICKS_PER_SECOND = 100
"""The unit of /proc/stat (USER_HZ), the same on every architecture that runs MPI."""

BUSY = 0.05
"""Share of the cores' time, or of a rank's, from which results are likely to show it."""

PRESENT = 0.01
"""Share from which others can have made a rank wait. Below it, the kernel's own threads did, which
write the job's files say, or the ranks themselves."""

SHORTEST = 1 / (BUSY * TICKS_PER_SECOND)
"""Seconds from which shares are known: in less, one tick of a core is more than `BUSY`."""

METADATA = "other_processes"

UNKNOWN = "-"
"""The text of a host that does not report its load, or was measured for too short a time."""


@dataclass(frozen=True)
class LoadReading:
    """Counters of this process and its host at one moment, in seconds.

    ``cores`` has the CPU time that programs used on each core, and what the hypervisor took of it;
    ``own`` is the CPU time of this process and of its children that ended, ``launcher`` that of
    the processes that started it, ``waited`` how long it has waited for a core.
    """

    clock: float
    cores: Mapping[int, tuple[float, float]]
    own: float
    launcher: float
    waited: float


@dataclass(frozen=True)
class Load:
    """Shares between 0 and 1 of the time of a host's ``cores``, and the longest wait of a rank.

    ``others`` is the CPU time of other processes, ``stolen`` what the hypervisor took, ``waited``
    the share of its time that a rank waited for a core; 0 if ranks share cores among them.
    """

    cores: int
    others: float
    stolen: float
    waited: float

    @property
    def worst(self) -> float:
        """The number to compare with `BUSY`: the share of others, or of a rank's wait for them."""
        taken = self.others + self.stolen
        return max(taken, self.waited) if taken >= PRESENT else taken

    def describe(self, host: str) -> str:
        """Return the shares of ``host`` in percent, as the metadata contains them."""
        return (
            f"{self.others:.1%} of {self.cores} cores of {host}, steal {self.stolen:.1%}, "
            f"wait for a core {self.waited:.1%}"
        )

    def note(self, host: str) -> str | None:
        """Return a sentence where other programs had a part in what was measured."""
        if self.worst < BUSY:
            return None
        taken = f"other processes took {self.others:.0%}"
        if self.stolen >= PRESENT:
            taken += f" and other virtual machines {self.stolen:.0%}"
        waited = f", and a rank waited {self.waited:.0%} of the time" if self.waited else ""
        return (
            f"{taken} of the {self.cores} cores of {host} during the measurement{waited}: "
            "measure again on a quiet machine"
        )


def read(whole: bool) -> LoadReading | None:
    """Return the counters now; those of cores and launcher only where ``whole`` is asked for.

    None if the system does not have them.
    """
    try:
        waited = waited_seconds(content(f"{PROC}/self/schedstat"))
        stat = content(f"{PROC}/stat") if whole else ""
        launcher = launcher_seconds() if whole else 0.0
        ended = os.times()
    except (ValueError, IndexError):
        return None
    own = time.process_time() + ended.children_user + ended.children_system
    return LoadReading(time.perf_counter(), core_seconds(stat), own, launcher, waited)


def core_seconds(stat: str) -> dict[int, tuple[float, float]]:
    """Return the seconds of programs (user, nice, system) and of steal of each core.

    Interrupts are left out: those of the job's own messages are among them.
    """
    found = {}
    for line in stat.splitlines():
        name, *fields = line.split() or [""]
        if name.startswith("cpu") and name[3:].isdecimal() and len(fields) >= 8:
            ticks = [int(field) for field in fields]
            busy = ticks[0] + ticks[1] + ticks[2]
            found[int(name[3:])] = (busy / TICKS_PER_SECOND, ticks[7] / TICKS_PER_SECOND)
    return found


def waited_seconds(schedstat: str) -> float:
    """Return the seconds that a thread waited in run queues, by its ``schedstat``."""
    return int(schedstat.split()[1]) / 1e9


def launcher_seconds() -> float:
    """Return CPU time of this process's parent with its ended children, and of its own parent.

    The one is what started the ranks on this host, the other the launcher, or their shell.
    """
    parent, _, _ = process_seconds(content(f"{PROC}/self/stat"))
    launcher, own, ended = process_seconds(content(f"{PROC}/{parent}/stat"))
    try:
        return own + ended + process_seconds(content(f"{PROC}/{launcher}/stat"))[1]
    except ValueError:
        return own + ended  # the parent is the first process of its namespace


def process_seconds(stat: str) -> tuple[int, float, float]:
    """Return a process's parent, and the CPU seconds of itself and of its ended children."""
    fields = stat.rpartition(")")[2].split()
    own, ended = (int(a) + int(b) for a, b in (fields[11:13], fields[13:15]))
    return int(fields[1]), own / TICKS_PER_SECOND, ended / TICKS_PER_SECOND


def load(
    before: LoadReading,
    after: LoadReading,
    usable: frozenset[int],
    own: float,
    waited: float,
    running: int,
) -> Load | None:
    """Return the load of a host between two readings of it.

    ``usable`` are the cores that its ranks may run on, ``own`` their CPU seconds and ``waited`` the
    longest wait of one in between; ``running`` is how many ranks or threads there are. None if the
    counters do not cover the cores, or the time is below `SHORTEST`.
    """
    cores = usable & before.cores.keys() & after.cores.keys()
    elapsed = after.clock - before.clock
    if not cores or elapsed < SHORTEST:
        return None
    ours = own + after.launcher - before.launcher
    busy, stolen = (
        sum(after.cores[core][part] - before.cores[core][part] for core in cores) for part in (0, 1)
    )
    capacity = elapsed * len(cores)
    # Both counters are read in whole ticks: one of each core may belong to another time.
    error = len(cores) / TICKS_PER_SECOND
    shares = [min(1.0, max(0.0, seconds - error) / capacity) for seconds in (busy - ours, stolen)]
    wait = waited / elapsed if running <= len(cores) else 0.0
    return Load(len(cores), shares[0], shares[1], min(1.0, max(0.0, wait)))


class HostLoad:
    """The load of all hosts of a job from the making of this object to `finish`."""

    def __init__(self, job: Job, threads: int = 0) -> None:
        """Read the counters; ``threads`` are those of all ranks together, if they have several.

        Collective if it is the job's first question about hosts.
        """
        self._job = job
        self._threads = threads
        self._leads = job.on_host().rank == 0
        self._before = read(self._leads)

    def finish(self) -> tuple[dict[str, str], str | None]:
        """Return metadata of the host that others used most, and a note if it was much; collective.

        On rank 0; both are empty elsewhere, and if no host reports its load.
        """
        before, after = self._before, read(self._leads)
        own = waited = 0.0
        if before is not None and after is not None:
            own, waited = after.own - before.own, after.waited - before.waited
        known = before is not None and after is not None
        word = f"{int(known)} {own!r} {waited!r} {own_cores()}"
        hosts = self._job.from_hosts(word, partial(self._of_host, before, after))
        shares = [one.split("\n") for one in hosts if one != UNKNOWN]
        if not shares:
            return {}, None
        _, words, note = max(shares, key=lambda found: float(found[0]))
        return {METADATA: words}, note or None

    def _of_host(
        self, before: LoadReading | None, after: LoadReading | None, words: Sequence[str]
    ) -> str:
        """Return the worst share of this host, its load in words, and a note, a line each.

        ``words`` has what `finish` knows of each rank here.
        """
        known, own, waited, cores = zip(*(one.split() for one in words), strict=True)
        if before is None or after is None or "0" in known:
            return UNKNOWN
        ranks = len(words)
        running = max(ranks, self._threads * ranks // self._job.ranks)
        usable = frozenset().union(*map(cores_of, cores))
        seconds, longest = sum(map(float, own)), max(map(float, waited))
        found = load(before, after, usable, seconds, longest, running)
        if found is None:
            return UNKNOWN
        host = os.uname().nodename
        return f"{found.worst!r}\n{found.describe(host)}\n{found.note(host) or ''}"

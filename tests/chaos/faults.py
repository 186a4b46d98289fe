"""Faults drawn from seeds: what runs, what happens to it, and when."""

from __future__ import annotations

import random
import signal
from dataclasses import dataclass
from enum import Enum

LAUNCHED = ("latency", "allreduce", "bw", "matmul", "file_write")
"""Programs that a launcher starts: benchmarks, one of them of files, and an application."""

SWEEPS = ("sweep", "application")
"""Sweeps, of benchmarks and of an application."""

WITH_TIMEOUT = LAUNCHED
ROW_BY_ROW = {"latency": 16, "allreduce": 16, "bw": 16, "file_write": 16, "sweep": 8}
"""Programs whose rows are added one after another, and how many those are."""


class Kind(Enum):
    """What happens. The value is a name for tables."""

    RANK_KILLED = "rank killed"
    LAUNCHER_KILLED = "launcher killed"
    SWEEP_KILLED = "sweep killed"
    CHILD_KILLED = "child of a rank killed"
    STOPPED = "signal to stop"
    RANK_FROZEN = "rank frozen"
    LAUNCHER_FROZEN = "launcher frozen"
    DISK_FILLED = "disk filled"
    DISK_SMALL = "disk too small"
    NETWORK_LOST = "network lost"
    CLOCK_SET = "clock set"


PROGRAMS: dict[Kind, tuple[str, ...]] = {
    Kind.RANK_KILLED: (*LAUNCHED, *SWEEPS),
    Kind.LAUNCHER_KILLED: (*LAUNCHED, *SWEEPS),
    Kind.SWEEP_KILLED: SWEEPS,
    Kind.CHILD_KILLED: LAUNCHED,
    Kind.STOPPED: (*LAUNCHED, *SWEEPS),
    Kind.RANK_FROZEN: (*WITH_TIMEOUT, *SWEEPS),
    Kind.LAUNCHER_FROZEN: SWEEPS,
    Kind.DISK_FILLED: (*LAUNCHED, *SWEEPS),
    Kind.DISK_SMALL: (*LAUNCHED, *SWEEPS),
    Kind.NETWORK_LOST: ("latency", "allreduce", "sweep"),
    Kind.CLOCK_SET: (*LAUNCHED, *SWEEPS),
}
"""What each kind may happen to. Without a time limit nothing ends a program that is frozen."""

SIGNALS: dict[Kind, tuple[signal.Signals, ...]] = {
    Kind.RANK_KILLED: (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV),
    Kind.LAUNCHER_KILLED: (signal.SIGKILL,),
    Kind.SWEEP_KILLED: (signal.SIGKILL,),
    Kind.CHILD_KILLED: (signal.SIGKILL, signal.SIGTERM),
    Kind.STOPPED: (signal.SIGTERM, signal.SIGINT, signal.SIGHUP),
    Kind.RANK_FROZEN: (signal.SIGSTOP,),
    Kind.LAUNCHER_FROZEN: (signal.SIGSTOP,),
}

LATEST = {"matmul": 0.6}
USUAL_LATEST = 1.0
"""Seconds after the start within which a fault comes that waits for no row: while it runs."""

SOON = 0.3
"""Seconds within which it comes after a row."""

KIB = 1024
LARGE_DISK = 16 << 20
DAY = 86_400


@dataclass(frozen=True)
class Fault:
    """A fault: when ``rows`` rows are there, and ``delay`` seconds have passed, it happens.

    ``number`` chooses one of several ranks or hosts. A disk has ``nbytes`` bytes, and holds
    temporary files too where ``temporary``; a clock is set by ``step`` seconds.
    """

    seed: int
    kind: Kind
    program: str
    rows: int
    delay: float
    number: int
    signal: signal.Signals | None
    nbytes: int
    temporary: bool
    step: int

    def __str__(self) -> str:
        more = "" if self.signal is None else f" ({self.signal.name})"
        more = f" ({self.nbytes // KIB} KiB)" if self.kind is Kind.DISK_SMALL else more
        more = f" ({self.step / DAY:+.2f} days)" if self.kind is Kind.CLOCK_SET else more
        return f"{self.kind.value}{more}"

    @property
    def from_the_start(self) -> bool:
        """Whether it is there before the program starts."""
        return self.kind is Kind.DISK_SMALL


def draw(seed: int) -> Fault:
    """The fault of a seed; consecutive seeds take kinds by turns, all else is random."""
    drawn = random.Random(seed)
    kind = list(Kind)[seed % len(Kind)]
    program = drawn.choice(PROGRAMS[kind])
    rows = drawn.randrange(ROW_BY_ROW.get(program, 1))
    small = kind is Kind.DISK_SMALL
    smallest = 16 * KIB if program in SWEEPS else 4 * KIB
    return Fault(
        seed=seed,
        kind=kind,
        program=program,
        rows=rows,
        delay=drawn.uniform(0, SOON if rows else LATEST.get(program, USUAL_LATEST)),
        number=drawn.randrange(6),
        signal=drawn.choice(SIGNALS[kind]) if kind in SIGNALS else None,
        nbytes=drawn.randrange(1, 9) * smallest if small else LARGE_DISK,
        temporary=drawn.random() < 0.5,
        step=drawn.choice((-1, 1)) * drawn.randrange(1, 400 * DAY),
    )

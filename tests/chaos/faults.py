"""Faults drawn from seeds: what runs, what happens to it, and when.

Kills of ranks, watchdogs, launchers and sweeps, and disks that are too small, have tests of their
own.
"""

from __future__ import annotations

import random
import signal
from dataclasses import dataclass
from enum import Enum

LAUNCHED = ("latency", "allreduce", "matmul")
"""Programs that a launcher starts: benchmarks, whose rows are CSV and JSON, and an application."""

SWEEPS = ("sweep", "application")
"""Sweeps, of benchmarks and of an application."""

ROW_BY_ROW = {"latency": 16, "allreduce": 16, "sweep": 8}
"""Programs whose rows are added one after another, and how many those are."""


class Kind(Enum):
    """What happens. The value is a name for tables."""

    STOPPED = "signal to stop"
    RANK_FROZEN = "rank frozen"
    LAUNCHER_FROZEN = "launcher frozen"
    DISK_FILLED = "disk filled"
    NETWORK_LOST = "network lost"
    CLOCK_SET = "clock set"


PROGRAMS: dict[Kind, tuple[str, ...]] = {
    Kind.LAUNCHER_FROZEN: SWEEPS,
    Kind.NETWORK_LOST: ("latency", "allreduce", "sweep"),
}
"""What some kinds may happen to, others to any. Nothing but a sweep sees that a launcher froze."""

SIGNALS: dict[Kind, tuple[signal.Signals, ...]] = {
    Kind.STOPPED: (signal.SIGTERM, signal.SIGINT, signal.SIGHUP),
    Kind.RANK_FROZEN: (signal.SIGSTOP,),
    Kind.LAUNCHER_FROZEN: (signal.SIGSTOP,),
}

LATEST = {"matmul": 0.6}
USUAL_LATEST = 1.0
"""Seconds after the start within which a fault comes that waits for no row: while it runs."""

SOON = 0.3
"""Seconds within which it comes after a row."""

DAY = 86_400


@dataclass(frozen=True)
class Fault:
    """A fault: when ``rows`` rows are there, and ``delay`` seconds have passed, it happens.

    ``number`` chooses one of several ranks or hosts. A disk holds temporary files too if
    ``temporary``; a clock is set by ``step`` seconds.
    """

    seed: int
    kind: Kind
    program: str
    rows: int
    delay: float
    number: int
    signal: signal.Signals | None
    temporary: bool
    step: int

    def __str__(self) -> str:
        more = "" if self.signal is None else f" ({self.signal.name})"
        more = f" ({self.step / DAY:+.2f} days)" if self.kind is Kind.CLOCK_SET else more
        return f"{self.seed:4} {self.program:10} {self.kind.value}{more}"


def draw(seed: int) -> Fault:
    """The fault of a seed; consecutive seeds take kinds alternately, all else is random."""
    drawn = random.Random(seed)
    kind = list(Kind)[seed % len(Kind)]
    program = drawn.choice(PROGRAMS.get(kind, (*LAUNCHED, *SWEEPS)))
    rows = drawn.randrange(ROW_BY_ROW.get(program, 1))
    return Fault(
        seed=seed,
        kind=kind,
        program=program,
        rows=rows,
        delay=drawn.uniform(0, SOON if rows else LATEST.get(program, USUAL_LATEST)),
        number=drawn.randrange(6),
        signal=drawn.choice(SIGNALS[kind]) if kind in SIGNALS else None,
        temporary=drawn.random() < 0.5,
        step=drawn.choice((-1, 1)) * drawn.randrange(1, 400 * DAY),
    )

"""Runs of one application on several numbers of ranks, side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from omb_py.analysis.scaling.rows import Run

PHASES = ("compute", "communicate", "wait", "distribute", "other", "load")
"""What a rank's time is made of, as `ApplicationRow` has it."""


@dataclass(frozen=True)
class Spread:
    """A median with the minimum and the maximum of the repeats."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Point:
    """Runs on one number of ranks, a median of their medians, between all their repeats.

    ``there`` are the cores of the nodes, ``cores`` those that the ranks' threads want. ``shares``
    are the parts of a rank's time in the order of `PHASES`, together 1. ``speedup`` is over one
    rank, ``sequential`` over the sequential program that was measured by turns, where there is one.
    ``parts`` are the seconds of the application's own parts.
    """

    ranks: int
    cores: int
    there: int
    seconds: Spread
    speedup: Spread | None
    shares: tuple[float, ...]
    runs: int
    sequential: Spread | None = None
    parts: Mapping[str, float] = field(default_factory=dict)

    @property
    def one_rank(self) -> float | None:
        """The seconds of one rank."""
        return self.speedup.value * self.seconds.value if self.speedup else None

    @property
    def oversubscribed(self) -> bool:
        """Whether ranks share cores, so that it says nothing of how a program scales."""
        return self.cores > self.there

    @property
    def efficiency(self) -> float | None:
        """Speed-up over the ranks."""
        return self.speedup.value / self.ranks if self.speedup else None

    @property
    def efficiency_of_cores(self) -> float | None:
        """Speed-up over the ranks that had cores of their own; the efficiency where all had."""
        own = self.ranks * min(1.0, self.there / self.cores)
        return self.speedup.value / own if self.speedup else None


@dataclass(frozen=True)
class Series:
    """Points of what is alike but for the ranks, in their order.

    ``problem`` is that of one rank where ``scaling`` is weak. ``divides_work`` tells whether the
    ranks do together what one rank would do.
    """

    application: str
    problem: str
    scaling: str
    buffer: str
    binding: str
    threads: int
    mpi: str
    variant: str
    points: tuple[Point, ...]
    divides_work: bool = True

    @property
    def phases(self) -> tuple[int, ...]:
        """The places in `PHASES` of those to be shown: loading only where something was loaded."""
        loading = PHASES.index("load")
        loads = any(point.shares[loading] for point in self.points)
        return tuple(place for place in range(len(PHASES)) if loads or place != loading)

    @property
    def name(self) -> str:
        """What tells it from others, in words."""
        threads = f"{self.threads} thread{'s' * (self.threads != 1)} in each rank"
        found = [f"{self.scaling} scaling", f"buffer {self.buffer}", f"binding {self.binding}"]
        return ", ".join(filter(None, [*found, threads, self.mpi, self.variant]))

    @property
    def over_sequential(self) -> float | None:
        """One rank's speed-up over the sequential program: the median of all points."""
        found = [
            point.sequential.value / point.speedup.value
            for point in self.points
            if point.sequential and point.speedup
        ]
        return median(found) if found else None

    @property
    def telling(self) -> tuple[Point, ...]:
        """Points that say how it scales: several ranks, each with cores of its own."""
        return tuple(
            point
            for point in self.points
            if point.ranks > 1 and point.speedup and not point.oversubscribed
        )


def series_of(
    runs: Iterable[Run], divides_work: Callable[[str], bool] = lambda application: True
) -> list[Series]:
    """The series that runs make, in the order of their first runs.

    ``divides_work`` tells of an application whether its ranks do together what one would do: only
    then is the time of one rank one to compare with.
    """
    groups: dict[tuple[str, str, str, str, str, int, str, str], list[Run]] = {}
    for run in runs:
        row = run.row
        how = (row.scaling, row.buffer, row.binding, row.threads, run.mpi, row.variant or "")
        groups.setdefault((row.application, row.problem, *how), []).append(run)
    found = []
    for key, members in groups.items():
        divided = divides_work(members[0].row.application)
        found.append(Series(*key, points_of(members, divided), divided))
    return found


def points_of(runs: Sequence[Run], divides_work: bool) -> tuple[Point, ...]:
    """A point for each number of ranks; see `series_of`."""
    by_ranks: dict[int, list[Run]] = {}
    for run in runs:
        by_ranks.setdefault(run.row.ranks, []).append(run)
    alone = spread_of(by_ranks[1]) if 1 in by_ranks and divides_work else None
    return tuple(point_of(members, alone) for _, members in sorted(by_ranks.items()))


def point_of(runs: Sequence[Run], alone: Spread | None) -> Point:
    """Runs on the same number of ranks; ``alone`` is the time of a job of one rank."""
    rows = [run.row for run in runs]
    seconds = spread_of(runs)
    shares = [
        sum(getattr(row, f"{phase}_s") or 0.0 for row in rows) / len(rows) for phase in PHASES
    ]
    whole = sum(shares) or 1.0
    return Point(
        ranks=rows[0].ranks,
        cores=max(row.cores for row in rows),
        there=min(row.host_cores * row.nodes for row in rows),
        seconds=seconds,
        speedup=speedup_of(runs, seconds, alone),
        shares=tuple(share / whole for share in shares),
        runs=len(rows),
        sequential=measured_speedup(runs, "sequential_speedup"),
        parts=parts_of(runs),
    )


def parts_of(runs: Sequence[Run]) -> dict[str, float]:
    """The parts that all runs have, each the median of their seconds."""
    names = [name for name in runs[0].parts if all(name in run.parts for run in runs)]
    return {name: median(run.parts[name] for run in runs) for name in names}


def spread_of(runs: Iterable[Run]) -> Spread:
    """The seconds of runs."""
    rows = [run.row for run in runs]
    return Spread(
        median(row.time_s or 0.0 for row in rows),
        min(row.time_low_s or 0.0 for row in rows),
        max(row.time_high_s or 0.0 for row in rows),
    )


def speedup_of(runs: Sequence[Run], seconds: Spread, alone: Spread | None) -> Spread | None:
    """The speed-up that jobs measured by turns with one rank; else over a job of one rank."""
    if (measured := measured_speedup(runs, "speedup")) is not None:
        return measured
    row = runs[0].row
    if alone is None or row.ranks == 1:
        return None
    work = row.ranks if row.scaling == "weak" else 1
    return Spread(
        work * alone.value / seconds.value,
        work * alone.low / seconds.high,
        work * alone.high / seconds.low,
    )


def measured_speedup(runs: Sequence[Run], column: str) -> Spread | None:
    """The speed-up in a column of the runs that have it, with its minimum and maximum."""
    found = [
        [getattr(run.row, f"{column}{end}") for end in ("", "_low", "_high")]
        for run in runs
        if getattr(run.row, column)
    ]
    if not found:
        return None
    values, lows, highs = zip(*found, strict=True)
    return Spread(median(values), min(lows), max(highs))

"""How many iterations: as many as asked for, or as many as the median needs.

Ranks decide together, between two stretches of iterations and never inside what is timed.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

from omb_py.job import Job
from omb_py.loop import Loop
from omb_py.measure.statistics import median_interval, percentile

if TYPE_CHECKING:
    from omb_py.clock import CommonStart

FIRST_STRETCH = 50
GROWTH = 1.5
"""A stretch of iterations lengthens all before it by this factor, so that looks at the data are
few: at most a third of the iterations is more than was needed."""

LEAST_SECONDS = 0.005
"""A precision is believed after so long at the least: samples that lie closer together are alike
for reasons (clock frequency, caches, where the kernel put the ranks) that do not last."""

SETTLING = 10
"""Iterations left out at the start of each stretch: ranks do not leave a decision together, and
their caches hold what decided."""

SETTLED = 0.02
WARMUP_STRETCH = 10
WARMUP_SECONDS = 1.0
"""Automatic warm-up ends when the median of a stretch, each twice as long as the one before it,
differs by no more than this fraction from the last; or after so many seconds."""


@dataclass(frozen=True)
class Goal:
    """When to stop: after ``iterations``, or at ``precision``, within ``max_time`` seconds.

    ``warmup`` is None for as much as it takes. With a precision, ``iterations`` is the most.
    """

    iterations: int
    warmup: int | None
    precision: float | None = None
    max_time: float | None = None


@dataclass(frozen=True)
class Sampled:
    """The seconds of this rank's iterations, and how many came before them.

    ``precise`` is false on rank 0 when a limit came before the precision asked for.
    """

    seconds: array[float]
    warmup: int
    precise: bool = True


def sample(job: Job, loop: Loop, start: CommonStart | None, timed: bool, goal: Goal) -> Sampled:
    """Run iterations until ``goal`` is reached; collective.

    ``timed`` says whether this rank's clock counts. Of a common ``start``, the last values of
    ``lateness`` belong to the iterations returned.
    """
    begin = perf_counter()
    warmup = warm_up(job, loop, timed) if goal.warmup is None else goal.warmup
    if goal.precision is None and goal.max_time is None:
        first = goal.warmup or 0
        seconds = array("d", bytes(8 * (first + goal.iterations)))
        loop.run(0, seconds)
        return Sampled(seconds[first:], warmup)
    if goal.warmup:
        loop.run(0, array("d", bytes(8 * warmup)))
    stretch = min(FIRST_STRETCH, goal.iterations)
    if goal.max_time is not None and warmup:
        affordable = int(goal.max_time / (perf_counter() - begin) * warmup)
        stretch = int(job.told(min(stretch, max(1, affordable))))
    return _until_precise(job, loop, start, timed, goal, warmup, stretch)


def warm_up(job: Job, loop: Loop, timed: bool) -> int:
    """Iterate until the median settles; the number of iterations that took; collective."""
    begin = perf_counter()
    done, stretch, before, settled = 0, WARMUP_STRETCH, 0.0, False
    while not settled:
        seconds = array("d", bytes(8 * stretch))
        loop.run(done, seconds)
        combined = job.combine(seconds, timed)
        median = percentile(sorted(combined.samples), 50) if combined else 0.0
        over = perf_counter() - begin > WARMUP_SECONDS
        settled = bool(job.told(over or abs(median - before) <= SETTLED * median))
        before, done, stretch = median, done + stretch, 2 * stretch
    return done


def _until_precise(
    job: Job,
    loop: Loop,
    start: CommonStart | None,
    timed: bool,
    goal: Goal,
    warmup: int,
    stretch: int,
) -> Sampled:
    """Stretches of iterations, the first as long as given, until one makes the goal."""
    seconds = array("d")
    ordered: list[float] = []
    done, precise = 0, False
    begin = perf_counter()
    while stretch:
        uncounted = min(SETTLING, stretch)
        part = array("d", bytes(8 * (uncounted + stretch)))
        job.comm.Barrier()
        loop.run(done, part)
        if start is not None:
            del start.lateness[-len(part) : -stretch]
        done += len(part)
        seconds.extend(part[uncounted:])
        combined = job.combine(part[uncounted:], timed)
        if combined is not None:
            elapsed = perf_counter() - begin
            ordered = sorted([*ordered, *combined.samples])
            precise = elapsed >= LEAST_SECONDS and is_precise(ordered, goal.precision)
            stretch = 0 if precise else next_stretch(goal, len(ordered), elapsed)
        stretch = int(job.told(stretch))
    return Sampled(seconds, warmup + done - len(seconds), precise or goal.precision is None)


def is_precise(ordered: list[float], precision: float | None) -> bool:
    """Whether half the interval of the median is at most this fraction of the median."""
    interval = median_interval(ordered) if precision is not None else None
    if interval is None or precision is None:
        return False
    return interval[1] - interval[0] <= 2 * precision * percentile(ordered, 50)


def next_stretch(goal: Goal, done: int, elapsed: float) -> int:
    """Iterations to run before the next look, 0 at a limit; ``done`` took ``elapsed`` seconds."""
    wanted = min(goal.iterations - done, max(1, round(done * (GROWTH - 1))))
    if goal.max_time is not None:
        left = goal.max_time - elapsed
        wanted = min(wanted, int(left / elapsed * done)) if left > 0 else 0
    return max(0, wanted)

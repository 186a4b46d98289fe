"""The number of iterations: a fixed one, or as many as the median needs.

Ranks decide together, between two stretches of iterations and never inside the timed part.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, TypeAlias

from omb_py.core.calls.loop import Loop
from omb_py.core.dataclass import dataclass
from omb_py.core.errors import UsageError
from omb_py.core.job import Job
from omb_py.core.options import Options
from omb_py.core.statistics import autocorrelation_time, median_interval, percentile

if TYPE_CHECKING:
    from omb_py.core.mpi.clock import CommonStart

Report: TypeAlias = Callable[[int, int], None]
"""A function that gets the number of iterations done, and the total."""

MAX_AT_ONCE = 1 << 20
"""Iterations whose times are allocated at once."""

MAX_COUNTED = 1 << 53
"""The largest number of iterations: up to it, the numbers that ranks exchange are exact."""

REPORT_SECONDS = 0.002
"""Seconds of a stretch below which the next one is four times as long, if progress is reported; it
is a quarter as long after ten times these seconds."""

FIRST_STRETCH = 50
GROWTH = 1.5
"""A stretch of iterations lengthens all before it by this factor, so that looks at the data are
few: at most a third of the iterations is more than was needed."""

MIN_SECONDS = 0.005
"""A precision is believed after so long at the minimum: samples that lie closer together are alike
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
class PrecisionGoal:
    """The end of sampling: after ``iterations``, or at ``precision``, within ``max_time`` seconds.

    ``warmup`` is None for a warm-up of automatic length. With a precision, ``iterations`` is the
    maximum.
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


def check_counts(options: Options) -> None:
    """Raise `UsageError` for more iterations than can be counted."""
    counts = {
        "-i": options.iterations,
        "-x": options.warmup,
        "--max-iterations": options.max_iterations,
    }
    for name, count in counts.items():
        if count is not None and count > MAX_COUNTED:
            raise UsageError(f"{name} {count}: choose at most {MAX_COUNTED} iterations")


def run_counted(
    loop: Loop,
    first: int,
    uncounted: int,
    counted: int,
    report: Report | None = None,
) -> array[float]:
    """Run iterations from number ``first`` on; the seconds of the last ``counted``.

    Without ``report`` they are one run of the loop, unless they are very many.
    """
    total, done = uncounted + counted, 0
    stretch = MAX_AT_ONCE if report is None else 1
    seconds = array("d")
    while done < total:
        part = array("d", bytes(8 * min(stretch, total - done)))
        begin = perf_counter()
        loop.run(first + done, part)
        elapsed = perf_counter() - begin
        seconds.extend(part[max(0, uncounted - done) :])
        done += len(part)
        if report is not None:
            report(done, total)
            if elapsed < REPORT_SECONDS:
                stretch = min(4 * stretch, MAX_AT_ONCE)
            elif elapsed > 10 * REPORT_SECONDS:
                stretch = max(1, stretch // 4)
    return seconds


def sample(
    job: Job,
    loop: Loop,
    start: CommonStart | None,
    timed: bool,
    goal: PrecisionGoal,
    report: Report | None = None,
) -> Sampled:
    """Run iterations until ``goal`` is reached; collective.

    ``timed`` is true if this rank's clock counts; ``report`` is as in `run_counted`. With a common
    ``start``, the last values of ``lateness`` belong to the iterations returned.
    """
    begin = perf_counter()
    warmup = warm_up(job, loop, timed) if goal.warmup is None else goal.warmup
    if goal.precision is None and goal.max_time is None:
        seconds = run_counted(loop, 0, goal.warmup or 0, goal.iterations, report)
        return Sampled(seconds, warmup)
    if goal.warmup:
        run_counted(loop, 0, warmup, 0, report)
    stretch = first_stretch(goal, warmup, perf_counter() - begin)
    seconds, uncounted, precise = until(job, loop, start, timed, goal, stretch, report)
    return Sampled(seconds, warmup + uncounted, precise or goal.precision is None)


def until(
    job: Job,
    loop: Loop,
    start: CommonStart | None,
    timed: bool,
    goal: PrecisionGoal,
    stretch: int,
    report: Report | None,
) -> tuple[array[float], int, bool]:
    """Run ``stretch`` iterations, then more until rank 0 finds its ``goal`` reached; collective.

    Return this rank's seconds, the number of iterations left out of them, and on rank 0 whether
    the precision was reached. ``stretch`` is rank 0's; other arguments are as in `sample`.
    """
    seconds, taken = array("d"), array("d")
    done, precise = 0, False
    begin = perf_counter()
    while stretch := int(job.bcast_from_root(stretch)):
        uncounted = min(SETTLING, stretch)
        job.barrier()  # the decision reached the ranks one after another
        part = run_counted(loop, done, uncounted, stretch, report)
        if start is not None:
            del start.lateness[-(uncounted + stretch) : -stretch]
        done += uncounted + stretch
        seconds.extend(part)
        combined = job.combine(part, timed)
        if combined is not None:
            elapsed = perf_counter() - begin
            taken.extend(combined.samples)
            precise = elapsed >= MIN_SECONDS and is_precise(taken, goal.precision)
            stretch = 0 if precise else next_stretch(goal, len(taken), elapsed)
    return seconds, done - len(seconds), precise


def warm_up(job: Job, loop: Loop, timed: bool) -> int:
    """Iterate until the median settles; return the number of iterations; collective."""
    begin = perf_counter()
    done, stretch, before, settled = 0, WARMUP_STRETCH, 0.0, False
    while not settled:
        seconds = array("d", bytes(8 * stretch))
        loop.run(done, seconds)
        combined = job.combine(seconds, timed)
        median = percentile(sorted(combined.samples), 50) if combined else 0.0
        over = perf_counter() - begin > WARMUP_SECONDS
        settled = bool(job.bcast_from_root(over or abs(median - before) <= SETTLED * median))
        before, done, stretch = median, done + stretch, 2 * stretch
    return done


def is_precise(samples: Sequence[float], precision: float | None) -> bool:
    """Return whether half the interval of the median is at most this fraction of the median.

    ``samples`` are in the order in which they were taken.
    """
    if precision is None:
        return False
    ordered = sorted(samples)
    median = percentile(ordered, 50)
    interval = median_interval(ordered, autocorrelation_time(samples, median))
    return interval is not None and interval[1] - interval[0] <= 2 * precision * median


def first_stretch(goal: PrecisionGoal, warmup: int, elapsed: float) -> int:
    """Return the iterations to the first check, which should end in time.

    ``elapsed`` are the seconds of ``warmup`` iterations. Without any nothing is known of how long
    an iteration takes, and the first check comes after one.
    """
    stretch = min(FIRST_STRETCH, goal.iterations)
    if goal.max_time is None:
        return stretch
    return min(stretch, max(1, int(goal.max_time / elapsed * warmup))) if warmup else 1


def next_stretch(goal: PrecisionGoal, done: int, elapsed: float) -> int:
    """Return the iterations to the next check, 0 at a limit; ``done`` took ``elapsed`` seconds."""
    wanted = min(goal.iterations - done, max(1, round(done * (GROWTH - 1))))
    if goal.max_time is not None:
        left = goal.max_time - elapsed
        wanted = min(wanted, int(left / elapsed * done)) if left > 0 else 0
    return max(0, wanted)

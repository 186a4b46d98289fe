"""When to stop: not before the interval is narrow, not after a limit."""

from __future__ import annotations

from array import array
from bisect import bisect
from collections.abc import Callable
from math import log
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.core.calls.loop import Loop
from omb_py.core.errors import UsageError, sentence
from omb_py.core.job import Combined
from omb_py.core.options import Options
from omb_py.core.statistics import percentile, summarize
from omb_py.measure import sampling
from omb_py.measure.sampling import (
    FIRST_STRETCH,
    GROWTH,
    MAX_AT_ONCE,
    MIN_SECONDS,
    SETTLING,
    WARMUP_SECONDS,
    PrecisionGoal,
    Sampled,
    check_counts,
    is_precise,
    next_stretch,
    run_counted,
    sample,
    warm_up,
)
from tests.helpers.refusals import refuses

SAMPLES = st.lists(st.floats(1e-7, 1.0), min_size=1, max_size=300)


@given(SAMPLES, st.floats(0.001, 0.5))
def test_precise_means_half_the_interval(samples: list[float], precision: float) -> None:
    low, high = summarize(samples).median_interval
    median = percentile(sorted(samples), 50)
    wanted = low is not None and high is not None and (high - low) / 2 <= precision * median
    assert is_precise(samples, precision) == wanted
    assert not is_precise(samples, None)
    assert is_precise([1.0, 1.25, 1.0, 0.75, 1.0, 1.0], 0.25)


@given(
    st.integers(1, 10**6),
    st.integers(1, 10**6),
    st.floats(1e-6, 100),
    st.one_of(st.none(), st.floats(1e-3, 100)),
)
def test_stretch_keeps_limits(most: int, done: int, elapsed: float, max_time: float | None) -> None:
    stretch = next_stretch(PrecisionGoal(most, 0, 0.02, max_time), done, elapsed)
    assert 0 <= stretch <= max(0, most - done)
    assert done + stretch <= max(GROWTH * done + 1, most)
    if max_time is not None:
        assert stretch * elapsed / done <= max(0.0, max_time - elapsed) + 1e-9


def test_without_limits_the_samples_grow_by_half() -> None:
    assert next_stretch(PrecisionGoal(10**6, 0, 0.02), 50, 1.0) == 25
    assert next_stretch(PrecisionGoal(60, 0, 0.02), 50, 1.0) == 10
    assert next_stretch(PrecisionGoal(50, 0, 0.02), 50, 1.0) == 0


@pytest.mark.parametrize("elapsed", [1.0, 1.5])
def test_time_that_is_over_ends_it(elapsed: float) -> None:
    assert next_stretch(PrecisionGoal(10**6, 0, 0.02, max_time=1.0), 50, elapsed) == 0


class CountingLoop(Loop):
    """Stores each iteration's number as its seconds; ``runs`` has the length of each run."""

    def __init__(self) -> None:
        self.runs: list[int] = []

    def run(self, first: int, seconds: array[float]) -> None:
        self.runs.append(len(seconds))
        for index in range(len(seconds)):
            seconds[index] = first + index


@given(st.integers(0, 50), st.integers(0, 300), st.integers(0, 300), st.booleans())
def test_counted_iterations_kept(first: int, uncounted: int, counted: int, reported: bool) -> None:
    loop, told = CountingLoop(), []
    report = (lambda done, total: told.append((done, total))) if reported else None
    seconds = run_counted(loop, first, uncounted, counted, report)
    total = uncounted + counted
    assert list(seconds) == list(range(first + uncounted, first + total))
    assert sum(loop.runs) == total
    if not reported:
        assert len(loop.runs) == (total > 0)
    elif total:
        assert told[-1] == (total, total)


def test_times_of_many_iterations_are_allocated_late() -> None:
    class StoppedError(Exception):
        pass

    class StoppingLoop(CountingLoop):
        def run(self, first: int, seconds: array[float]) -> None:
            assert len(seconds) <= MAX_AT_ONCE
            if len(self.runs) == 2:
                raise StoppedError
            self.runs.append(len(seconds))

    for iterations in (99_999_999_999, 99_999_999_999_999_999_999):
        loop = StoppingLoop()
        with pytest.raises(StoppedError):
            run_counted(loop, 0, 10, iterations)
        assert loop.runs == [MAX_AT_ONCE] * 2


@pytest.mark.parametrize(
    ("name", "option"),
    [("iterations", "-i"), ("warmup", "-x"), ("max_iterations", "--max-iterations")],
)
def test_more_iterations_than_ranks_can_agree_on_are_refused(name: str, option: str) -> None:
    most = 1 << 53
    check_counts(Options(**{name: most}))  # type: ignore[arg-type]
    with refuses(UsageError, f"{option} {most + 1}: at most {most} iterations"):
        check_counts(Options(**{name: most + 1}))  # type: ignore[arg-type]


def test_too_little_memory_is_a_sentence() -> None:
    assert sentence(MemoryError()).startswith("not enough memory: choose smaller messages")


class Alone(Loop):
    """A job of one rank and its loop, on a clock of their own.

    Iteration n takes ``seconds(n)``; its number is kept as its lateness, as its common start's.
    """

    def __init__(self, seconds: Callable[[int], float]) -> None:
        self._seconds = seconds
        self.lateness = array("d")
        self.runs: list[tuple[int, int]] = []
        self.now = 1000.0

    def run(self, first: int, seconds: array[float]) -> None:
        self.runs.append((first, len(seconds)))
        for index in range(len(seconds)):
            seconds[index] = self._seconds(first + index)
            self.now += seconds[index]
            self.lateness.append(first + index)

    def barrier(self) -> None:
        """One rank waits for none."""

    def bcast_from_root(self, value: float) -> float:
        return float(value)

    def combine(self, seconds: array[float], timed: bool) -> Combined:
        assert timed
        return Combined(seconds, 0.0, 0.0)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[int], float]], Any]:
    """Makes a job of one rank and puts its clock in the place of the machine's."""

    def make(seconds: Callable[[int], float]) -> Any:
        job = Alone(seconds)
        monkeypatch.setattr(sampling, "perf_counter", lambda: job.now)
        return job

    return make


def sampled(job: Any, goal: PrecisionGoal) -> Sampled:
    """What a goal takes; the lateness that is left last is that of the iterations returned."""
    begin = len(job.lateness)
    found = sample(job, job, job, True, goal)
    count = len(found.seconds)
    numbers = [int(number) for number in job.lateness[begin:][-count:]]
    assert list(found.seconds) == [job._seconds(number) for number in numbers]
    assert sum(length for _, length in job.runs) == found.warmup + count
    return found


def test_as_many_iterations_as_asked_for_follow_the_warm_up(alone: Callable[..., Any]) -> None:
    job = alone(lambda number: float(number))
    found = sampled(job, PrecisionGoal(100, 7))
    assert (list(found.seconds), found.warmup, found.precise) == ([*range(7, 107)], 7, True)


ENDS = [10, 30, 70, 150]
"""Where stretches of automatic warm-up end."""


def stretch_of(number: int) -> int:
    """The stretch of warm-up that an iteration belongs to."""
    return bisect(ENDS, number)


@pytest.mark.parametrize(
    ("seconds", "iterations"),
    [
        ([1.0], 10 + 20),
        ([1.0, 0.985], 10 + 20),
        ([1.0, 0.975, 0.975], 10 + 20 + 40),
        ([1.0, 1.025, 1.025], 10 + 20 + 40),
        ([4.0, 2.0, 1.0, 1.0], 10 + 20 + 40 + 80),
    ],
)
def test_warm_up_ends_when_medians_of_stretches_agree(
    alone: Callable[..., Any], seconds: list[float], iterations: int
) -> None:
    job = alone(lambda number: 1e-6 * seconds[min(stretch_of(number), len(seconds) - 1)])
    assert warm_up(job, job, True) == iterations
    assert [first for first, _ in job.runs] == [0, *ENDS][: len(job.runs)]


def test_warm_up_that_never_settles_ends_after_its_seconds(alone: Callable[..., Any]) -> None:
    job = alone(lambda number: 1e-3 * 4 ** stretch_of(number))
    assert warm_up(job, job, True) == 10 + 20 + 40 + 80
    job = alone(lambda number: 0.099 * WARMUP_SECONDS * 4 ** stretch_of(number))
    assert warm_up(job, job, True) == 10 + 20


def test_automatic_warm_up_is_told(alone: Callable[..., Any]) -> None:
    assert sampled(alone(lambda number: 1e-6), PrecisionGoal(5, None)).warmup == 30
    assert (
        sampled(alone(lambda number: 1e-3), PrecisionGoal(5, None, precision=1.0)).warmup == 30 + 5
    )


def test_equal_times_are_precise_when_they_took_long_enough(alone: Callable[..., Any]) -> None:
    found = sampled(alone(lambda number: 1e-3), PrecisionGoal(10**6, 0, precision=0.02))
    assert (len(found.seconds), found.warmup, found.precise) == (FIRST_STRETCH, SETTLING, True)
    found = sampled(alone(lambda number: 1e-6), PrecisionGoal(10**6, 0, precision=0.02))
    seconds = 1e-6 * (found.warmup + len(found.seconds))
    assert found.precise
    assert MIN_SECONDS <= seconds < GROWTH * MIN_SECONDS
    assert found.warmup == SETTLING * (1 + round(log(len(found.seconds) / FIRST_STRETCH, GROWTH)))


def test_the_most_iterations_end_what_is_never_precise(alone: Callable[..., Any]) -> None:
    job = alone(lambda number: 1e-3 * (1 + number % 7))
    found = sampled(job, PrecisionGoal(120, 4, precision=1e-6))
    assert job.runs == [(0, 4), (0, 10 + 50), (60, 10 + 25), (95, 10 + 38), (143, 7 + 7)]
    assert (len(found.seconds), found.warmup, found.precise) == (120, 4 + 3 * 10 + 7, False)


def test_a_time_limit_alone_is_no_precision_that_was_missed(alone: Callable[..., Any]) -> None:
    job = alone(lambda number: 1e-3)
    begin = job.now
    assert sampled(job, PrecisionGoal(10**6, 5, max_time=0.5)).precise
    assert 0.49 <= job.now - begin <= 0.52


@pytest.mark.parametrize(("warmup", "first"), [(0, 1), (5, 20), (200, FIRST_STRETCH)])
def test_time_limit_counts_the_warm_up(alone: Callable[..., Any], warmup: int, first: int) -> None:
    job = alone(lambda number: 1.0)
    sampled(job, PrecisionGoal(10**6, warmup, max_time=max(20.0, float(warmup))))
    assert job.runs[1 if warmup else 0] == (0, min(SETTLING, first) + first)


def test_slow_iterations_without_a_warm_up_end_at_the_time_limit(alone: Callable[..., Any]) -> None:
    job = alone(lambda number: 0.2)
    begin = job.now
    sampled(job, PrecisionGoal(10_000, 0, max_time=0.2))
    assert job.now - begin < 0.5


def test_a_stretch_is_an_iteration_at_least(alone: Callable[..., Any]) -> None:
    job = alone(lambda number: 1.0)
    assert len(sampled(job, PrecisionGoal(10**6, 5, max_time=0.1)).seconds) == 1
    assert sampled(alone(lambda number: 1.0), PrecisionGoal(1, 0, max_time=9.0)).warmup == 1


def test_another_rank_does_what_rank_0_says(alone: Callable[..., Any]) -> None:
    class Other(Alone):
        said = iter([7.0, 11.0, 0.0])

        def bcast_from_root(self, value: float) -> float:
            return next(self.said)

        def combine(self, seconds: array[float], timed: bool) -> Any:
            assert not timed

    job = Other(lambda number: 1.0)
    found = sample(job, job, None, False, PrecisionGoal(10**6, 5, precision=0.5, max_time=9.0))  # type: ignore[arg-type]
    assert job.runs == [(0, 5), (0, 7 + 7), (14, 10 + 11)]
    assert (len(found.seconds), found.warmup) == (18, 5 + 17)


def test_reported_stretches_lengthen(
    alone: Callable[..., Any],
) -> None:
    job = alone(lambda number: 1e-6)
    run_counted(job, 0, 0, 10_000, lambda done, total: None)
    lengths = [length for _, length in job.runs]
    assert lengths == [1, 4, 16, 64, 256, 1024, 4096, 4096, 10_000 - sum(lengths[:-1])]


def test_reported_stretches_shorten_on_a_machine_that_gets_slow(
    alone: Callable[..., Any],
) -> None:
    job = alone(lambda number: 1e-6 if number < 85 else 1.0)
    run_counted(job, 0, 0, 426, lambda done, total: None)
    assert [length for _, length in job.runs] == [1, 4, 16, 64, 256, 64, 16, 4, 1]


def test_progress_is_told_of_each_stretch(alone: Callable[..., Any]) -> None:
    told: list[tuple[int, int]] = []
    job = alone(lambda number: 1e-3 * (1 + number % 7))
    report = lambda *done: told.append(done)  # noqa: E731
    sample(job, job, None, True, PrecisionGoal(60, 3, precision=1e-6), report)
    assert {total for _, total in told} == {3, 10 + 50, 10 + 10}
    assert told.count((60, 60)) == 1
    told.clear()
    sample(job, job, None, True, PrecisionGoal(20, 3), report)
    assert told[-1] == (23, 23)

"""When to stop: not before the interval is narrow, not after a limit."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.errors import UsageError, sentence
from omb_py.loop import Loop
from omb_py.measure.sampling import (
    GROWTH,
    MOST_AT_ONCE,
    Goal,
    check_counts,
    is_precise,
    next_stretch,
    run_counted,
)
from omb_py.measure.statistics import median_interval, percentile
from omb_py.options import Options

SAMPLES = st.lists(st.floats(1e-7, 1.0), min_size=1, max_size=300).map(sorted)


@given(SAMPLES, st.floats(0.001, 0.5))
def test_precise_means_half_the_interval(ordered: list[float], precision: float) -> None:
    interval = median_interval(ordered)
    median = percentile(ordered, 50)
    wanted = interval is not None and (interval[1] - interval[0]) / 2 <= precision * median
    assert is_precise(ordered, precision) == wanted
    assert not is_precise(ordered, None)


@given(
    st.integers(1, 10**6),
    st.integers(1, 10**6),
    st.floats(1e-6, 100),
    st.one_of(st.none(), st.floats(1e-3, 100)),
)
def test_a_stretch_keeps_within_the_limits(
    most: int, done: int, elapsed: float, max_time: float | None
) -> None:
    stretch = next_stretch(Goal(most, 0, 0.02, max_time), done, elapsed)
    assert 0 <= stretch <= max(0, most - done)
    assert done + stretch <= max(GROWTH * done + 1, most)
    if max_time is not None:
        assert stretch * elapsed / done <= max(0.0, max_time - elapsed) + 1e-9


def test_without_limits_the_samples_grow_by_half() -> None:
    assert next_stretch(Goal(10**6, 0, 0.02), 50, 1.0) == 25
    assert next_stretch(Goal(60, 0, 0.02), 50, 1.0) == 10
    assert next_stretch(Goal(50, 0, 0.02), 50, 1.0) == 0


@pytest.mark.parametrize("elapsed", [1.0, 1.5])
def test_time_that_is_over_ends_it(elapsed: float) -> None:
    assert next_stretch(Goal(10**6, 0, 0.02, max_time=1.0), 50, elapsed) == 0


class CountingLoop(Loop):
    """Stores each iteration's number as its seconds; ``runs`` has the length of each run."""

    def __init__(self) -> None:
        self.runs: list[int] = []

    def run(self, first: int, seconds: array[float]) -> None:
        self.runs.append(len(seconds))
        for index in range(len(seconds)):
            seconds[index] = first + index


@given(st.integers(0, 50), st.integers(0, 300), st.integers(0, 300), st.booleans())
def test_iterations_are_run_once_and_the_counted_ones_kept(
    first: int, uncounted: int, counted: int, reported: bool
) -> None:
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


def test_times_of_very_many_iterations_are_allocated_as_they_come() -> None:
    class StoppedError(Exception):
        pass

    class StoppingLoop(CountingLoop):
        def run(self, first: int, seconds: array[float]) -> None:
            assert len(seconds) <= MOST_AT_ONCE
            if len(self.runs) == 2:
                raise StoppedError
            self.runs.append(len(seconds))

    for iterations in (99_999_999_999, 99_999_999_999_999_999_999):
        loop = StoppingLoop()
        with pytest.raises(StoppedError):
            run_counted(loop, 0, 10, iterations)
        assert loop.runs == [MOST_AT_ONCE] * 2


@pytest.mark.parametrize("name", ["iterations", "warmup", "max_iterations"])
def test_more_iterations_than_ranks_can_agree_on_are_refused(name: str) -> None:
    check_counts(Options(**{name: 99_999_999_999}))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="choose at most 9007199254740992 iterations"):
        check_counts(Options(**{name: 99_999_999_999_999_999_999}))  # type: ignore[arg-type]


def test_too_little_memory_is_a_sentence() -> None:
    assert sentence(MemoryError()).startswith("not enough memory: lower -i")

"""When to stop: not before the interval is narrow, not after a limit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.measure.sampling import GROWTH, Goal, is_precise, next_stretch
from omb_py.measure.statistics import median_interval, percentile

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

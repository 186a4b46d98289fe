"""Statistics, against Python's own and NumPy's."""

from __future__ import annotations

import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.measure.statistics import percentile, summarize

SAMPLES = st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=200)


@given(SAMPLES)
def test_mean_and_deviation(samples: list[float]) -> None:
    summary = summarize(samples)
    assert summary.mean == pytest.approx(statistics.fmean(samples))
    if len(samples) > 1:
        assert summary.stddev == pytest.approx(statistics.stdev(samples), abs=1e-12)


@given(SAMPLES, st.floats(0, 100))
def test_a_percentile_is_the_nearest_rank(samples: list[float], percent: float) -> None:
    value = percentile(sorted(samples), percent)
    assert value in samples
    not_above = sum(sample <= value for sample in samples)
    below = sum(sample < value for sample in samples)
    assert not_above >= len(samples) * percent / 100 * (1 - 1e-12)
    assert below <= len(samples) * percent / 100 or below == 0


@pytest.mark.parametrize("percent", [1, 25, 50, 90, 99, 99.9, 100])
def test_percentiles_are_native_ombs_where_those_are_defined(percent: float) -> None:
    samples = sorted(float(value) for value in np.random.default_rng(1).random(1000))
    assert percentile(samples, percent) == samples[int(1000 * percent / 100 + 1e-9) - 1]


def test_the_ends() -> None:
    assert percentile([1.0, 2.0, 3.0], 0) == 1.0
    assert percentile([1.0, 2.0, 3.0], 100) == 3.0
    assert summarize([5.0]).stddev == 0

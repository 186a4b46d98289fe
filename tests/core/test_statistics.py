"""Statistics, against Python's own and NumPy's."""

from __future__ import annotations

import statistics
from fractions import Fraction
from math import ceil, comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.core.statistics import (
    LARGEST_EXACT,
    NORMAL,
    autocorrelation_time,
    median_interval,
    median_ranks,
    percentile,
    relative_spread,
    summarize,
)

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


@given(st.integers(1, 200_000), st.integers(0, 1000))
def test_a_percentile_in_tenths_has_its_exact_rank(count: int, tenths: int) -> None:
    rank = max(1, ceil(Fraction(count * tenths, 1000)))
    assert percentile(range(1, count + 1), tenths / 10) == rank


def test_a_percentile_s_rank_is_not_rounded_up_by_floats() -> None:
    assert percentile(range(1, 1001), 16.1) == 161


def test_percentiles_0_and_100_are_the_extremes() -> None:
    assert percentile([1.0, 2.0, 3.0], 0) == 1.0
    assert percentile([1.0, 2.0, 3.0], 100) == 3.0
    assert summarize([5.0]).stddev == 0


def probability(count: int, rank: int) -> float:
    """That the median lies between the rank-th smallest and the rank-th largest of so many."""
    outside: float = 2 * sum(comb(count, k) for k in range(rank)) / 2**count
    return 1 - outside


@given(st.integers(6, LARGEST_EXACT))
def test_median_interval_covers_95_percent_narrowly(count: int) -> None:
    ranks = median_ranks(count)
    assert ranks is not None
    low, high = ranks
    assert low + high == count + 1
    assert probability(count, low) >= 0.95
    assert probability(count, low + 1) < 0.95


@pytest.mark.parametrize(("count", "ranks"), [(6, (1, 6)), (10, (2, 9)), (20, (6, 15))])
def test_ranks_of_printed_tables(count: int, ranks: tuple[int, int]) -> None:
    assert median_ranks(count) == ranks


@given(st.integers(6, 3000))
def test_the_interval_is_from_one_sample_to_another(count: int) -> None:
    ordered = [float(rank) for rank in range(1, count + 1)]
    assert median_interval(ordered) == median_ranks(count)
    mixed = np.random.default_rng(count).permutation(ordered).tolist()
    low, high = summarize(mixed).median_interval
    ranks = median_ranks(count)
    assert ranks is not None
    assert low is None or (low <= ranks[0] and high is not None and high >= ranks[1])


@pytest.mark.parametrize("count", [1, 2, 5])
def test_too_few_samples_have_no_interval(count: int) -> None:
    assert median_interval([1.0] * count) is None
    assert summarize([1.0] * count).median_interval == (None, None)


@pytest.mark.parametrize("count", [LARGEST_EXACT + 1, 3000, 4001])
def test_the_approximation_is_never_narrower_than_the_truth(count: int) -> None:
    ranks = median_ranks(count)
    assert ranks is not None
    assert 0.95 <= probability(count, ranks[0]) < 0.96


def autoregressive(generator: np.random.Generator, count: int, rho: float) -> list[float]:
    """A stationary series of which neighbours have this correlation; its median is 0."""
    noise = generator.standard_normal(count) * np.sqrt(1 - rho**2)
    found = [float(generator.standard_normal())]
    for one in noise[1:].tolist():
        found.append(rho * found[-1] + one)
    return found


@pytest.mark.parametrize(("rho", "least"), [(0.0, 0.93), (0.6, 0.92), (0.9, 0.9)])
def test_median_interval_covers_dependent_samples(rho: float, least: float) -> None:
    generator = np.random.default_rng(4)
    held = 0
    for _ in range(200):
        low, high = summarize(autoregressive(generator, 1000, rho)).median_interval
        assert low is not None
        assert high is not None
        held += low <= 0 <= high
    assert least <= held / 200 <= 0.995


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.6, 0.9, 0.99])
def test_the_autocorrelation_time_is_that_of_the_series(rho: float) -> None:
    series = autoregressive(np.random.default_rng(2), 100_000, rho)
    lags = np.arange(1, 2000)
    # of a normal series, whether it is above its median has the correlation 2 / pi asin(rho)
    expected = 1 + 2 * (2 / np.pi * np.arcsin(rho**lags)).sum()
    assert autocorrelation_time(series) == pytest.approx(expected, rel=0.2)


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=80))
def test_an_autocorrelation_time_is_that_of_the_signs_alone(samples: list[float]) -> None:
    time = autocorrelation_time(samples)
    assert 1 <= time <= len(samples)
    median = percentile(sorted(samples), 50)
    assert autocorrelation_time([9.0 if one > median else 1.0 for one in samples]) == time


def test_samples_that_alternate_count_as_independent_at_most() -> None:
    assert autocorrelation_time([1.0, 2.0] * 50) == 1
    assert autocorrelation_time([5.0] * 50) == 1


def test_samples_that_only_grow_have_no_interval() -> None:
    assert summarize([float(number) for number in range(1000)]).median_interval == (None, None)


def test_a_longer_time_makes_the_interval_wider_by_its_root() -> None:
    ordered = [float(rank) for rank in range(1, 10_001)]
    low, high = median_interval(ordered, 1.0) or (0.0, 0.0)
    wide_low, wide_high = median_interval(ordered, 4.0) or (0.0, 0.0)
    assert wide_high - wide_low == pytest.approx(2 * (high - low), abs=2)
    assert median_interval(ordered, 1e5) is None


def test_spread_of_normal_values_is_deviation_over_mean() -> None:
    values = np.random.default_rng(1).normal(2.0, 0.1, 20_000)
    assert relative_spread(values.tolist()) == pytest.approx(0.05, rel=0.03)


def test_a_few_values_far_off_do_not_make_a_machine_busy() -> None:
    assert relative_spread([1.0, 1.01, 0.99, 1.0, 1.02, 50.0]) < 0.03
    assert relative_spread([3.0]) == 0.0


def test_spread_takes_the_lower_middle_value() -> None:
    assert relative_spread([4.0, 1.0, 3.0, 2.0]) == pytest.approx(NORMAL * 1 / 2)
    assert relative_spread([1.0, 3.0]) == 0.0

"""Curves in pieces: what is found in data whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.analysis.model.lines import MIN_SIZES, Fit, Points, critical, lines, ranges
from tests.helpers.properties import examples

SIZES = np.r_[0, 2.0 ** np.arange(23)]
"""0 to 4 MiB, as `omb-py latency` has them."""

EAGER, RENDEZVOUS = (1.5, 2e-4), (5.0, 6e-5)
"""Alpha in us and beta in us per byte, below and from 8 KiB on."""


def two_protocols(sizes: np.ndarray) -> np.ndarray:
    eager, rendezvous = (alpha + beta * sizes for alpha, beta in (EAGER, RENDEZVOUS))
    return np.where(sizes < 8192, eager, rendezvous)


def straight(sizes: np.ndarray) -> np.ndarray:
    return 1.5 + 2e-4 * sizes


def noisy(times: np.ndarray, noise: float, seed: int) -> np.ndarray:
    return times * np.exp(noise * np.random.default_rng(seed).standard_normal(len(times)))


def points(times: np.ndarray, sizes: np.ndarray = SIZES, error: np.ndarray | None = None) -> Points:
    variances = np.ones_like(times) if error is None else 1 + (error / 0.02) ** 2
    return Points(sizes, times, variances)


def fitted(times: np.ndarray, sizes: np.ndarray = SIZES) -> tuple[Fit, ...]:
    return lines(points(times, sizes))


def switches(times: np.ndarray) -> int:
    return len(ranges(points(times))) - 1


def ends(fits: tuple[Fit, ...]) -> list[tuple[float, float]]:
    return [(one.first, one.last) for one in fits]


def test_exact_times_give_their_costs_and_the_switch_back() -> None:
    found = fitted(two_protocols(SIZES))
    costs = [cost for one in found for cost in (one.alpha, one.beta)]
    assert costs == pytest.approx([*EAGER, *RENDEZVOUS], rel=1e-6)
    assert ends(found) == [(0, 4096), (8192, 1 << 22)]
    assert [one.rms for one in found] == pytest.approx([0, 0], abs=1e-6)


def test_three_protocols_are_told_apart() -> None:
    times = np.select(
        [SIZES < 512, SIZES < 65536], [1 + 1e-4 * SIZES, 2 + 5e-4 * SIZES], 30 + 8e-5 * SIZES
    )
    found = ends(fitted(noisy(times, 0.01, 1)))
    assert found == [(0, 256), (512, 32768), (65536, 1 << 22)]


@pytest.mark.parametrize("noise", [0.001, 0.02, 0.1, 0.3])
def test_no_switch_is_invented_on_a_straight_line(noise: float) -> None:
    """In at most 5 % of 200 noisy lines (at most 3 % with these seeds)."""
    invented = sum(switches(noisy(straight(SIZES), noise, seed)) > 0 for seed in range(200))
    assert invented <= 10


ONE_PLACE = 2 * MIN_SIZES - 1
"""Sizes, two ranges of which can meet at one place only."""


@pytest.mark.parametrize(
    ("more", "points", "places", "extra", "degrees", "limit"),
    [
        (2, 24, ONE_PLACE, 2, 20, 3.493),
        (3, 24, ONE_PLACE, 4, 18, 2.928),
        (2, 10, ONE_PLACE, 2, 6, 5.143),
        (2, 24, ONE_PLACE + 9, 2, 20, 6.986),
    ],
    ids="one-switch two-switches few-points 0.5%-for-10-places".split(),
)
def test_critical_quotient_is_that_of_tables_of_f(
    more: int, points: int, places: int, extra: int, degrees: int, limit: float
) -> None:
    """F for ``extra`` and ``degrees`` of freedom at 5 %, divided by the places of a switch."""
    quotient = 1 + limit * extra / degrees
    assert critical(1, more, points, places) == pytest.approx(quotient, rel=1e-4)


def test_curve_without_degrees_of_freedom_has_no_switch() -> None:
    assert critical(1, 2, 4, ONE_PLACE) == np.inf
    assert np.isfinite(critical(1, 2, 5, ONE_PLACE))


def test_chance_exceeds_the_critical_quotient_in_5_percent() -> None:
    """Of 4000 straight lines of 12 points, a switch at a given place: 4 to 6 %."""
    sizes = np.arange(12.0)
    both = np.stack([np.ones(12), sizes], axis=1)
    halves = np.where(np.arange(4) // 2 == (sizes[:, None] >= 6), np.tile(both, 2), 0.0)
    errors = np.random.default_rng(0).standard_normal((12, 4000))
    costs = [np.linalg.lstsq(terms, errors, rcond=None)[1] for terms in (both, halves)]
    exceeded = costs[0] / costs[1] > critical(1, 2, 12, ONE_PLACE)
    assert 0.04 <= exceeded.mean() <= 0.06


def test_a_switch_that_is_there_is_found_in_noise() -> None:
    found = [switches(noisy(two_protocols(SIZES), 0.05, seed)) for seed in range(50)]
    assert found.count(1) >= 48


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """95 % of intervals, over 200 noisy curves: 92 to 98 % where chance alone gives 93 to 97 %."""
    held = []
    for seed in range(200):
        found = fitted(noisy(two_protocols(SIZES), 0.05, seed))
        if len(found) == 2:
            for one, truth in zip(found, (EAGER, RENDEZVOUS), strict=True):
                limits = zip(one.intervals(), truth, strict=True)
                held += [low <= cost <= high for (low, high), cost in limits]
    assert len(held) >= 4 * 195
    assert 0.92 <= np.mean(held) <= 0.98


def test_a_point_known_badly_counts_less() -> None:
    times = straight(SIZES)
    times[10] *= 1.5
    errors = np.zeros(len(SIZES))
    errors[10] = 0.5
    (doubted,) = lines(points(times, error=errors))
    assert doubted.alpha == pytest.approx(1.5, rel=1e-3)
    assert len(fitted(times)) > 1


@pytest.mark.parametrize("times", [np.linspace(3, 2, 24), np.maximum(1e-4 * SIZES - 1, 1e-3)])
def test_costs_are_never_negative(times: np.ndarray) -> None:
    for one in fitted(times):
        for cost, (low, high) in zip((one.alpha, one.beta), one.intervals(), strict=True):
            assert 0 <= low <= cost <= high


def test_two_sizes_make_a_line_without_an_interval() -> None:
    found = fitted(np.array([2.0, 12.0]), np.array([8.0, 1048576.0]))
    assert found[0].alpha + 8 * found[0].beta == pytest.approx(2)
    assert np.isnan(found[0].intervals()).all()


def test_many_sizes_are_fitted_too() -> None:
    sizes = np.arange(1.0, 1000.0)
    times = np.where(sizes < 500, 1 + 1e-3 * sizes, 3 + 1e-3 * sizes)
    first, _ = fitted(noisy(times, 0.02, 2), sizes)
    assert first.last == pytest.approx(500, abs=15)


@examples(40)
@given(
    seed=st.integers(0, 10_000),
    of_time=st.floats(1e-3, 1e6),
    of_size=st.sampled_from([0.25, 3.0, 1024.0]),
)
def test_units_do_not_matter(seed: int, of_time: float, of_size: float) -> None:
    """Times in other units give alpha and beta in them; sizes in other units only beta."""
    sizes = SIZES[1:]
    times = noisy(two_protocols(sizes), 0.1, seed)
    one, other = fitted(times, sizes), fitted(times * of_time, sizes * of_size)
    for first, second in zip(one, other, strict=True):
        assert second.first == pytest.approx(first.first * of_size)
        alpha, beta = first.alpha * of_time, first.beta * of_time
        assert second.alpha == pytest.approx(alpha, rel=1e-5, abs=1e-7 * of_time)
        assert second.beta * of_size == pytest.approx(beta, rel=1e-5, abs=1e-12 * of_time)
        assert second.sigma == pytest.approx(first.sigma, rel=1e-5)

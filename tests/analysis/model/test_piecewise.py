"""Curves in pieces: what is found in data whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.analysis.model.lines import Lines, fit
from omb_py.analysis.model.piecewise import Series, all_ranges, boundaries, series
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


def fitted(times: np.ndarray, sizes: np.ndarray = SIZES) -> Lines:
    return fit(series(sizes, times))


def switches(times: np.ndarray) -> int:
    return len(boundaries(all_ranges([series(SIZES, times)]))) - 2


def test_exact_times_give_their_costs_and_the_switch_back() -> None:
    lines = fitted(two_protocols(SIZES))
    assert lines.fits.alpha == pytest.approx([EAGER[0], RENDEZVOUS[0]], rel=1e-6)
    assert lines.fits.beta == pytest.approx([EAGER[1], RENDEZVOUS[1]], rel=1e-6)
    (switch,) = lines.switches
    assert (switch.after, switch.before) == (4096, 8192)
    assert (lines.first.tolist(), lines.last.tolist()) == ([0, 8192], [4096, 1 << 22])
    assert lines.rms == pytest.approx([0, 0], abs=1e-6)


def test_three_protocols_are_told_apart() -> None:
    times = np.select(
        [SIZES < 512, SIZES < 65536], [1 + 1e-4 * SIZES, 2 + 5e-4 * SIZES], 30 + 8e-5 * SIZES
    )
    lines = fitted(noisy(times, 0.01, 1))
    assert [(s.after, s.before) for s in lines.switches] == [(256, 512), (32768, 65536)]


@pytest.mark.parametrize("noise", [0.001, 0.02, 0.1, 0.3])
def test_no_switch_is_invented_on_a_straight_line(noise: float) -> None:
    """In at most 5 % of 200 noisy lines (at most 3 % with these seeds)."""
    invented = sum(switches(noisy(straight(SIZES), noise, seed)) > 0 for seed in range(200))
    assert invented <= 10


def test_a_switch_that_is_there_is_found_in_noise() -> None:
    found = [switches(noisy(two_protocols(SIZES), 0.05, seed)) for seed in range(50)]
    assert found.count(1) >= 48


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """95 % of intervals, over 200 noisy curves: 92 to 98 % where chance alone gives 93 to 97 %."""
    held = []
    for seed in range(200):
        lines = fitted(noisy(two_protocols(SIZES), 0.05, seed))
        if len(lines.first) == 2:
            (alpha_low, alpha_high), (beta_low, beta_high) = lines.intervals()
            alphas, betas = zip(EAGER, RENDEZVOUS, strict=True)
            held += ((alpha_low <= alphas) & (alphas <= alpha_high)).tolist()
            held += ((beta_low <= betas) & (betas <= beta_high)).tolist()
    assert len(held) >= 4 * 195
    assert 0.92 <= np.mean(held) <= 0.98


def test_the_switch_is_within_its_interval() -> None:
    held = [
        any(s.low <= 4096 and s.high >= 8192 for s in fitted(times).switches)
        for times in (noisy(two_protocols(SIZES), 0.08, seed) for seed in range(100))
    ]
    assert sum(held) >= 95


def test_between_two_ranges_the_band_is_of_both() -> None:
    lines = fitted(noisy(two_protocols(SIZES), 0.02, 5))
    time, low, high = lines.predict(np.array([6000.0]))
    for alpha, beta in (EAGER, RENDEZVOUS):
        assert low[0] < alpha + beta * 6000 < high[0]
    assert low[0] < time[0] < high[0]


def test_bands_widen_beyond_the_sizes_measured() -> None:
    lines = fitted(noisy(two_protocols(SIZES), 0.02, 5))
    _, low, high = lines.predict(np.array([(1 << 22) * 2.0**power for power in range(8)]))
    assert np.all(np.diff(high / low) > 0)


def test_a_point_known_badly_counts_less() -> None:
    times = straight(SIZES)
    times[10] *= 1.5
    errors = np.full(len(SIZES), np.nan)
    errors[10] = 0.5 * times[10]
    doubted, trusted = fit(series(SIZES, times, errors)), fit(series(SIZES, times))
    assert len(doubted.first) == 1
    assert doubted.fits.alpha[0] == pytest.approx(1.5, rel=1e-3)
    assert len(trusted.first) > 1


def test_costs_are_never_negative() -> None:
    falling = fitted(np.linspace(3, 2, len(SIZES)))
    steep = fitted(np.maximum(1e-4 * SIZES - 1, 1e-3), SIZES)
    for lines in (falling, steep):
        assert np.all(lines.fits.alpha >= 0)
        assert np.all(lines.fits.beta >= 0)
        (alpha_low, alpha_high), (beta_low, beta_high) = lines.intervals()
        assert np.all((alpha_low <= lines.fits.alpha) & (lines.fits.alpha <= alpha_high))
        assert np.all((beta_low <= lines.fits.beta) & (lines.fits.beta <= beta_high))


def test_two_sizes_make_a_line_without_an_interval() -> None:
    lines = fitted(np.array([2.0, 12.0]), np.array([8.0, 1048576.0]))
    assert lines.fits.alpha[0] + lines.fits.beta[0] * 8 == pytest.approx(2)
    assert np.isnan(lines.intervals()[0]).all()
    assert np.isnan(lines.predict(np.array([1024.0]))[1]).all()


def test_many_sizes_are_fitted_too() -> None:
    sizes = np.arange(1.0, 1000.0)
    times = np.where(sizes < 500, 1 + 1e-3 * sizes, 3 + 1e-3 * sizes)
    (switch,) = fitted(noisy(times, 0.02, 2), sizes).switches
    assert switch.after == pytest.approx(500, abs=15)


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
    assert other.first == pytest.approx(one.first * of_size)
    assert other.fits.alpha == pytest.approx(one.fits.alpha * of_time, rel=1e-5, abs=1e-7 * of_time)
    assert other.fits.beta * of_size == pytest.approx(
        one.fits.beta * of_time, rel=1e-5, abs=1e-12 * of_time
    )
    assert other.sigma == pytest.approx(one.sigma, rel=1e-5)


def test_curves_share_switches_but_not_costs() -> None:
    curves = [
        series(SIZES, noisy(factor * two_protocols(SIZES), 0.1, seed))
        for seed, factor in enumerate((1, 3, 7))
    ]
    assert boundaries(all_ranges(curves), len(curves)) == (0, 14, 24)


def test_repeated_sizes_stay_in_one_range() -> None:
    sizes = np.repeat(SIZES, 3)
    curve: Series = series(sizes, noisy(two_protocols(sizes), 0.05, 4))
    lines = fit(curve)
    assert sum(lines.points) == len(sizes)
    assert [(s.after, s.before) for s in lines.switches] == [(4096, 8192)]

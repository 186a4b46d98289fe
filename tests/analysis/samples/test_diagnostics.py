"""Findings in series of which the answer is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import Generator

from omb_py.analysis.samples.diagnostics import (
    LEVEL,
    MAX_FINDINGS,
    dependence,
    diagnose,
    dip,
    drift,
    findings,
    modes,
    period,
)
from omb_py.analysis.samples.series import Numbers
from tests.analysis.samples.synthetic import autoregressive, lognormal, series


@pytest.fixture
def chance() -> Generator:
    """The same random numbers in every run, whatever ran before."""
    return np.random.default_rng(20)


WITHOUT: dict[str, Callable[[Generator], Numbers]] = {
    "lognormal": lambda chance: lognormal(chance, 600),
    "narrow": lambda chance: lognormal(chance, 600, 0.02),
    "steps of the clock": lambda chance: np.round(lognormal(chance, 600, 0.05), 2),
    "a few very slow": lambda chance: (
        lognormal(chance, 600) * np.where(chance.random(600) < 0.01, 99, 1)
    ),
    "dependent": lambda chance: 2 * np.exp(0.1 * autoregressive(chance, 600, 0.6)),
}


@pytest.mark.parametrize("kind", WITHOUT)
def test_noise_raises_no_more_alarms_than_the_level_says(chance: Generator, kind: str) -> None:
    found = [diagnose(series(WITHOUT[kind](chance))) for _ in range(60)]
    allowed = 5  # of 60 at a level of 1 %: more have a probability of 1e-5
    assert LEVEL == 0.01
    for name in ("modes", "drift", "period"):
        assert sum(getattr(one, name) is not None for one in found) <= allowed


@pytest.mark.parametrize(("share", "factor"), [(0.5, 1.3), (0.3, 1.5), (0.1, 2.0)])
def test_two_speeds_are_found_with_their_medians_and_share(
    chance: Generator, share: float, factor: float
) -> None:
    slow = chance.random(3000) < share
    found = modes(lognormal(chance, 3000, 0.03) * np.where(slow, factor, 1))
    assert found is not None
    assert found.fast == pytest.approx(2, rel=0.01)
    assert found.slow == pytest.approx(2 * factor, rel=0.01)
    assert found.share == pytest.approx(share, abs=0.03)


@given(st.lists(st.integers(0, 50), min_size=4, max_size=60, unique=True))
def test_a_dip_is_between_its_bounds_and_independent_of_scale(values: list[int]) -> None:
    ordered = np.sort(np.array(values, dtype=np.float64))
    found = dip(ordered)
    assert 1 / (2 * len(ordered)) - 1e-12 <= found <= 0.25
    assert dip(3 * ordered + 7) == pytest.approx(found)
    assert dip(-ordered[::-1]) == pytest.approx(found)


def test_dips_that_are_known() -> None:
    assert dip(np.arange(100.0)) == pytest.approx(1 / 200)
    two = np.concatenate([np.linspace(0, 1e-9, 50), 1 + np.linspace(0, 1e-9, 50)])
    assert dip(two) == pytest.approx(0.25, abs=0.01)
    # as the Python package diptest 0.12 has them, a port of the authors' Fortran
    assert dip(np.array([0.0, 1, 2, 3, 10, 11, 12, 13])) == pytest.approx(0.175)
    uneven = np.array([1.0, 2, 4, 8, 16, 32, 33, 35, 36, 60])
    assert dip(uneven) == pytest.approx(0.1435483870967742)


@pytest.mark.parametrize("change", [-0.1, 0.05, 0.5])
def test_a_drift_is_found_with_its_size(chance: Generator, change: float) -> None:
    made = series(lognormal(chance, 2000, 0.05) * np.linspace(1, 1 + change, 2000))
    found = drift(made.starts, made.samples)
    assert found is not None
    assert found.change == pytest.approx(2 * change, rel=0.15)
    assert found.p < LEVEL


@pytest.mark.parametrize(("count", "seconds"), [(1000, 1e-4), (10_000, 4e-3), (10_000, 1e-3)])
@pytest.mark.parametrize("shape", ["wave", "pulse"])
def test_noise_with_a_period_is_found_with_it(
    chance: Generator, count: int, seconds: float, shape: str
) -> None:
    made = series(lognormal(chance, count, 0.1))
    phase = made.starts % seconds / seconds
    if shape == "wave":
        samples = made.samples * (1 + 0.2 * np.sin(2 * np.pi * phase))
    else:
        samples = made.samples * np.where(phase < 0.1, 4.0, 1.0)
    found = period(made.starts, samples)
    assert found is not None
    assert found.seconds == pytest.approx(seconds, rel=0.02)
    if shape == "wave":
        assert found.amplitude == pytest.approx(0.4, rel=0.2)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_dependence_is_that_of_the_series(chance: Generator, rho: float) -> None:
    found = dependence(autoregressive(chance, 20_000, rho))
    assert found.neighbours == pytest.approx(6 / np.pi * np.arcsin(rho / 2), abs=0.03)
    lags = np.arange(1, 200)
    time = 1 + 2 * (2 / np.pi * np.arcsin(rho**lags)).sum()
    assert found.time == pytest.approx(time, rel=0.2)
    assert found.effective == pytest.approx(20_000 / found.time)


def test_sentences_name_size_and_rank(chance: Generator) -> None:
    slow = np.where(chance.random(1000) < 0.3, 1.5, 1.0)
    made = [series(lognormal(chance, 1000, 0.03) * slow, 1024, rank) for rank in range(2)]
    found = findings(made)
    assert found[0].startswith("1 KiB, rank 0: There are two speeds: 2.0")
    assert "of the iterations" in found[0]
    assert "rank" not in findings(made[:1])[0]
    assert findings([series(np.ones(10))]) == []
    assert findings([series(np.ones(100))]) == []
    many = findings(made * MAX_FINDINGS)
    assert len(many) == MAX_FINDINGS + 1
    assert many[-1] == f"and {len(findings(made)) * MAX_FINDINGS - MAX_FINDINGS} more"


def test_a_drift_and_a_period_are_said_with_their_units(chance: Generator) -> None:
    made = series(lognormal(chance, 5000, 0.1))
    wave = 1 + 0.2 * np.sin(2 * np.pi * made.starts / 5e-4)
    assert any("comes back every 500" in text for text in findings([series(made.samples * wave)]))
    trend = np.linspace(1, 1.2, 5000)
    (said, *_) = findings([series(made.samples * trend)])
    assert said.startswith("8 B: Iterations become slower by 4")
    assert "from the first to the last" in said

"""Laws give back what made the data, and their bands enclose it."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from omb_py.analysis.scaling.prediction import (
    AMDAHL,
    AMDAHL_LOG,
    GUSTAFSON,
    MAX_CORNERS,
    Fit,
    Law,
    band,
    bounded,
    corners,
    fit,
    fits_of,
    laws_of,
    serial_fraction,
)
from omb_py.analysis.scaling.rows import Run
from omb_py.analysis.scaling.series import Series, series_of
from tests.analysis.scaling.tables import row
from tests.helpers.properties import examples

FRACTIONS = st.floats(0, 1)
RANKS = st.lists(st.integers(2, 512), min_size=1, max_size=7, unique=True)
FAR = [2, 64, 224, 1e4]


def amdahl(serial: float, ranks: float) -> float:
    return 1 / (serial + (1 - serial) / ranks)


def gustafson(serial: float, ranks: float) -> float:
    return ranks - serial * (ranks - 1)


def fitted(law: Law, ranks: Sequence[float], speedups: Sequence[float], spread: float = 0) -> Fit:
    medians = np.array(speedups)
    return fit(law, np.array(ranks, float), medians, medians / (1 + spread), medians * (1 + spread))


def measured(speedups: dict[int, float], scaling: str = "strong", spread: float = 0.1) -> Series:
    rows = [row(n, one, spread, scaling=scaling) for n, one in speedups.items()]
    (series,) = series_of(Run(one, "") for one in rows)
    return series


@given(FRACTIONS, RANKS)
def test_exact_amdahl_data_give_back_the_serial_fraction(serial: float, ranks: list[int]) -> None:
    found = fitted(AMDAHL, ranks, [amdahl(serial, n) for n in ranks])
    assert found.parameters[0] == pytest.approx(serial, abs=1e-9)
    assert found.error == pytest.approx(0, abs=1e-9)
    assert found.speedup(FAR)[0] == pytest.approx([amdahl(serial, n) for n in FAR], rel=1e-6)


@given(FRACTIONS, RANKS)
def test_exact_gustafson_data_give_back_the_serial_fraction(
    serial: float, ranks: list[int]
) -> None:
    found = fitted(GUSTAFSON, ranks, [gustafson(serial, n) for n in ranks])
    assert found.parameters[0] == pytest.approx(serial, abs=1e-9)


@given(FRACTIONS, st.floats(0, 0.1), st.lists(st.integers(2, 512), min_size=3, unique=True))
def test_exact_data_with_a_logarithm_give_back_both_parameters(
    serial: float, growing: float, ranks: list[int]
) -> None:
    ranks = ranks[:6]
    assume(max(ranks) >= 4 * min(ranks))
    speedups = [1 / (1 / amdahl(serial, n) + growing * log2(n)) for n in ranks]
    found = fitted(AMDAHL_LOG, ranks, speedups)
    assert found.parameters == pytest.approx([serial, growing], abs=1e-6)


@given(FRACTIONS, RANKS, st.floats(0, 0.5), st.data())
@examples(200)
def test_the_band_contains_the_truth_where_the_repeats_do(
    serial: float, ranks: list[int], spread: float, data: st.DataObject
) -> None:
    errors = [data.draw(st.floats(1 / (1 + spread), 1 + spread)) for _ in ranks]
    truths = [amdahl(serial, n) for n in ranks]
    found = fitted(AMDAHL, ranks, [t * e for t, e in zip(truths, errors, strict=True)], spread)
    _, low, high = found.speedup(FAR)
    for place, number in enumerate(FAR):
        assert low[place] <= amdahl(serial, number) * (1 + 1e-9)
        assert high[place] >= amdahl(serial, number) * (1 - 1e-9)


@given(RANKS, st.data())
@examples(200)
def test_any_speedups_give_a_band_around_the_prediction(
    ranks: list[int], data: st.DataObject
) -> None:
    speedups = [data.draw(st.floats(0.01, 2 * n)) for n in ranks]
    for law in (AMDAHL, AMDAHL_LOG, GUSTAFSON):
        if len(ranks) < len(law.parameters):
            continue
        value, low, high = fitted(law, ranks, speedups, 0.2).speedup(FAR)
        assert (low <= value).all()
        assert (value <= high).all()
        assert (low > 0).all()
        assert (high <= np.array(FAR) * (1 + 1e-12)).all()


@given(
    st.lists(st.tuples(st.floats(0.1, 5), st.floats(0.1, 5)), min_size=2, max_size=6),
    st.data(),
)
@examples(200)
def test_no_other_parameters_within_the_bounds_are_nearer(
    terms: list[tuple[float, float]], data: st.DataObject
) -> None:
    matrix = np.array(terms)
    target = np.array([[data.draw(st.floats(-5, 5)) for _ in terms]])
    found = bounded(matrix, target, (1.0, np.inf))[0]
    assert 0 <= found[0] <= 1
    assert found[1] >= 0
    minimum = ((matrix @ found - target[0]) ** 2).sum()
    for first in np.linspace(0, 1, 11):
        for second in np.linspace(0, 20, 41):
            cost = ((matrix @ [first, second] - target[0]) ** 2).sum()
            assert minimum <= cost + 1e-9 * (1 + cost)


def test_corners_are_all_ways_or_very_many() -> None:
    assert sorted(map(tuple, corners(2).tolist())) == [
        (False, False),
        (False, True),
        (True, False),
        (True, True),
    ]
    many = corners(20)
    assert many.shape == (MAX_CORNERS, 20)
    assert not many[0].any()
    assert many[1].all()


def test_more_points_tell_of_more_laws() -> None:
    assert laws_of("strong", 0) == ()
    assert laws_of("strong", 1) == (AMDAHL,)
    assert laws_of("strong", 2) == (AMDAHL, AMDAHL_LOG)
    assert laws_of("weak", 5) == (GUSTAFSON,)


def test_points_whose_ranks_share_cores_are_not_fitted() -> None:
    rows = [row(n, amdahl(0.05, n), host_cores=8) for n in (1, 2, 4, 8)]
    rows.append(row(16, 1.0, host_cores=8))
    (series,) = series_of(Run(one, "") for one in rows)
    first, second = fits_of(series)
    assert first.parameters[0] == pytest.approx(0.05)
    assert second.parameters == pytest.approx([0.05, 0], abs=1e-9)


def test_the_band_of_laws_is_that_of_any_of_them() -> None:
    fits = fits_of(measured({2: 1.9, 4: 3.4, 8: 5.5}))
    low, high = band(fits, FAR)
    for one in fits:
        _, minimum, maximum = one.speedup(FAR)
        assert (low <= minimum).all()
        assert (high >= maximum).all()


def test_a_law_does_not_describe_a_program_that_several_ranks_slow_down() -> None:
    (found,) = fits_of(measured({2: 0.1}))
    assert not found.describes
    assert fits_of(measured({2: 1.9}))[0].describes


@pytest.mark.parametrize(
    ("scaling", "speedup", "fraction"),
    [
        ("strong", amdahl(0.1, 8), 0.1),
        ("strong", 8.0, 0.0),
        ("strong", 1.0, 1.0),
        ("strong", 10.0, -1 / 35),
        ("weak", gustafson(0.1, 8), 0.1),
        ("weak", 8.0, 0.0),
    ],
)
def test_the_serial_fraction_of_one_point(scaling: str, speedup: float, fraction: float) -> None:
    (point,) = measured({8: speedup}, scaling).points
    assert serial_fraction(point, scaling) == pytest.approx(fraction)


def test_one_rank_has_no_serial_fraction() -> None:
    (point,) = measured({1: 1.0}).points
    assert serial_fraction(point, "strong") is None

"""Halves of units tell which of them are slow."""

from __future__ import annotations

import numpy as np
import pytest

from omb_py.analysis.pairs.bisection import Halves, culprits, needed, sentences
from omb_py.measure.bisection import halvings, needed_tests


def measured(
    units: int,
    slow: dict[tuple[int, ...], float],
    noise: float = 0.1,
    seed: int = 0,
) -> Halves:
    """Halves whose times are those of their slowest unit or link, with normal noise."""
    chance = np.random.default_rng(seed)
    sides = halvings(units, needed_tests(units))

    def seconds(members: set[int]) -> float:
        factor = max([1.0, *(one for who, one in slow.items() if members.issuperset(who))])
        return float(factor * np.exp(noise * chance.standard_normal()))

    times = []
    for one in sides:
        first, second = ({u for u, of in enumerate(one) if of == side} for side in (1, -1))
        times.append((seconds(first), seconds(second)))
    return Halves(tuple(f"n{unit}" for unit in range(units)), tuple(sides), tuple(times))


@pytest.mark.parametrize("units", [4, 8, 15, 100, 700])
def test_halves_are_of_one_size(units: int) -> None:
    for sides in halvings(units, 5):
        assert sides.count(1) == sides.count(-1) == units // 2
        assert sides.count(0) == units % 2


@pytest.mark.parametrize("units", [6, 16, 300])
@pytest.mark.parametrize(
    "slow",
    [
        pytest.param({}, id="nothing"),
        pytest.param({(1,): 1.5}, id="a unit"),
        pytest.param({(1,): 2.0, (4,): 2.0}, id="two units"),
        pytest.param({(0, 3): 1.6}, id="a link"),
    ],
)
def test_what_is_slow_is_found(units: int, slow: dict[tuple[int, ...], float]) -> None:
    found = culprits(measured(units, slow))
    assert sorted(one.names for one in found) == [tuple(f"n{u}" for u in who) for who in slow]


def test_the_factor_is_that_of_the_unit() -> None:
    (found,) = culprits(measured(64, {(9,): 3.0}, noise=0.05))
    assert found.factor == pytest.approx(3.0, rel=0.05)
    assert found.text.startswith("halves with n9 take ")


def test_noise_alone_is_slow_as_rarely_as_is_said() -> None:
    halves = [measured(200, {}, noise=0.2, seed=seed) for seed in range(100)]
    assert sum(bool(culprits(one)) for one in halves) <= 5


def test_sentences_say_what_was_found() -> None:
    (said,) = sentences(measured(8, {}))
    assert said.startswith("no half is slow because of one of its members: such halves would have")
    (said,) = sentences(measured(8, {(2, 5): 4.0}))
    assert said.startswith("slow: halves with both n2 and n5 take")


@pytest.mark.parametrize("seed", range(5))
def test_needed_factor_is_found_and_half_of_it_is_not(seed: int) -> None:
    factor = needed(measured(16, {}, noise=0.2, seed=seed))
    assert factor is not None
    assert culprits(measured(16, {(3,): factor**1.5}, noise=0.2, seed=seed))
    assert not culprits(measured(16, {(3,): factor**0.3}, noise=0.2, seed=seed))


def test_three_tests_are_too_few_to_find_anything() -> None:
    halves = measured(8, {(2,): 100.0})
    few = Halves(halves.names, halves.sides[:3], halves.seconds[:3])
    assert sentences(few) == ["3 tests cannot show which of them is slow"]

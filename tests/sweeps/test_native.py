"""Rounds beside native OMB: their order, when there are enough of them, and what is said then."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from omb_py.analysis.verdict import by_runs
from omb_py.sweeps.compare_native import (
    FEWEST_ROUNDS,
    Goal,
    MeasuredTurns,
    half_widths,
    orders,
    reached,
)
from tests.helpers.refusals import assert_names


def points(*intervals: tuple[float, float], rounding: float = 0.0) -> pd.DataFrame:
    """Points of ratio 1 with these intervals, at 1, 2, 4, … bytes."""
    low, high = zip(*intervals, strict=True)
    sizes = [1 << power for power in range(len(intervals))]
    known = {"bytes": sizes, "ratio": 1.0, "ratio_low": low, "ratio_high": high}
    return pd.DataFrame(known | {"rounding": rounding})


def never() -> pd.DataFrame:
    raise AssertionError("nothing was to be compared")


def test_order_of_programs_is_balanced() -> None:
    names = ["osu_latency", "native", "buffer"]
    first = [*itertools.islice(orders(names), 200)]
    assert first[1] == names[::-1]
    assert all(one == other[::-1] for one, other in zip(first[::2], first[1::2], strict=True))
    assert {tuple(order) for order in first} == set(itertools.permutations(names))
    places = [sum(order.index(name) for order in first) for name in names]
    assert len(set(places)) == 1


@pytest.mark.parametrize(
    ("goal", "rounds", "seconds", "stops"),
    [
        (Goal(rounds=5), 4, 1e9, False),
        (Goal(rounds=5), 5, 1.0, True),
        (Goal(precision=0.05, seconds=100.0), 9, 89.0, False),
        (Goal(precision=0.05, seconds=100.0), 9, 91.0, True),  # the tenth would end at 101 s
        (Goal(precision=0.05, seconds=100.0), 1, 200.0, True),
        (Goal(precision=0.05), FEWEST_ROUNDS - 2, 1.0, False),
    ],
)
def test_rounds_and_time_end_it(goal: Goal, rounds: int, seconds: float, stops: bool) -> None:
    assert goal.reached(rounds, seconds, never) is stops


def test_the_precision_of_every_ratio_ends_it() -> None:
    goal = Goal(precision=0.05)
    good, bad = (0.96, 1.04), (0.96, 1.06)
    assert goal.reached(FEWEST_ROUNDS, 1.0, lambda: points(good, good))
    assert not goal.reached(FEWEST_ROUNDS, 1.0, lambda: points(good, bad))
    assert not goal.reached(FEWEST_ROUNDS + 1, 1.0, never)  # as often early as late


def test_what_two_decimals_leave_open_is_no_reason_to_go_on() -> None:
    widths = half_widths(points((1 / 1.06, 1.06), rounding=0.02))
    assert widths.iloc[0] == pytest.approx(1.06 / 1.02 - 1)
    assert half_widths(points((np.nan, np.nan))).iloc[0] == np.inf


@pytest.mark.slow
def test_intervals_that_end_measuring_cover_the_truth() -> None:
    """Of comparisons without a difference, 5 % are expected to see one."""
    generator = np.random.default_rng(1)
    goal = Goal(precision=0.1)
    needed, wrong = [], 0
    for _ in range(100):
        base, other = np.exp(0.1 * generator.standard_normal((2, 3, 400)))
        for rounds in range(FEWEST_ROUNDS, 400, 2):
            found = by_runs(base[:, :rounds], other[:, :rounds])
            table = pd.DataFrame(
                {
                    "ratio": found.ratio,
                    "ratio_low": found.low,
                    "ratio_high": found.high,
                    "rounding": 0.0,
                }
            )
            if goal.reached(rounds, 1.0, lambda known=table: known):  # type: ignore[misc]
                break
        needed.append(rounds)
        wrong += int(((found.low > 1) | (found.high < 1)).sum())
    assert np.median(needed) < 30
    assert wrong <= 26  # of 300; chance below 1 % if 5 % are wrong and sizes are independent


@pytest.mark.parametrize(
    ("found", "goal", "says"),
    [
        (points((0.97, 1.02)), Goal(precision=0.05), "each ratio ±5 %"),
        (
            points((0.97, 1.02), (0.9, 1.1)),
            Goal(precision=0.05),
            "1 of 2 ratios ±5 %, worst 2 B ±11 % --max-time",
        ),
        (points((0.3, 1.1)), Goal(precision=0.05), "worst 1 B ±100 %"),
        (points((0.9, 1.05)), Goal(rounds=9), "±11 % worst 1 B"),
        (points((np.nan, np.nan)), Goal(rounds=1), "too few noise"),
    ],
)
def test_what_was_reached_is_said(found: pd.DataFrame, goal: Goal, says: str) -> None:
    measured = MeasuredTurns(("osu_latency", "native"), found, 9, 12.4)
    text = reached(measured, goal)
    assert text.startswith("9 rounds in 12 s: ")
    assert_names(text, says)

"""Lanes, and the times between: each against a slow way to say the same."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from omb_py.tracing.timeline.assembly import apart, gaps, innermost, nesting_lanes, outer_first

Intervals = list[tuple[int, int]]

INTERVALS = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 12)).map(lambda pair: (pair[0], sum(pair))),
    max_size=25,
)
LONG = INTERVALS.map(lambda found: [one for one in found if one[1] > one[0]])


def columns(intervals: Intervals) -> tuple[np.ndarray, np.ndarray]:
    """Beginnings and ends."""
    pairs = np.array(intervals, np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def share(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def contains(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] <= other[0] and other[1] <= one[1]


@given(LONG)
def test_in_lanes_that_lie_apart_nothing_shares_any_time(intervals: Intervals) -> None:
    lanes = apart(*columns(intervals)).tolist()
    for (a, one), (b, other) in combinations(zip(lanes, intervals, strict=True), 2):
        assert a != b or not share(one, other)


@given(LONG)
def test_there_are_no_more_lanes_than_intervals_at_a_time(intervals: Intervals) -> None:
    lanes = apart(*columns(intervals)).tolist()
    most = max((sum(a <= at < b for a, b in intervals) for at in range(50)), default=0)
    assert sorted(set(lanes)) == list(range(most))


@given(INTERVALS)
def test_in_lanes_that_nest_one_contains_the_other(intervals: Intervals) -> None:
    lanes = nesting_lanes(*columns(intervals)).tolist()
    for (a, one), (b, other) in combinations(zip(lanes, intervals, strict=True), 2):
        assert a != b or not share(one, other) or contains(one, other) or contains(other, one)


def test_what_nests_takes_one_lane() -> None:
    assert nesting_lanes(*columns([(5, 9), (0, 4), (0, 10), (2, 3), (10, 11)])).tolist() == [0] * 5
    assert nesting_lanes(*columns([(0, 10), (5, 12), (6, 11)])).tolist() == [0, 1, 1]


def test_later_of_two_equal_notes_is_outer() -> None:
    assert outer_first(*columns([(0, 5), (0, 5), (0, 9)])).tolist() == [2, 1, 0]


@given(INTERVALS)
def test_innermost_interval_began_last(intervals: Intervals) -> None:
    times, places = innermost(*columns(intervals))
    assert list(times) == sorted(set(times))
    for at in range(-1, 45):
        place = places[np.searchsorted(times, at, "right") - 1]
        around = [one for one in intervals if one[0] <= at < one[1]]
        if not around:
            assert place == -1
        else:
            latest = max(one[0] for one in around)
            shortest = min(one[1] for one in around if one[0] == latest)
            assert intervals[place] == (latest, shortest)


@given(INTERVALS, st.integers(0, 20), st.integers(20, 45))
def test_gaps_are_what_no_interval_covers(intervals: Intervals, start: int, end: int) -> None:
    begins, ends = gaps(*columns(intervals), start, end)
    free = {at for begin, until in zip(begins, ends, strict=True) for at in range(begin, until)}
    covered = {at for begin, until in intervals for at in range(begin, until)}
    assert free == set(range(start, end)) - covered
    assert all(begins < ends)

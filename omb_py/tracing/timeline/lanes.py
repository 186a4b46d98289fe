"""Lanes: which of them a slice lies in, so that what cannot contain each other lies apart."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def apart(began: NDArray[Any], ended: NDArray[Any]) -> NDArray[Any]:
    """The lane (0, 1, ...) of each interval, so that no two of a lane share any time.

    There are no more lanes than intervals that share a time (greedy colouring of an interval
    graph), and of the free lanes an interval takes the first. An interval that begins when another
    ends may follow it.
    """
    order = np.lexsort((ended, began))
    begins, ends = began[order], ended[order]
    lanes = np.zeros(len(order), np.int32)
    if len(order) == 0 or bool(np.all(begins[1:] >= ends[:-1])):
        return lanes
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    opened = 0
    for place, begin, end in zip(order.tolist(), begins.tolist(), ends.tolist(), strict=True):
        while busy and busy[0][0] <= begin:
            heappush(free, heappop(busy)[1])
        if free:
            lane = heappop(free)
        else:
            lane = opened
            opened += 1
        lanes[place] = lane
        heappush(busy, (end, lane))
    return lanes


def is_nested(began: NDArray[Any], ended: NDArray[Any]) -> NDArray[Any]:
    """The lane of each interval, so that of two in a lane that share a time one contains the other.

    An interval takes the first lane that can hold it.
    """
    lanes = np.zeros(len(began), np.int32)
    stacks: list[list[int]] = []
    order = outer_first(began, ended)
    ordered = zip(order.tolist(), began[order].tolist(), ended[order].tolist(), strict=True)
    for place, begin, end in ordered:
        lane = 0
        while lane < len(stacks) and not holds(stacks[lane], begin, end):
            lane += 1
        if lane == len(stacks):
            stacks.append([])
        stacks[lane].append(end)
        lanes[place] = lane
    return lanes


def holds(ends: list[int], begin: int, end: int) -> bool:
    """Whether an interval can lie in a lane where some are open that end so, the innermost last.

    Those that are over before it begins are closed.
    """
    while ends and ends[-1] <= begin:
        ends.pop()
    return not ends or end <= ends[-1]


def outer_first(began: NDArray[Any], ended: NDArray[Any]) -> NDArray[Any]:
    """The order of intervals by their beginning, what contains others before these.

    Of two that are the same the one that was noted last is the outer one, as it is left last.
    """
    return np.lexsort((-np.arange(len(began)), -ended, began))


def innermost(began: NDArray[Any], ended: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Which interval one is in from each of some times on: the times, and its place or -1.

    Of several it is the one that began last. Times rise, and the first is before all.
    """
    times, places = [np.iinfo(np.int64).min], [-1]
    inside: list[int] = []
    left: set[int] = set()
    ends: list[tuple[int, int]] = []

    def enter(at: int, place: int) -> None:
        if times[-1] == at:
            places[-1] = place
        elif places[-1] != place:
            times.append(at)
            places.append(place)

    def leave(until: int) -> None:
        while ends and ends[0][0] <= until:
            end, place = heappop(ends)
            left.add(place)
            while inside and inside[-1] in left:
                inside.pop()
            enter(end, inside[-1] if inside else -1)

    for place in outer_first(began, ended).tolist():
        begin, end = int(began[place]), int(ended[place])
        leave(begin)
        if end > begin:
            inside.append(place)
            heappush(ends, (end, place))
            enter(begin, place)
    leave(np.iinfo(np.int64).max)
    return np.array(times, np.int64), np.array(places, np.int64)

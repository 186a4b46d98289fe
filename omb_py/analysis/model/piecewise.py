"""Costs that are straight lines in pieces: T(n) = alpha + n beta, other values in each range.

Where the ranges meet is found by dynamic programming over all pairs of sizes (R. Bellman, *On the
approximation of curves by line segments using dynamic programming*, CACM 4, 1961). How many there
are is decided by tests, one range against two and so on: the test of G. C. Chow (*Tests of
equality between sets of coefficients in two linear regressions*, Econometrica 28, 1960), its level
divided by the number of places where the switch could be (Bonferroni), since the best of them was
looked for. Ranges are not joined: a change of protocol is a jump.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import comb

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from omb_py.analysis.model.bounded import LEVEL, Array, moments, solve

MIN_SIZES = 3
"""Message sizes in a range: two make a line, a third one says whether it is one."""

MAX_RANGES = 6

MAX_PLACES = 96
"""Places where a switch is looked for, evenly among the sizes where there are more."""

MISFIT = 0.02
"""Relative error of a line that is no reason for a switch: no machine is a line to better."""

Integers = NDArray[np.int64]
Boundaries = tuple[int, ...]
"""Indices of sizes: ranges are ``[first, second)``, ``[second, third)`` and so on."""


@dataclass(frozen=True)
class Series:
    """One curve: message sizes in bytes, times in us, and by what factor a point's error has more
    variance than usual (at least 1)."""

    sizes: Array
    times: Array
    variances: Array


def series(sizes: Array, times: Array, errors: Array | None = None) -> Series:
    """A curve from ``errors``, the standard errors of the times where known (NaN where not).

    An error far below `MISFIT` says nothing, since no curve is a line to better than that; a
    larger one makes its point count less.
    """
    relative = np.zeros_like(times) if errors is None else np.nan_to_num(errors / times)
    return Series(sizes, times, 1 + (relative / MISFIT) ** 2)


@dataclass(frozen=True)
class Ranges:
    """How well a line fits each range of sizes.

    ``sizes`` are the different ones of all curves, ``places`` those indices among them at which a
    range may start or end. ``cost`` (start, end) is the sum of the squared relative errors of all
    curves between two places, infinite where too few sizes are. ``points`` is how many there are.
    """

    sizes: Array
    places: Integers
    cost: Array
    points: int


def all_ranges(curves: Sequence[Series]) -> Ranges:
    """Fit every range of sizes, each curve with costs of its own.

    Errors are relative to the times themselves, so that one that is much too long spoils no more
    than its own point. A range has `MIN_SIZES`, fewer only where there are fewer in all.
    """
    sizes = np.unique(np.concatenate([curve.sizes for curve in curves]))
    places, starts, ends = ranges_of(len(sizes))
    index = np.arange(len(sizes))
    inside = (index >= places[starts][:, None]) & (index < places[ends][:, None])
    few = inside.sum(axis=1) < min(len(sizes), MIN_SIZES)
    found = np.zeros(len(starts))
    scale = max(float(sizes[-1]), 1.0)
    for curve in curves:
        products = moments(np.ones_like(curve.sizes), curve.sizes / scale, curve.times)
        of_sizes = np.zeros((len(sizes), products.shape[-1]))
        weighted = products / (curve.variances * curve.times**2)[:, None]
        np.add.at(of_sizes, np.searchsorted(sizes, curve.sizes), weighted)
        found += solve(inside.astype(float) @ of_sizes).cost
    cost = np.full((len(places), len(places)), np.inf)
    cost[starts, ends] = np.where(few, np.inf, found)
    return Ranges(sizes, places, cost, sum(len(curve.times) for curve in curves))


@lru_cache(maxsize=64)
def ranges_of(count: int) -> tuple[Integers, Integers, Integers]:
    """Places among ``count`` sizes where a range may start or end, and all pairs of them."""
    places = np.unique(np.linspace(0, count, min(count, MAX_PLACES) + 1).round().astype(np.int64))
    starts, ends = np.triu_indices(len(places), 1)
    return places, starts, ends


def boundaries(ranges: Ranges, curves: int = 1) -> Boundaries:
    """Where ranges meet.

    From the fewest on, more ranges are taken as soon as any greater number of them fits better
    than chance would explain; ``curves`` have two costs each in every range.
    """
    count = len(ranges.places)
    best = [ranges.cost[0]]
    before: list[Integers] = []
    for _ in range(1, min(MAX_RANGES, len(ranges.sizes) // MIN_SIZES)):
        whole = best[-1][:, None] + ranges.cost
        before.append(whole.argmin(axis=0))
        best.append(whole.min(axis=0))
    totals = [float(ends[-1]) for ends in best]
    path = [count - 1]
    for step in range(number_of_ranges(totals, ranges.points, count - 1, curves) - 2, -1, -1):
        path.append(int(before[step][path[-1]]))
    return tuple(ranges.places[[0, *reversed(path)]].tolist())


def number_of_ranges(totals: Sequence[float], points: int, places: int, curves: int) -> int:
    """How many ranges the costs ``totals`` of one, two and more of them speak for."""
    misfit = points * MISFIT**2
    chosen = 1
    for more in range(2, len(totals) + 1):
        threshold = critical(chosen, more, points, places, curves)
        if totals[chosen - 1] + misfit > threshold * (totals[more - 1] + misfit):
            chosen = more
    return chosen


@lru_cache(maxsize=4096)
def critical(fewer: int, more: int, points: int, places: int, curves: int) -> float:
    """The quotient of two costs that chance exceeds in 5 % of curves without more switches."""
    extra = 2 * curves * (more - fewer)
    degrees = points - 2 * curves * more
    if degrees < 1:
        return float("inf")
    between = max(more - fewer, places - 1 - 2 * (MIN_SIZES - 1))
    choices = comb(between, more - fewer)
    limit = stats.f.isf((1 - LEVEL) / choices, extra, degrees)
    return float(1 + limit * extra / degrees)


def profile(ranges: Ranges, path: Boundaries, degrees: int) -> list[tuple[int, int]]:
    """For each switch, the outermost boundaries that fit hardly worse.

    The others stay where they are. Boundaries are those that a likelihood ratio does not reject at
    5 % (B. E. Hansen, *Sample splitting and threshold estimation*, Econometrica 68, 2000).
    """
    costs = ranges.cost
    steps = np.searchsorted(ranges.places, path)
    total = float(sum(costs[i, j] for i, j in pairwise(steps)))
    misfit = ranges.points * MISFIT**2
    limit = (total + misfit) * (1 + stats.f.ppf(LEVEL, 1, max(1, degrees)) / max(1, degrees))
    found = []
    for left, here, right in zip(steps, steps[1:], steps[2:], strict=False):
        moved = total + misfit - costs[left, here] - costs[here, right]
        moved = moved + costs[left, left + 1 : right] + costs[left + 1 : right, right]
        good = np.flatnonzero(moved <= limit) + left + 1
        found.append((int(ranges.places[good.min()]), int(ranges.places[good.max()])))
    return found

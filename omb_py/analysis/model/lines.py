"""Times as alpha + beta n, with other values in each range of message sizes n.

Errors are relative, and neither alpha nor beta is below zero. Where ranges meet is found by dynamic
programming over all pairs of sizes (R. Bellman, *On the approximation of curves by line segments
using dynamic programming*, CACM 4, 1961). How many there are is decided by tests, one range against
two and so on: the test of G. C. Chow (*Tests of equality between sets of coefficients in two linear
regressions*, Econometrica 28, 1960), its level divided by the number of places where the switch
could be (Bonferroni), since the best of them was looked for. Ranges are not joined: a change of
protocol is a jump.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, pairwise
from math import comb, inf, nan, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import nnls

Array = NDArray[np.float64]

LEVEL = 0.95
"""Confidence of all intervals."""

NORMAL = float(stats.norm.ppf((1 + LEVEL) / 2))
"""The normal distribution's quantile for it."""

MISFIT = 0.02
"""Relative error of a line that is no reason for a switch: no machine is a line to better."""

MIN_SIZES = 3
"""The fewest message sizes of a range: two define a line, a third one tests it."""

MAX_RANGES = 6

MAX_PLACES = 96
"""Places where a switch is looked for, evenly among the sizes if there are more."""

MAX_STEPS, CLOSE = 20, 1e-6
"""Steps of `fit` at most, and the relative change of all times at which it stops."""

MIN_FACTOR = 0.2
"""A step of `fit` lowers no time to less than this part of it."""

DIGITS = 9
"""Decimals beyond which differences are rounding."""

PARALLEL = 1e-5
"""Singular value of the normalized terms of alpha and beta below which they are multiples."""


@dataclass(frozen=True)
class Points:
    """Measured times in us, with message sizes in bytes.

    ``variances`` are the factors of the points' variances over the usual one (at least 1).
    """

    sizes: Array
    times: Array
    variances: Array

    def between(self, first: float, last: float) -> Points:
        """Return those of sizes from ``first`` to ``last``."""
        chosen = (self.sizes >= first) & (self.sizes <= last)
        return Points(self.sizes[chosen], self.times[chosen], self.variances[chosen])


@dataclass(frozen=True)
class Fit:
    """alpha + beta n for messages of ``first`` to ``last`` bytes, by ``points``.

    ``inverse`` times the variance of a relative error is the covariance of alpha and beta. ``cost``
    is the sum of squared logarithmic errors, ``rms`` and ``worst`` are relative errors; ``sigma``
    is the standard deviation of the errors with ``degrees`` of freedom, NaN without any. Where the
    points do not determine both, ``alpha`` has all and ``beta`` is zero.
    """

    first: float
    last: float
    points: int
    alpha: float
    beta: float
    inverse: Array
    cost: float
    rms: float
    worst: float
    degrees: int
    sigma: float

    def intervals(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return the 95 % intervals of alpha and of beta; NaN without degrees of freedom."""
        reach = quantile(self.degrees) * self.sigma * np.sqrt(np.diagonal(self.inverse))
        costs = np.array([self.alpha, self.beta])
        low, high = np.maximum(0.0, costs - reach).tolist(), (costs + reach).tolist()
        return (low[0], high[0]), (low[1], high[1])


@lru_cache(maxsize=4096)
def quantile(degrees: int) -> float:
    """Return Student's t for two-sided 95 %; NaN without degrees of freedom."""
    return float(stats.t.ppf((1 + LEVEL) / 2, degrees)) if degrees > 0 else nan


def fit(points: Points) -> Fit:
    """Fit the alpha and beta with the minimum squares of the differences of logarithms.

    Logarithms, because errors are factors: half the time and twice the time are as bad, and noise
    of either sign cancels. By Gauss-Newton steps, from the minimum squares of errors relative to
    the times themselves.
    """
    scale = float(points.sizes.max()) or 1.0
    both = np.stack([np.ones_like(points.sizes), points.sizes / scale], axis=1)
    relative = both / points.times[:, None]
    relative /= np.maximum(np.linalg.norm(relative, axis=0), np.finfo(float).tiny)
    used = [0, 1] if np.linalg.matrix_rank(relative, tol=PARALLEL) > 1 else [0]
    target = expected = points.times
    for _ in range(MAX_STEPS):
        weights = 1 / (expected * np.sqrt(points.variances))
        weighted = both[:, used] * weights[:, None]
        costs, _ = nnls(weighted, target * weights)
        times = both[:, used] @ costs
        new = np.where(times > 1e-6 * points.times, times, points.times)
        change = np.abs(np.log(new / expected)).max()
        expected = new
        target = expected * np.maximum(MIN_FACTOR, 1 + np.log(points.times / expected))
        if change < CLOSE:
            break
    costs[costs * both[:, used].max(axis=0) < 10.0**-DIGITS * points.times.min()] = 0.0
    alpha, beta = [*costs.tolist(), 0.0][:2]
    units = np.array([1.0, scale])
    inverse = np.zeros((2, 2))
    inverse[np.ix_(used, used)] = np.linalg.inv(weighted.T @ weighted)
    cost = float((np.log(points.times / expected) ** 2 / points.variances).sum())
    cost = cost if cost > 100.0**-DIGITS else 0.0
    degrees = len(times) - len(used)
    factors = np.full(len(times), inf)
    np.divide(points.times, times, out=factors, where=times > 0)
    errors = np.abs(factors - 1)
    return Fit(
        first=float(points.sizes.min()),
        last=float(points.sizes.max()),
        points=len(times),
        alpha=alpha,
        beta=beta / scale,
        inverse=inverse / np.outer(units, units),
        cost=cost,
        rms=float(np.sqrt(np.mean(errors**2))),
        worst=float(errors.max()),
        degrees=degrees,
        sigma=sqrt(cost / degrees) if degrees > 0 else nan,
    )


def lines(points: Points) -> tuple[Fit, ...]:
    """Fit alpha + n beta to one curve, in as many ranges as it has, with one scatter for all."""
    fits = [fit(points.between(*ends)) for ends in ranges(points)]
    degrees = len(points.times) - 2 * len(fits) - (len(fits) - 1)  # a switch is fitted, too
    cost = sum(one.cost for one in fits)
    sigma = sqrt(cost / degrees) if degrees > 0 else nan
    return tuple(replace(one, sigma=sigma, degrees=degrees) for one in fits)


def ranges(points: Points) -> list[tuple[float, float]]:
    """Return the first and last size of each range.

    From one range on, more are taken as soon as any greater number of them fits better than chance
    would explain.
    """
    sizes = np.unique(points.sizes)
    count = len(sizes)
    places = np.unique(np.linspace(0, count, min(count, MAX_PLACES) + 1).round().astype(int))
    cost = range_costs(points, sizes, places)
    misfit = len(points.times) * MISFIT**2
    totals, before = [cost[0]], []
    for _ in range(1, min(MAX_RANGES, count // MIN_SIZES)):
        extended = totals[-1][:, None] + cost
        before.append(extended.argmin(axis=0))
        totals.append(extended.min(axis=0))
    number = 1
    for more in range(2, len(totals) + 1):
        threshold = critical(number, more, len(points.times), len(places) - 2)
        if totals[number - 1][-1] + misfit > threshold * (totals[more - 1][-1] + misfit):
            number = more
    path = [len(places) - 1]
    for step in range(number - 2, -1, -1):
        path.append(int(before[step][path[-1]]))
    ends = places[[0, *reversed(path)]].tolist()
    return [(float(sizes[start]), float(sizes[end - 1])) for start, end in pairwise(ends)]


def range_costs(points: Points, sizes: Array, places: NDArray[np.int64]) -> Array:
    """Return the misfit of one line from each place to each later one: rows begin, columns end it.

    ``places`` are indices into the ``sizes`` (bytes, ascending) where a line may begin or end. The
    misfit is the sum of the squared errors, infinite if there are too few sizes. Errors are
    relative to the times themselves, so that one that is much too long spoils only its own point.
    """
    cost = np.full((len(places), len(places)), inf)
    fewest = min(len(sizes), MIN_SIZES)
    order = np.argsort(points.sizes, kind="stable")
    target = 1 / np.sqrt(points.variances[order])
    terms = np.stack([np.ones_like(order), points.sizes[order] / max(sizes[-1], 1.0)], axis=1)
    terms *= (target / points.times[order])[:, None]
    ends = np.searchsorted(points.sizes[order], [*sizes, inf])[places].tolist()
    for start, end in combinations(range(len(places)), 2):
        if places[end] - places[start] >= fewest:
            inside = slice(ends[start], ends[end])
            cost[start, end] = nnls(terms[inside], target[inside])[1] ** 2
    return cost


@lru_cache(maxsize=4096)
def critical(fewer: int, more: int, points: int, places: int) -> float:
    """Return the quotient of two costs that chance exceeds in 5 % of curves without more switches.

    ``places`` is where a switch can be.
    """
    extra = 2 * (more - fewer)
    degrees = points - 2 * more
    if degrees < 1:
        return inf
    choices = comb(max(more - fewer, places - 2 * (MIN_SIZES - 1)), more - fewer)
    limit = stats.f.isf((1 - LEVEL) / choices, extra, degrees)
    return float(1 + limit * extra / degrees)

"""Times as the sum of two costs, neither below zero: T = alpha x + beta y.

Errors count relative to the time: a fit that is 1 us off at 2 us is worse than one at 2 ms.
Functions work on stacks of fits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

LEVEL = 0.95
"""Confidence of all intervals and bands."""

NORMAL = float(stats.norm.ppf((1 + LEVEL) / 2))
"""The normal distribution's quantile for it."""

WIDEST = 50.0
"""Natural logarithm of the widest band's reach; beyond it there is no prediction anyway."""

MAX_STEPS = 20
CLOSE = 1e-6
"""Relative change of all times at which `fit` stops."""

MIN_FACTOR = 0.2
"""A step of `fit` lowers no time to less than this part of it."""

TINY = np.finfo(np.float64).tiny


def moments(x: Array, y: Array, times: Array) -> Array:
    """The six products of each point that a fit needs sums of, along a new last dimension."""
    products = np.empty((*times.shape, 6))
    for index, product in enumerate((x * x, x * y, y * y, x * times, y * times, times * times)):
        products[..., index] = product
    return products


@dataclass(frozen=True)
class Fits:
    """A stack of fits.

    ``alpha`` and ``beta`` minimise ``cost``, the sum of the squared errors, among values that are
    not negative. ``inverse`` times the variance of a relative error is their covariance. Where the
    points cannot tell the two apart (one message size), ``alpha`` has all and ``beta`` is zero.
    """

    alpha: Array
    beta: Array
    cost: Array
    inverse: Array

    def at(self, index: Any) -> Fits:
        """Some of the fits."""
        return Fits(
            self.alpha[index],
            self.beta[index],
            self.cost[index],
            self.inverse[index],
        )


def solve(sums: Array) -> Fits:
    """The fits whose weighted sums of `moments` are ``sums``, of shape (..., 6).

    Of two unknowns at most one is at its bound, for times are positive; so the best fit within
    bounds is the free one, or the one with the offending unknown at zero.
    """
    xx, xy, yy, xt, yt, tt = np.moveaxis(sums, -1, 0)
    determinant = xx * yy - xy * xy
    told = determinant > 1e-10 * xx * yy
    safe = np.where(told, determinant, 1.0)
    only_x = xt / np.where(xx > 0, xx, 1.0)
    only_y = yt / np.where(yy > 0, yy, 1.0)
    free_alpha = np.where(told, (xt * yy - xy * yt) / safe, np.where(xx > 0, only_x, 0.0))
    free_beta = np.where(told, (xx * yt - xy * xt) / safe, np.where(xx > 0, 0.0, only_y))
    alpha = np.where(free_alpha < 0, 0.0, np.where(free_beta < 0, only_x, free_alpha))
    beta = np.where(free_beta < 0, 0.0, np.where(free_alpha < 0, only_y, free_beta))
    cost = (
        tt - 2 * (alpha * xt + beta * yt)
        + alpha * alpha * xx + 2 * alpha * beta * xy + beta * beta * yy
    )  # fmt: skip
    inverse = np.empty((*xx.shape, 2, 2))
    inverse[..., 0, 0] = np.where(told, yy / safe, 1 / np.where(xx > 0, xx, np.inf))
    inverse[..., 1, 1] = np.where(told, xx / safe, np.where(xx > 0, 0.0, 1 / np.maximum(yy, TINY)))
    inverse[..., 0, 1] = inverse[..., 1, 0] = np.where(told, -xy / safe, 0.0)
    return Fits(alpha, beta, np.maximum(cost, 0.0), inverse)


def fit(x: Array, y: Array, times: Array, variances: Array, belongs: Mask) -> tuple[Fits, Array]:
    """The fits with the minimum squares of the differences of logarithms, and their times.

    ``belongs`` (points, fits) tells which points each fit is of; a point is of one fit at most.
    ``variances`` make points count less. Times by the fits are NaN at points of none. Logarithms,
    because errors are factors: half the time and twice the time are as bad, and noise of either
    sign cancels. By Gauss-Newton steps, from the minimum squares of errors relative to the times
    themselves.
    """
    member = belongs.astype(float)
    target, expected = times, times
    for _ in range(MAX_STEPS):
        weighted = moments(x, y, target) / (variances * expected**2)[:, None]
        fits = solve(member.T @ weighted)
        time = (member @ fits.alpha) * x + (member @ fits.beta) * y
        new = np.where(time > 1e-6 * times, time, times)
        change = float(np.abs(np.log(new / expected)).max())
        expected = new
        target = expected * np.maximum(MIN_FACTOR, 1 + np.log(times / expected))
        if change < CLOSE:
            break
    cost = member.T @ (np.log(times / expected) ** 2 / variances)
    return replace(fits, cost=cost), np.where(belongs.any(axis=1), time, np.nan)


def relative_variance(fits: Fits, x: Array, y: Array, time: Array) -> Array:
    """Variance of ``alpha x + beta y`` over its square, for relative errors of variance one."""
    inverse = fits.inverse
    variance = (
        x * x * inverse[..., 0, 0] + 2 * x * y * inverse[..., 0, 1] + y * y * inverse[..., 1, 1]
    )
    return variance / (time * time)


def interval(estimate: Array, error: Array, degrees: int) -> tuple[Array, Array]:
    """The 95 % interval of a cost that is not negative; no limits without degrees of freedom."""
    if degrees < 1:
        return np.full_like(estimate, np.nan), np.full_like(estimate, np.nan)
    reach = quantile(degrees) * error
    return np.maximum(0.0, estimate - reach), estimate + reach


@lru_cache(maxsize=4096)
def quantile(degrees: int) -> float:
    """Student's t for two-sided 95 % (infinite degrees give 1.96)."""
    return float(stats.t.ppf(0.5 + LEVEL / 2, degrees)) if degrees > 0 else float("nan")

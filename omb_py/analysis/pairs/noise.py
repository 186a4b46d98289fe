"""Median polish of matrices, and how far normal noise alone goes in them.

Polish is that of J. W. Tukey, Exploratory Data Analysis, 1977, chapter 11: a few slow links do not
move it. Functions take a matrix, or several with the same pairs along the first dimension; what was
not measured is NaN.
"""

from __future__ import annotations

from functools import lru_cache
from statistics import NormalDist

import numpy as np

from omb_py.analysis.pairs.matrix import Mask, Numbers
from omb_py.core.dataclass import dataclass

FEWEST_PARTNERS = 3
"""Partners that each sender and receiver needs to be judged; else pairs alone are."""

FEW_DIRECTIONS = 12
"""Directions of a kind from which on their spread says something. The baseline of fewer is the
first quartile of their times, and else the median."""

NORMAL = NormalDist()

SCALE_PERCENT = 70
"""The noise is this percentile of the remainders' amounts, in units of what it is of normal noise
of standard deviation 1. The median would do, but for small matrices, half of whose remainders
polishing makes 0; up to 30 of 100 pairs may be slow."""

SMALLEST_NOISE = 0.005
"""Noise that is assumed at least: values repeat where the clock is coarse."""

SIMULATED_UNITS = 20
SIMULATIONS = 2000
"""Limits of small matrices are simulated, for polishing takes a part of their noise away; in larger
ones, a sender or receiver has at least as many pairs to be judged."""

ROUNDS = 6
"""Of median polish; it has settled then but for some thousandths of the noise."""


@dataclass(frozen=True)
class Limits:
    """Times the noise that normal noise exceeds in a share of all matrices.

    ``units`` is that of senders and receivers and ``rest`` that of what they leave of pairs; both
    are None where senders and receivers are not judged. ``pairs`` is that of pairs next to all
    others, ``plain`` the same in units of `direction_scale`.
    """

    units: float | None
    rest: float | None
    pairs: float
    plain: float


def polish(costs: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Return what senders and receivers add to the median, and what remains.

    A sender or receiver without pairs adds nothing.
    """
    rest = costs - np.nanmedian(costs, axis=(-2, -1), keepdims=True)
    ends = [(np.zeros(costs.shape[:-1]), axis) for axis in (-1, -2)]
    for _ in range(ROUNDS):
        for added, axis in ends:
            step = np.nan_to_num(np.nanmedian(rest, axis=axis))
            rest -= np.expand_dims(step, axis)
            added += step
    for added, axis in ends:
        without = np.isnan(costs).all(axis=axis)
        added[without] = np.nan
        added -= np.nanmedian(added, axis=-1, keepdims=True)
        added[without] = 0.0
    return ends[0][0], ends[1][0], rest


def from_baseline(costs: Numbers) -> Numbers:
    """Return differences from the baseline of all pairs.

    The baseline is one of the values, so that it is fast where exactly half of them are slow.
    """
    measured = np.isfinite(costs).reshape(-1, *costs.shape[-2:])[0]
    low = 0.25 if measured.sum() < FEW_DIRECTIONS else 0.5
    baseline = np.quantile(costs[..., measured], low, axis=-1, method="lower")
    return np.asarray(costs - baseline[..., None, None])


def scale(rest: Numbers) -> Numbers:
    """Return the standard deviation of the noise, which a few large values do not move."""
    axes = (-2, -1) if rest.ndim > 1 else None
    found = np.nanpercentile(np.abs(rest), SCALE_PERCENT, axis=axes)
    return np.asarray(found / NORMAL.inv_cdf(0.5 + SCALE_PERCENT / 200))


def at_least(noise: Numbers) -> float:
    """Return what `scale` or `direction_scale` found of one matrix, or `SMALLEST_NOISE`."""
    return max(SMALLEST_NOISE, float(noise))


def direction_scale(rest: Numbers) -> Numbers:
    """Return the standard deviation of the noise by what the directions of each pair differ by.

    Slow pairs do not move it, however many, if they are slow in both directions. Infinite where no
    pair was measured in both.
    """
    apart = np.abs(rest - np.swapaxes(rest, -2, -1)) / np.sqrt(2)
    found = np.nanmedian(apart, axis=(-2, -1)) / NORMAL.inv_cdf(0.75)
    return np.asarray(np.nan_to_num(found, nan=np.inf))


def limits(measured: Mask, alarms: float) -> Limits:
    """Return how many times the noise is exceeded in a share ``alarms`` of matrices.

    Half of the share is left to senders and receivers. They are judged if all have
    `FEWEST_PARTNERS`, and in large matrices as many as in the largest of small ones.
    """
    used = measured.any(axis=0) | measured.any(axis=1)
    measured = measured[np.ix_(used, used)]
    if len(measured) <= SIMULATED_UNITS:
        return simulated_limits(np.packbits(measured).tobytes(), len(measured), alarms)
    fewest, directions = fewest_partners(measured), int(measured.sum())
    if fewest < SIMULATED_UNITS:
        of_pairs = quantile(alarms / directions)
        return Limits(None, None, of_pairs, of_pairs)
    of_pairs = quantile(alarms / 2 / directions)
    of_units = quantile(alarms / 4 / len(measured)) * error_of_median(fewest)
    return Limits(of_units, of_pairs, of_pairs, of_pairs)


@lru_cache(maxsize=64)
def simulated_limits(packed: bytes, units: int, alarms: float) -> Limits:
    """`limits` of a small matrix, by what polish and baseline make of simulated noise."""
    flat = np.unpackbits(np.frombuffer(packed, np.uint8), count=units * units)
    measured = flat.reshape(units, units).astype(bool)
    of_units = fewest_partners(measured) >= FEWEST_PARTNERS
    chance = np.random.default_rng(units)
    noise = np.where(measured, chance.standard_normal((SIMULATIONS, units, units)), np.nan)

    def limit(largest: Numbers, scales: Numbers) -> float:
        return float(np.quantile(largest / scales, 1 - alarms / (2 if of_units else 1)))

    beside = from_baseline(noise)
    worst = np.nanmax(beside, axis=(-2, -1))
    of_pairs, plain = limit(worst, scale(beside)), limit(worst, direction_scale(beside))
    if not of_units:
        return Limits(None, None, of_pairs, plain)
    senders, receivers, rest = polish(noise)
    largest = np.maximum(senders.max(axis=-1), receivers.max(axis=-1))
    of_rest = limit(np.nanmax(rest, axis=(-2, -1)), scale(rest))
    return Limits(limit(largest, scale(rest)), of_rest, of_pairs, plain)


def fewest_partners(measured: Mask) -> int:
    """Return the number of partners of the unit with the fewest, among those that have any."""
    partners = np.concatenate([measured.sum(axis=0), measured.sum(axis=1)])
    return int(partners[partners > 0].min())


def error_of_median(values: int) -> float:
    """Return the standard deviation of the median of so many values of standard deviation 1."""
    return float((np.pi / 2 / values) ** 0.5)


def quantile(exceeding: float) -> float:
    """Return what normal noise of standard deviation 1 exceeds with a probability."""
    return NORMAL.inv_cdf(1 - exceeding)

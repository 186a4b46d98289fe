"""A fitted curve: its ranges with their costs, its switches, and what it predicts."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from omb_py.analysis.model.bounded import (
    NORMAL,
    WIDEST,
    Array,
    Fits,
    Mask,
    interval,
    quantile,
    relative_variance,
)
from omb_py.analysis.model.bounded import fit as fit_all
from omb_py.analysis.model.piecewise import (
    MISFIT,
    Boundaries,
    Integers,
    Ranges,
    Series,
    all_ranges,
    boundaries,
    profile,
)

GROWTH = 0.05
"""Relative error added for each doubling beyond the measured range."""


@dataclass(frozen=True)
class Switch:
    """Where one range ends and the next begins: between sizes ``after`` and ``before`` if the best
    fit is right, between ``low`` and ``high`` with 95 % confidence. Bytes."""

    after: float
    before: float
    low: float
    high: float


@dataclass(frozen=True)
class Lines:
    """T(n) = alpha + n beta in ranges of message sizes.

    Range ``i`` is from the measured size ``first[i]`` to ``last[i]``; ``fits[i]`` are its costs.
    ``sigma`` is the standard deviation of the relative errors about the lines, over all ranges,
    with ``degrees`` of freedom; NaN where there are none. ``rms`` and ``worst`` are of each
    range.
    """

    first: Array
    last: Array
    fits: Fits
    sigma: float
    degrees: int
    rms: Array
    worst: Array
    points: tuple[int, ...]
    switches: tuple[Switch, ...]

    def errors(self) -> tuple[Array, Array]:
        """Standard errors of alpha and beta."""
        diagonal = np.diagonal(self.fits.inverse, axis1=-2, axis2=-1)
        return self.sigma * np.sqrt(diagonal[:, 0]), self.sigma * np.sqrt(diagonal[:, 1])

    def intervals(self) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """The 95 % intervals of alpha and of beta."""
        of_alpha, of_beta = self.errors()
        return (
            interval(self.fits.alpha, of_alpha, self.degrees),
            interval(self.fits.beta, of_beta, self.degrees),
        )

    def predict(self, sizes: Array) -> tuple[Array, Array, Array]:
        """Times of messages, and the 95 % band of one measured anew.

        Between two ranges it is not known which one goes on: the band is of both, the time the
        geometric mean. From one size nothing follows for others (NaN).
        """
        below = np.clip(np.searchsorted(self.first, sizes, side="right") - 1, 0, None)
        above = np.where(sizes > self.last[below], below + 1, below)
        above = np.minimum(above, len(self.first) - 1)
        time, low, high = self.of_range(below, sizes)
        if np.array_equal(below, above):
            return time, low, high
        other, other_low, other_high = self.of_range(above, sizes)
        return np.sqrt(time * other), np.minimum(low, other_low), np.maximum(high, other_high)

    def of_range(self, index: Integers, sizes: Array) -> tuple[Array, Array, Array]:
        """What `predict` gives, by the costs of one range."""
        fits = self.fits.at(index)
        time = fits.alpha + fits.beta * sizes
        if self.first[0] == self.last[-1]:
            time = np.where(sizes == self.first[0], time, np.nan)
        time = np.where(time > 0, time, np.nan)
        parameters = relative_variance(fits, np.ones_like(sizes), sizes, time)
        edges = np.clip(sizes, self.first[0], self.last[-1])
        at_edge = fits.alpha + fits.beta * edges
        parameters = np.maximum(
            parameters, relative_variance(fits, np.ones_like(sizes), edges, at_edge)
        )
        distance = doublings(sizes, self.first[0], self.last[-1])
        # a curve that happens to lie on its line says no more of sizes beyond than any other
        scatter = np.where(distance > 0, np.maximum(self.sigma, MISFIT), self.sigma)
        squared = quantile(self.degrees) ** 2 * (self.sigma**2 + scatter**2 * parameters)
        squared = squared + (NORMAL * GROWTH * distance) ** 2
        reach = np.exp(np.minimum(np.sqrt(squared), WIDEST))
        return time, time / reach, time * reach


def doublings(values: Array, low: float, high: float) -> Array:
    """How many doublings a size or number of ranks is outside what was measured; 0 inside."""
    places, first, last = (np.log2(np.maximum(v, 1.0)) for v in (values, np.float64(low), high))
    distance: Array = np.maximum(0.0, np.maximum(places - last, first - places))
    return distance


def fit(curve: Series) -> Lines:
    """The lines of a curve, and its switches."""
    ranges = all_ranges([curve])
    path = boundaries(ranges)
    place = np.searchsorted(ranges.sizes, curve.sizes)
    number = np.searchsorted(path, place, side="right") - 1
    belongs = number[:, None] == np.arange(len(path) - 1)
    scale = max(float(ranges.sizes[-1]), 1.0)
    scaled = curve.sizes / scale
    fits, times = fit_all(np.ones_like(scaled), scaled, curve.times, curve.variances, belongs)
    error = np.abs(curve.times / times - 1)
    found = lines_of(curve, belongs, error, unscaled(fits, scale))
    return replace(found, switches=switches_of(ranges, path, found.degrees))


def unscaled(fits: Fits, scale: float) -> Fits:
    """Fits with ``beta`` per byte, not per ``scale`` bytes."""
    units = np.array([1.0, scale])
    return replace(
        fits,
        beta=fits.beta / scale,
        inverse=fits.inverse / np.outer(units, units),
    )


def lines_of(curve: Series, belongs: Mask, error: Array, fits: Fits) -> Lines:
    """The lines that ``fits`` are, each of the points that belong to it; without switches."""
    members = [np.flatnonzero(column) for column in belongs.T]
    count = int(belongs.sum())
    degrees = count - 2 * len(members) - (len(members) - 1)
    if not fits.inverse[0, 1, 1]:
        degrees = count - 1
    variance = float(fits.cost.sum()) / degrees if degrees > 0 else float("nan")
    return Lines(
        np.array([curve.sizes[points].min() for points in members]),
        np.array([curve.sizes[points].max() for points in members]),
        fits,
        float(np.sqrt(variance)),
        degrees,
        np.array([np.sqrt(np.mean(error[points] ** 2)) for points in members]),
        np.array([error[points].max() for points in members]),
        tuple(map(len, members)),
        (),
    )


def switches_of(ranges: Ranges, path: Boundaries, degrees: int) -> tuple[Switch, ...]:
    """The switches at the inner boundaries."""
    sizes = ranges.sizes
    return tuple(
        Switch(*(float(size) for size in (sizes[at - 1], sizes[at], sizes[low - 1], sizes[high])))
        for at, (low, high) in zip(path[1:-1], profile(ranges, path, degrees), strict=True)
    )

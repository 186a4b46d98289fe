"""Textbook formulas fitted to a collective's times over numbers of ranks and message sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from omb_py.analysis.model.bounded import Array, Fits, Mask, interval
from omb_py.analysis.model.bounded import fit as fit_all
from omb_py.analysis.model.costs import Shape
from omb_py.analysis.model.lines import Switch, switches_of
from omb_py.analysis.model.piecewise import Series, all_ranges, boundaries

AS_WELL = 1.5
"""Times the error of the best formula, up to which others fit as well."""


@dataclass(frozen=True)
class Points:
    """Measured times in us: ranks, message sizes in bytes, and `Series.variances`."""

    ranks: Array
    sizes: Array
    times: Array
    variances: Array

    def where(self, chosen: Mask) -> Points:
        """Some of them."""
        return Points(
            self.ranks[chosen], self.sizes[chosen], self.times[chosen], self.variances[chosen]
        )

    def curve(self, ranks: float) -> Series:
        """Those of one number of ranks."""
        here = self.where(self.ranks == ranks)
        return Series(here.sizes, here.times, here.variances)


@dataclass(frozen=True)
class Candidate:
    """A formula's fit to a range of sizes.

    ``fits`` holds one fit; ``sigma`` and ``degrees`` are as in `Lines`. ``rms`` and ``worst`` are
    relative errors.
    """

    shape: Shape
    fits: Fits
    sigma: float
    degrees: int
    rms: float
    worst: float

    def intervals(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """The 95 % intervals of alpha and of beta."""
        found = []
        for place, estimate in enumerate((self.fits.alpha, self.fits.beta)):
            error = self.sigma * np.sqrt(self.fits.inverse[..., place, place])
            low, high = interval(estimate, error, self.degrees)
            found.append((float(low), float(high)))
        return found[0], found[1]

    def time(self, ranks: Array, sizes: Array) -> Array:
        """Predicted times; NaN where the formula has none."""
        x, y = self.shape.x(ranks, sizes), self.shape.y(ranks, sizes)
        time = self.fits.alpha * x + self.fits.beta * y
        return np.where(time > 0, time, np.nan)


@dataclass(frozen=True)
class Piece:
    """A range of sizes, from the measured ``first`` to ``last``, on ``ranks``.

    ``fitting`` are the formulas that fit, the best one first, and those that fit as well
    (`AS_WELL`); ``others`` are the rest, best first. On one number of ranks all fit alike.
    """

    first: float
    last: float
    ranks: Array
    points: int
    fitting: tuple[Candidate, ...]
    others: tuple[Candidate, ...]


@dataclass(frozen=True)
class OverRanks:
    """T(p, n) by formulas in ranges of sizes, from measurements on ``ranks``."""

    ranks: Array
    pieces: tuple[Piece, ...]
    switches: tuple[Switch, ...]

    def predict(self, ranks: Array, sizes: Array) -> Array:
        """Times on other numbers of ranks, by the formula that fits best.

        Between two ranges of sizes it is the geometric mean of both. A range measured on a single
        number of ranks tells no formulas apart, and no time follows (NaN).
        """
        firsts = np.array([piece.first for piece in self.pieces])
        lasts = np.array([piece.last for piece in self.pieces])
        below = np.clip(np.searchsorted(firsts, sizes, side="right") - 1, 0, None)
        above = np.minimum(np.where(sizes > lasts[below], below + 1, below), len(firsts) - 1)
        nothing = np.full(len(sizes), np.nan)
        times = np.stack(
            [
                piece.fitting[0].time(ranks, sizes) if len(piece.ranks) > 1 else nothing
                for piece in self.pieces
            ]
        )
        every = np.arange(len(sizes))
        found: Array = np.sqrt(times[below, every] * times[above, every])
        return np.where(sizes == firsts[0], found, np.nan) if firsts[0] == lasts[-1] else found


def fit(points: Points, shapes: Sequence[Shape]) -> OverRanks:
    """Fit every formula in every range of sizes.

    Where ranges meet is found before any formula is supposed, with costs of their own for each
    number of ranks; so it is the same for all of them.
    """
    ranks = np.unique(points.ranks)
    curves = [points.curve(number) for number in ranks.tolist()]
    ranges = all_ranges(curves)
    path = boundaries(ranges, len(curves))
    pieces = []
    for start, end in pairwise(path):
        first, last = float(ranges.sizes[start]), float(ranges.sizes[end - 1])
        inside = points.where((points.sizes >= first) & (points.sizes <= last))
        found = sorted((candidate(inside, shape) for shape in shapes), key=lambda one: one.rms)
        alone = len(np.unique(inside.ranks)) == 1
        well = [one for one in found if alone or one.rms <= AS_WELL * found[0].rms]
        others = found[len(well) :]
        numbers = np.unique(inside.ranks)
        pieces.append(Piece(first, last, numbers, len(inside.times), tuple(well), tuple(others)))
    degrees = len(points.times) - 2 * len(curves) * (len(path) - 1)
    return OverRanks(ranks, tuple(pieces), switches_of(ranges, path, degrees))


def candidate(points: Points, shape: Shape) -> Candidate:
    """One formula's fit."""
    x, y = shape.x(points.ranks, points.sizes), shape.y(points.ranks, points.sizes)
    every = np.ones((len(points.times), 1), dtype=bool)
    fits, times = fit_all(x, y, points.times, points.variances, every)
    fits = fits.at(0)
    relative = np.abs(points.times / np.where(times > 0, times, np.nan) - 1)
    relative = np.nan_to_num(relative, nan=np.inf)
    degrees = len(points.times) - int(np.count_nonzero(np.diagonal(fits.inverse)))
    return Candidate(
        shape,
        fits,
        float(np.sqrt(fits.cost / degrees)) if degrees > 0 else float("nan"),
        degrees,
        float(np.sqrt(np.mean(relative**2))),
        float(relative.max()),
    )

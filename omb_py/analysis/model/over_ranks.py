"""Textbook formulas fitted to a collective's times over numbers of ranks and message sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from omb_py.analysis.model.bounded import (
    NORMAL,
    TINY,
    WIDEST,
    Array,
    Fits,
    Mask,
    interval,
    quantile,
    relative_variance,
)
from omb_py.analysis.model.bounded import fit as fit_all
from omb_py.analysis.model.costs import Shape
from omb_py.analysis.model.lines import Switch, doublings, growth, switches_of
from omb_py.analysis.model.piecewise import Series, all_ranges, boundaries

UNKNOWN_GROWTH = 0.15
"""Relative error supposed for each doubling of the ranks where one rank count was measured."""

HOPELESS = 3.0
"""Error, in natural logarithms, of a formula that predicts no time at all."""


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

    ``fits`` holds one fit; ``sigma`` and ``degrees`` are as in `Lines`. ``left_out`` is the root
    mean square of the errors (natural logarithms) at each number of ranks when it is left out of
    the fit, NaN with one of them; ``squares`` are those errors' mean squares, in order of the
    ranks. ``growth`` is how these errors grow with each doubling beyond the ranks fitted.
    """

    shape: Shape
    fits: Fits
    sigma: float
    degrees: int
    rms: float
    worst: float
    left_out: float
    squares: Array
    growth: float

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

    def variance(self, ranks: Array, sizes: Array) -> Array:
        """Relative variance that the parameters' uncertainty gives the times."""
        x, y = self.shape.x(ranks, sizes), self.shape.y(ranks, sizes)
        return self.sigma**2 * relative_variance(self.fits, x, y, self.time(ranks, sizes))


@dataclass(frozen=True)
class Piece:
    """A range of sizes, from the measured ``first`` to ``last``, on ``ranks``.

    ``fitting`` are the formulas that fit, the best one first, and those that fit as well within
    noise; ``others`` are the rest, best first.
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
    growth_of_sizes: float

    def predict(self, ranks: Array, sizes: Array) -> tuple[Array, Array, Array]:
        """Times on other numbers of ranks, with the 95 % band of one measured anew.

        The band is of all formulas that fit about as well. With a single rank count nothing tells
        them apart: the time is the geometric middle of what they say.
        """
        firsts = np.array([piece.first for piece in self.pieces])
        lasts = np.array([piece.last for piece in self.pieces])
        below = np.clip(np.searchsorted(firsts, sizes, side="right") - 1, 0, None)
        above = np.minimum(np.where(sizes > lasts[below], below + 1, below), len(firsts) - 1)
        results = np.full((3, len(sizes)), np.nan)
        for low, high in set(zip(below.tolist(), above.tolist(), strict=True)):
            here = (below == low) & (above == high)
            both = [
                self.of_piece(self.pieces[index], ranks[here], sizes[here]) for index in {low, high}
            ]
            times = np.stack([each[0] for each in both])
            results[0, here] = np.exp(np.log(times).mean(axis=0))
            results[1, here] = np.min([each[1] for each in both], axis=0)
            results[2, here] = np.max([each[2] for each in both], axis=0)
        if firsts[0] == lasts[-1]:
            results[:, sizes != firsts[0]] = np.nan
        return results[0], results[1], results[2]

    def of_piece(self, piece: Piece, ranks: Array, sizes: Array) -> tuple[Array, Array, Array]:
        """What `predict` gives, by the formulas of one range of sizes."""
        inside = np.clip(sizes, self.pieces[0].first, self.pieces[-1].last)
        nearest = np.clip(ranks, piece.ranks[0], piece.ranks[-1])
        beyond_ranks = doublings(ranks, piece.ranks[0], piece.ranks[-1])
        beyond_sizes = doublings(sizes, self.pieces[0].first, self.pieces[-1].last)
        alone = len(piece.ranks) == 1
        measured = np.isin(ranks, piece.ranks) | alone
        times, lows, highs = [], [], []
        for candidate in piece.fitting:
            time = candidate.time(ranks, sizes)
            parameters = np.maximum(
                candidate.variance(ranks, sizes), candidate.variance(nearest, inside)
            )
            elsewhere = np.fmax(candidate.sigma, candidate.left_out)
            scatter = np.where(measured, candidate.sigma, elsewhere)
            few = min(candidate.degrees, len(piece.ranks))
            t = np.where(measured, quantile(candidate.degrees), quantile(few))
            grown = (candidate.growth * beyond_ranks) ** 2
            grown = grown + (self.growth_of_sizes * beyond_sizes) ** 2
            squared = t**2 * (parameters + scatter**2) + NORMAL**2 * grown
            times.append(time)
            reach = np.exp(np.minimum(np.sqrt(squared), WIDEST))
            lows.append(time / reach)
            highs.append(time * reach)
        middle = np.sqrt(np.min(times, axis=0) * np.max(times, axis=0))
        time = middle if alone else times[0]
        return time, np.min(lows, axis=0), np.max(highs, axis=0)


def fit(points: Points, shapes: Sequence[Shape], growth_of_sizes: float) -> OverRanks:
    """Fit every formula in every range of sizes.

    Where ranges meet is found before any formula is supposed, with costs of their own for each
    number of ranks; so it is the same for all of them.
    """
    ranks = np.unique(points.ranks)
    curves = [points.curve(number) for number in ranks.tolist()]
    ranges = all_ranges(curves)
    path = boundaries(ranges, len(curves))[0]
    pieces = []
    for start, end in pairwise(path):
        first, last = float(ranges.sizes[start]), float(ranges.sizes[end - 1])
        inside = points.where((points.sizes >= first) & (points.sizes <= last))
        fitting, others = is_ordered([candidate(inside, shape) for shape in shapes])
        numbers = np.unique(inside.ranks)
        pieces.append(Piece(first, last, numbers, len(inside.times), fitting, others))
    if len(ranks) == 1:
        pieces = pool(pieces)
    degrees = len(points.times) - 2 * len(curves) * (len(path) - 1)
    return OverRanks(ranks, tuple(pieces), switches_of(ranges, path, degrees), growth_of_sizes)


def pool(pieces: Sequence[Piece]) -> list[Piece]:
    """With one scatter for all ranges, as in `Lines`: those of one curve have few points each."""
    cost = sum(float(piece.fitting[0].fits.cost) for piece in pieces)
    degrees = sum(piece.fitting[0].degrees for piece in pieces) - (len(pieces) - 1)
    sigma = float(np.sqrt(cost / degrees)) if degrees > 0 else float("nan")
    return [
        replace(
            piece,
            fitting=tuple(replace(each, sigma=sigma, degrees=degrees) for each in piece.fitting),
        )
        for piece in pieces
    ]


def candidate(points: Points, shape: Shape) -> Candidate:
    """One formula's fit, and what it would have predicted without some of the ranks."""
    numbers = np.unique(points.ranks)
    kept = [np.ones(len(points.times), dtype=bool)]
    if len(numbers) > 1:
        kept += [points.ranks != number for number in numbers]
        kept += [points.ranks <= number for number in numbers[:-1]]
    x, y = shape.x(points.ranks, points.sizes), shape.y(points.ranks, points.sizes)
    fits, _ = fit_all(x, y, points.times, points.variances, np.array(kept)[:, :, None])
    fits = fits.at((slice(None), 0))
    times = fits.alpha[:, None] * x + fits.beta[:, None] * y
    errors = np.where(times > 0, np.log(np.maximum(times, TINY) / points.times), HOPELESS)
    relative = np.abs(points.times / np.where(times[0] > 0, times[0], np.nan) - 1)
    degrees = len(points.times) - int(np.count_nonzero(np.diagonal(fits.inverse[0])))
    squares = np.array([])
    if len(numbers) > 1:
        without = errors[1 : 1 + len(numbers)] ** 2
        at = points.ranks == numbers[:, None]
        squares = np.array([row[here].mean() for row, here in zip(without, at, strict=True)])
    return Candidate(
        shape,
        fits.at(0),
        float(np.sqrt(fits.cost[0] / degrees)) if degrees > 0 else float("nan"),
        degrees,
        float(np.sqrt(np.mean(relative**2))),
        float(relative.max()),
        float(np.sqrt(squares.mean())) if len(squares) else float("nan"),
        squares,
        growth_of_ranks(points.ranks, numbers, errors[1 + len(numbers) :]),
    )


def growth_of_ranks(ranks: Array, numbers: Array, errors: Array) -> float:
    """How errors grow with each doubling beyond the ranks fitted; row i is up to ``numbers[i]``."""
    if len(numbers) == 1:
        return UNKNOWN_GROWTH
    distances = np.maximum(0.0, np.log2(ranks / numbers[:-1, None]))
    return growth(errors[distances > 0], distances[distances > 0])


def is_ordered(
    candidates: Sequence[Candidate],
) -> tuple[tuple[Candidate, ...], tuple[Candidate, ...]]:
    """Formulas that fit about as well as the best, and the rest; each best first.

    As well is: the mean square of the errors at left-out ranks is within one standard error of
    the best one's (the rule of L. Breiman et al., *Classification and regression trees*, 1984).
    With a single rank count all fit alike.
    """
    if not len(candidates[0].squares):
        return tuple(candidates), ()
    ranked = sorted(candidates, key=lambda each: float(each.squares.mean()))
    best = ranked[0].squares
    limit = best.mean() + best.std(ddof=1) / np.sqrt(len(best)) + 1e-12
    return (
        tuple(each for each in ranked if each.squares.mean() <= limit),
        tuple(each for each in ranked if each.squares.mean() > limit),
    )

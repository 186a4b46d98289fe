"""Laws fitted to points, and the speed-up that they promise elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from omb_py.analysis.scaling.laws import Array, Law, laws_of
from omb_py.analysis.scaling.series import Series, Spread

MAX_CORNERS = 1 << 12
"""Fits to the minimum and maximum speed-ups of points, in all combinations or some of them."""

MAX_ERROR = 0.25
"""Error of a law that still describes the points."""


@dataclass(frozen=True)
class Fit:
    """A law's parameters: fitted to medians, and to the repeats' extremes (a row for each way).

    ``error`` is the root mean square of what S is off by, relative, at the points.
    """

    law: Law
    parameters: Array
    corners: Array
    error: float

    @property
    def describes(self) -> bool:
        """Whether the points are near enough to the law for it to say anything of others."""
        return self.error <= MAX_ERROR

    def speedup(self, ranks: Sequence[float]) -> tuple[Array, Array, Array]:
        """S on such numbers of ranks, with the minimum and the maximum by the extremes."""
        numbers = np.asarray(ranks, dtype=float)
        terms = self.law.terms(numbers)
        every = self.law.speedup(numbers, self.corners @ terms.T)
        return (
            self.law.speedup(numbers, terms @ self.parameters),
            every.min(axis=0),
            every.max(axis=0),
        )

    def spreads(self) -> tuple[Spread, ...]:
        """Each parameter with its extremes."""
        lows, highs = self.corners.min(axis=0), self.corners.max(axis=0)
        return tuple(
            Spread(*map(float, values)) for values in zip(self.parameters, lows, highs, strict=True)
        )


def fits_of(series: Series) -> tuple[Fit, ...]:
    """Every law that has points enough, fitted to those with cores of their own."""
    points = series.telling
    ranks = np.array([point.ranks for point in points], dtype=float)
    spreads = [point.speedup for point in points if point.speedup]
    medians, lows, highs = (
        np.array([getattr(spread, name) for spread in spreads]) for name in ("value", "low", "high")
    )
    return tuple(
        fit(law, ranks, medians, np.minimum(lows, medians), np.maximum(highs, medians))
        for law in laws_of(series.scaling, len(points))
    )


def fit(law: Law, ranks: Array, medians: Array, lows: Array, highs: Array) -> Fit:
    """Fit a law by minimum squares of relative errors; each point weighs alike in all fits."""
    weights = law.weight(medians)
    terms = law.terms(ranks) * weights[:, None]
    upper = np.array([law.target(ranks, lows), law.target(ranks, highs)]) * weights
    chosen = corners(len(ranks))
    targets = np.where(chosen, upper[0], upper[1])
    parameters = bounded(terms, (law.target(ranks, medians) * weights)[None, :], law.most)[0]
    predicted = law.speedup(ranks, law.terms(ranks) @ parameters)
    error = float(np.sqrt(np.mean((predicted / medians - 1) ** 2)))
    every = np.vstack([parameters, bounded(terms, targets, law.most)])
    return Fit(law, parameters, every, error)


def corners(points: int) -> Array:
    """Which points take their minimum speed-up: every way, or very many of them by chance."""
    if 1 << points <= MAX_CORNERS:
        return np.array(list(product((False, True), repeat=points)))
    chance = np.random.default_rng(points)
    some = chance.random((MAX_CORNERS - 2, points)) < 0.5
    return np.vstack([np.zeros((1, points), bool), np.ones((1, points), bool), some])


def bounded(terms: Array, targets: Array, most: Sequence[float]) -> Array:
    """Parameters of minimum squares for each row of ``targets``, from 0 to ``most``.

    One parameter, or two: the best of those on each bound and of those between.
    """
    if terms.shape[1] == 1:
        return np.clip(alone(terms[:, 0], targets), 0, most[0])[:, None]
    first, second = terms.T
    rows = len(targets)
    found = []
    for value in (0.0, most[0]):
        rest = np.clip(alone(second, targets - value * first), 0, most[1])
        found.append(np.stack([np.full(rows, value), rest], axis=1))
    found.append(np.stack([np.clip(alone(first, targets), 0, most[0]), np.zeros(rows)], axis=1))
    between = np.linalg.lstsq(terms, targets.T, rcond=None)[0].T
    inside = np.all((between >= 0) & (between <= most), axis=1)
    found.append(np.where(inside[:, None], between, found[0]))
    every = np.stack(found)
    costs = ((every @ terms.T - targets) ** 2).sum(axis=2)
    return np.asarray(every[costs.argmin(axis=0), np.arange(rows)])


def alone(term: Array, targets: Array) -> Array:
    """The factor of one term that comes nearest to each row of targets."""
    return np.asarray(targets @ term / (term @ term))


def band(fits: Sequence[Fit], ranks: Sequence[float]) -> tuple[Array, Array]:
    """The minimum and the maximum speed-up by any law, from any of the repeats' extremes."""
    each = [one.speedup(ranks) for one in fits]
    return np.min([low for _, low, _ in each], axis=0), np.max([high for *_, high in each], axis=0)

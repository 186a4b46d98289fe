"""Laws of scaling, fitted to points, and the speed-up that they predict elsewhere.

S is the speed-up on p ranks, s the part of the time that stays, whatever p. With strong scaling
that is a part of one rank's time (G. Amdahl, *Validity of the single processor approach*, 1967);
with weak scaling a part of the time on p ranks (J. Gustafson, *Reevaluating Amdahl's law*, 1988).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from omb_py.analysis.scaling.series import Point, Series, Spread

Array: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Law:
    """S by a few parameters, which are the factors of terms in p.

    ``target`` is the quantity, of p and S, that the terms add up to, ``speedup`` the S that
    follows from p and such a sum. ``weight`` makes an error of the sum one relative to S. A
    parameter is at least 0 and at most ``most``.
    """

    name: str
    formula: str
    parameters: tuple[str, ...]
    terms: Callable[[Array], Array]
    target: Callable[[Array, Array], Array]
    weight: Callable[[Array], Array]
    speedup: Callable[[Array, Array], Array]
    most: tuple[float, ...]


def amdahl_terms(ranks: Array) -> Array:
    """What the serial fraction is multiplied with in 1/S."""
    return np.stack([1 - 1 / ranks], axis=-1)


def amdahl_log_terms(ranks: Array) -> Array:
    """Amdahl's terms, and what grows as calls do whose messages go along trees of ranks."""
    return np.stack([1 - 1 / ranks, np.log2(ranks)], axis=-1)


def gustafson_terms(ranks: Array) -> Array:
    """What the serial fraction takes away from p."""
    return np.stack([ranks - 1], axis=-1)


AMDAHL = Law(
    name="Amdahl",
    formula="1/S = s + (1 - s)/p",
    parameters=("s",),
    terms=amdahl_terms,
    target=lambda ranks, speedup: 1 / speedup - 1 / ranks,
    weight=lambda speedup: speedup,
    speedup=lambda ranks, total: 1 / (1 / ranks + total),
    most=(1.0,),
)
AMDAHL_LOG = Law(
    name="Amdahl + log2 p",
    formula="1/S = s + (1 - s)/p + c log2 p",
    parameters=("s", "c"),
    terms=amdahl_log_terms,
    target=AMDAHL.target,
    weight=AMDAHL.weight,
    speedup=AMDAHL.speedup,
    most=(1.0, np.inf),
)
GUSTAFSON = Law(
    name="Gustafson",
    formula="S = p - s (p - 1)",
    parameters=("s",),
    terms=gustafson_terms,
    target=lambda ranks, speedup: ranks - speedup,
    weight=lambda speedup: 1 / speedup,
    speedup=lambda ranks, total: ranks - total,
    most=(1.0,),
)


def laws_of(scaling: str, points: int) -> tuple[Law, ...]:
    """The laws that so many points, of two ranks and more, can tell something of."""
    if not points:
        return ()
    if scaling == "weak":
        return (GUSTAFSON,)
    return (AMDAHL, AMDAHL_LOG) if points >= len(AMDAHL_LOG.parameters) else (AMDAHL,)


def serial_fraction(point: Point, scaling: str) -> float | None:
    """The part that stays by one point alone; below 0 where it is faster than divided work.

    With strong scaling the experimentally determined one of A. Karp and H. Flatt (*Measuring
    parallel processor performance*, 1990), (1/S - 1/p) / (1 - 1/p); with weak scaling Gustafson's.
    """
    if point.speedup is None or point.ranks == 1:
        return None
    ranks, speedup = point.ranks, point.speedup.value
    if scaling == "weak":
        return (ranks - speedup) / (ranks - 1)
    return (1 / speedup - 1 / ranks) / (1 - 1 / ranks)


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

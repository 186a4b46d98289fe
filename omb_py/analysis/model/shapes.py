"""Which of the textbook's formulas times can tell apart."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from omb_py.analysis.model.bounded import Array
from omb_py.analysis.model.costs import TABLE, TERMS, Algorithm

RANKS, SIZES = (grid.ravel() for grid in np.meshgrid([2.0, 3, 4, 5, 8, 12, 17, 64], [1.0, 1000.0]))
"""Where formulas are compared."""


@dataclass(frozen=True)
class Shape:
    """Algorithms whose formulas are multiples of each other: no times tell them apart.

    Parameters are those of the first. ``gamma`` is how much of gamma is in its beta, for bytes
    added up are the same part of the traffic whatever p and n. ``neighbours`` multiplies both.
    """

    algorithms: tuple[Algorithm, ...]
    gamma: float
    neighbours: int = 1

    @property
    def name(self) -> str:
        """The first one's."""
        return self.algorithms[0].name

    @property
    def formula(self) -> str:
        """The first one's."""
        formula = self.algorithms[0].formula
        return formula if self.neighbours == 1 else f"{self.neighbours} ({formula})"

    def x(self, ranks: Array, sizes: Array) -> Array:
        """What alpha is multiplied with."""
        return self.neighbours * TERMS[self.algorithms[0].messages](ranks, sizes)

    def y(self, ranks: Array, sizes: Array) -> Array:
        """What beta, with its share of gamma, is multiplied with."""
        return self.neighbours * TERMS[self.algorithms[0].traffic](ranks, sizes)


@cache
def shapes(collective: str, neighbours: int = 1) -> tuple[Shape, ...]:
    """The different shapes of a collective's formulas."""
    groups: list[list[Algorithm]] = []
    for algorithm in TABLE:
        if algorithm.collective != collective:
            continue
        same = [group for group in groups if proportional(group[0], algorithm)]
        if same:
            same[0].append(algorithm)
        else:
            groups.append([algorithm])
    return tuple(Shape(tuple(group), gamma_in_beta(group[0]), neighbours) for group in groups)


def proportional(first: Algorithm, second: Algorithm) -> bool:
    """Whether both terms of one are multiples of the other's."""
    return multiples(first.messages, second.messages) and multiples(first.traffic, second.traffic)


def multiples(first: str, second: str) -> bool:
    """Whether one of two terms is a multiple of the other; no term only of no term."""
    one, other = TERMS[first](RANKS, SIZES), TERMS[second](RANKS, SIZES)
    if not first or not second:
        return first == second
    return bool(np.allclose(one * (other @ other), other * (one @ other)))


def gamma_in_beta(algorithm: Algorithm) -> float:
    """Bytes added up for each byte of traffic."""
    if not algorithm.added:
        return 0.0
    added, traffic = TERMS[algorithm.added], TERMS[algorithm.traffic]
    return float((added(RANKS, SIZES) / traffic(RANKS, SIZES))[0])

"""The samples nearest to queries, exactly, by comparing each query with each sample.

The square of the distance of a query q from a sample t is |q|^2 - 2 q.t + |t|^2: a product of
matrices. Of its long rows only the shortest elements are wanted, and most of a row is never
sorted: it is folded into groups, and the k smallest elements are in the k groups with the smallest
minima.
"""

from __future__ import annotations

from math import isqrt
from typing import Any

from omb_py.apps._samples import working_bytes
from omb_py.measure.team import Team

LEAST_ROWS = 16
"""Queries at a time at least, so that a product of matrices is one."""


class Nearest:
    """Finds the ``k`` nearest of ``samples`` samples; these are at least k."""

    def __init__(self, team: Team, samples: int, features: int, k: int, dtype: str) -> None:
        xp = team.xp
        self._xp = xp
        self._k = k
        self._samples = samples
        self._depth = isqrt(samples // k)
        self._groups = -(-samples // self._depth)
        self._places = (xp.arange(self._depth) * self._groups).reshape(1, -1, 1)
        columns = self._depth * self._groups
        self._columns = xp.zeros((features + 1, columns), dtype)
        self._columns[-1] = xp.inf
        self.rows = max(LEAST_ROWS, working_bytes(team) // (columns * self._columns.itemsize))
        self._weights = xp.ones((self.rows, features + 1), dtype)
        self._distances = xp.empty((self.rows, columns), dtype)

    def load(self, samples: Any) -> None:
        """Take the samples, a row each; columns that are left over stay infinitely far away."""
        self._columns[:-1, : self._samples] = samples.T
        self._columns[-1, : self._samples] = (samples * samples).sum(axis=1)

    def find(self, queries: Any, distances: Any, numbers: Any) -> None:
        """Set squares of distances, and numbers of samples, of shape queries, k; in no order."""
        for start in range(0, len(queries), self.rows):
            part = slice(start, start + self.rows)
            self._find(queries[part], distances[part], numbers[part])

    def _find(self, queries: Any, distances: Any, numbers: Any) -> None:
        xp, k, count = self._xp, self._k, len(queries)
        weights, compared = self._weights[:count], self._distances[:count]
        weights[:, :-1] = -2 * queries
        xp.matmul(weights, self._columns, out=compared)
        lowest = compared.reshape(count, self._depth, self._groups).min(axis=1)
        groups = smallest(xp, lowest, k)
        candidates = (groups[:, None, :] + self._places).reshape(count, -1)
        found = xp.take_along_axis(compared, candidates, axis=1)
        chosen = smallest(xp, found, k)
        squares = (queries * queries).sum(axis=1, keepdims=True)
        distances[...] = xp.maximum(xp.take_along_axis(found, chosen, axis=1) + squares, 0)
        numbers[...] = xp.take_along_axis(candidates, chosen, axis=1)


def smallest(xp: Any, values: Any, k: int) -> Any:
    """Where the k smallest elements of each row are, in no order."""
    return xp.argpartition(values, k - 1, axis=1)[:, :k]


def voted(xp: Any, classes: Any, count: int) -> Any:
    """The class that most neighbours in a row have; of several the one with the least number."""
    return (classes[:, :, None] == xp.arange(count)).sum(axis=1).argmax(axis=1)

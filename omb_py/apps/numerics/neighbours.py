"""The samples nearest to queries, exactly, by comparing each query with each sample.

The square of the distance of a query q from a sample t is |q|^2 - 2 q.t + |t|^2: a product of
matrices. Of its long rows only the shortest elements are wanted, and most of a row is never
sorted: it is folded into groups, and the k smallest elements are in the k groups with the smallest
minima.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import Any

from omb_py.apps import CheckedResult, Sequential, option
from omb_py.apps.numerics.samples import Samples, draw, working_bytes
from omb_py.apps.runtime.team import Team
from omb_py.core.errors import UsageError, needing

MIN_ROWS = 16
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
        self.rows = max(MIN_ROWS, working_bytes(team) // (columns * self._columns.itemsize))
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


def vote(xp: Any, classes: Any, count: int) -> Any:
    """The class that most neighbours in a row have; of several the lowest."""
    return (classes[:, :, None] == xp.arange(count)).sum(axis=1).argmax(axis=1)


ROUNDING = 32
"""Squares of distances may differ by so many units of the last place of the maximum terms."""


@dataclass(frozen=True)
class Queries(Samples):
    """Samples whose classes are known, and queries whose classes are wanted."""

    queries: int = option(2_000, "Samples to classify.", minimum=1)
    neighbours: int = option(5, "Neighbours that vote for a class: k.", minimum=1)
    divide: str = option(
        "samples",
        "samples: each rank looks for neighbours of all queries among its part of the training "
        "samples; queries: of its part of the queries among all.",
        choices=("samples", "queries"),
    )

    def __post_init__(self) -> None:
        if self.neighbours > self.samples:
            raise UsageError(
                f"{self.samples} samples have no {self.neighbours} neighbours: choose more "
                "--samples or fewer --neighbours"
            )

    @property
    def apart(self) -> int:
        return self.queries


@dataclass(frozen=True)
class Classified:
    """The queries' classes, and the squares of their neighbours' distances, in order."""

    classes: Any
    squares: Any


def split(problem: Queries) -> tuple[Any, Any, Any, Any]:
    """Training samples, their classes, queries, and their true classes."""
    values, classes = draw(problem)
    count = problem.samples
    return values[:count], classes[:count], values[count:], classes[count:]


def sequential(problem: Queries) -> Sequential:
    """scikit-learn's classifier, which compares each query with each sample, too."""
    with needing("apps"):
        from sklearn.neighbors import KNeighborsClassifier

    samples, classes, queries, _ = split(problem)

    def solve() -> tuple[Any, Any]:
        model = KNeighborsClassifier(problem.neighbours, algorithm="brute").fit(samples, classes)
        return model.predict(queries), model

    return Sequential("scikit-learn KNeighborsClassifier", solve)


def compare(problem: Queries, result: Classified, reference: tuple[Any, Any]) -> CheckedResult:
    """Distances, and classes, but of queries whose last neighbour and the next are as near."""
    import numpy as np

    classes, model = reference
    samples, _, queries, _ = split(problem)
    k = problem.neighbours
    found, _ = model.kneighbors(queries, min(k + 1, len(samples)))
    squares = found.astype(np.float64) ** 2
    terms = squares[:, :k].max() + (queries.astype(np.float64) ** 2).sum(axis=1).max()
    difference = float(np.abs(result.squares - squares[:, :k]).max() / terms)
    limit = ROUNDING * float(np.finfo(problem.dtype).eps)
    other = result.classes != classes
    undecided = np.zeros(len(queries), bool)
    if len(samples) > k:
        undecided = squares[:, k] - squares[:, k - 1] <= limit * terms
    wrong = int((other & ~undecided).sum())
    text = (
        f"squared distances differ from scikit-learn's by {difference:.2g} of their terms (limit "
        f"{limit:.2g}), {wrong} of {len(queries)} classes differ"
    )
    excused = int((other & undecided).sum())
    if excused:
        text += f", and {excused} whose neighbours {k} and {k + 1} are as near"
    return CheckedResult(difference <= limit and wrong == 0, text, difference)

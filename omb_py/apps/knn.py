"""Classification by the k nearest neighbours: training samples or queries are divided.

The square of the distance of a query q from a sample t is |q|^2 - 2 q.t + |t|^2: a product of
matrices. Of its long rows only the shortest elements are wanted, and most of a row is never
sorted: it is folded into groups, and the k smallest elements are in the k groups with the smallest
minima.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt
from typing import Any

from omb_py.apps import Application, CheckedResult, Detail, Kernel, Sequential, option
from omb_py.apps.runtime.distribution import BlockDistribution, broadcast
from omb_py.apps.runtime.samples import Samples, draw, weak_scaled, working_bytes
from omb_py.apps.runtime.team import Array, Team
from omb_py.core.calls import Call
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
    """Return the positions of the k smallest elements of each row, in no order."""
    return xp.argpartition(values, k - 1, axis=1)[:, :k]


def vote(xp: Any, classes: Any, count: int) -> Any:
    """Return the class that most neighbours in a row have; of several the lowest."""
    return (classes[:, :, None] == xp.arange(count)).sum(axis=1).argmax(axis=1)


ROUNDING = 32
"""Units in the last place of the largest terms by which squares of distances may differ."""


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
    """Return training samples, their classes, queries, and their true classes."""
    values, classes = draw(problem)
    count = problem.samples
    return values[:count], classes[:count], values[count:], classes[count:]


def sequential(problem: Queries) -> Sequential:
    """Return scikit-learn's classifier, which compares each query with each sample, too."""
    with needing("apps"):
        from sklearn.neighbors import KNeighborsClassifier

    samples, classes, queries, _ = split(problem)

    def solve() -> tuple[Any, Any]:
        model = KNeighborsClassifier(problem.neighbours, algorithm="brute").fit(samples, classes)
        return model.predict(queries), model

    return Sequential("scikit-learn KNeighborsClassifier", solve)


def compare(problem: Queries, result: Classified, reference: tuple[Any, Any]) -> CheckedResult:
    """Compare distances, and classes, except of queries whose last neighbour and the next tie."""
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


class Classification(Kernel[Queries]):
    """The common part of both ways of dividing: all arrays of rank 0, and the reported details."""

    def __init__(self, team: Team, problem: Queries) -> None:
        super().__init__(team, problem)
        self._samples: Any = None
        self._truth: Any = None
        self._classes: Array | None = None
        self._squares: Array | None = None
        self._deals: tuple[Callable[[], None], ...] = ()

    def distribute(self) -> None:
        for deal in self._deals:
            deal()

    def result(self) -> Classified | None:
        if self._classes is None or self._squares is None:
            return None
        on_host = self.team.on_host
        squares = on_host(self._squares.data).copy()
        squares.sort(axis=1)
        return Classified(on_host(self._classes.data), squares)

    def parts(self) -> list[Detail]:
        """Return the share of the queries that got their true class."""
        if self._classes is None:
            return []
        right = self.team.on_host(self._classes.data) == self._truth
        return [Detail("accuracy", value=float(right.mean()))]

    def _fill(self, samples: Array | None, classes: Array | None, queries: Array | None) -> None:
        """Draw the data, on rank 0."""
        if samples is None or classes is None or queries is None:
            return
        xp = self.team.xp
        train, known, asked, self._truth = split(self.problem)
        for array, values in ((samples, train), (classes, known), (queries, asked)):
            array.data[...] = xp.asarray(values)


class OverSamples(Classification):
    """Each rank finds its nearest for all queries; rank 0 gathers them and merges."""

    def __init__(self, team: Team, problem: Queries) -> None:
        super().__init__(team, problem)
        count, k, dtype = problem.samples, problem.neighbours, problem.dtype
        if count // team.ranks < k:
            raise UsageError(
                f"{count} samples on {team.ranks} ranks leave less than {k} neighbours to each: "
                "choose more --samples or --divide queries"
            )
        self._train = BlockDistribution(team, (count, problem.features), dtype)
        self._known = BlockDistribution(team, (count,), "int32")
        self._queries = team.array((problem.queries, problem.features), dtype)
        first = team.rank == 0
        self._fill(self._train.whole, self._known.whole, self._queries if first else None)
        deal = broadcast(team, self._queries)
        self._deals = self._train.scatter, self._known.scatter, deal
        own = len(self._train.mine.data)
        self._nearest = Nearest(team, own, problem.features, k, dtype)
        shape = (problem.queries, k)
        self._numbers = team.xp.empty(shape, "int64")
        self._found = [Candidates(team, shape, kind) for kind in (dtype, "int32")]
        if first:
            self._classes = team.array(problem.queries, "int32")
            self._squares = team.array(shape, dtype)

    def solve(self) -> None:
        team, xp = self.team, self.team.xp
        squares, classes = self._found
        with team.computing:
            self._nearest.load(self._train.mine.data)
            self._nearest.find(self._queries.data, squares.own.data, self._numbers)
            classes.own.data[...] = self._known.mine.data[self._numbers]
        squares.gather()
        classes.gather()
        if self._classes is None or self._squares is None:
            return
        with team.computing:
            distances, labels = squares.beside(), classes.beside()
            chosen = smallest(xp, distances, self.problem.neighbours)
            self._squares.data[...] = xp.take_along_axis(distances, chosen, axis=1)
            labels = xp.take_along_axis(labels, chosen, axis=1)
            self._classes.data[...] = vote(xp, labels, self.problem.clusters)


class Candidates:
    """Something of each query's neighbours: ``own`` ones, and on rank 0 those of all ranks."""

    def __init__(self, team: Team, shape: tuple[int, int], dtype: str) -> None:
        self.own = team.array(shape, dtype)
        self._all: Any = self.own.data[None]
        self.gather: Callable[[], None] = lambda: None
        if team.ranks == 1:
            return
        whole = team.array((team.ranks, *shape), dtype) if team.rank == 0 else None
        parts = None if whole is None else whole.message((self.own.data.size,) * team.ranks)
        self.gather = team.bind(Call("gather", (self.own.message(), parts), root=0))
        self._all = None if whole is None else whole.data

    def beside(self) -> Any:
        """Return all ranks' columns in one row for each query; on rank 0."""
        ranks, queries, k = self._all.shape
        return self._all.transpose(1, 0, 2).reshape(queries, ranks * k)


class OverQueries(Classification):
    """Each rank has all training samples, and classifies its own queries."""

    def __init__(self, team: Team, problem: Queries) -> None:
        super().__init__(team, problem)
        if problem.queries < team.ranks:
            raise UsageError(
                f"{problem.queries} queries are too few for {team.ranks} ranks: choose more "
                "--queries or --divide samples"
            )
        count, k, dtype = problem.samples, problem.neighbours, problem.dtype
        self._train = team.array((count, problem.features), dtype)
        self._known = team.array(count, "int32")
        self._queries = BlockDistribution(team, (problem.queries, problem.features), dtype)
        self._fill(self._train, self._known, self._queries.whole)
        everywhere = (broadcast(team, array) for array in (self._train, self._known))
        self._deals = (*everywhere, self._queries.scatter)
        self._nearest = Nearest(team, count, problem.features, k, dtype)
        self._own_squares = BlockDistribution(team, (problem.queries, k), dtype)
        self._own_classes = BlockDistribution(team, (problem.queries,), "int32")
        self._squares, self._classes = self._own_squares.whole, self._own_classes.whole
        self._numbers = team.xp.empty(self._own_squares.mine.data.shape, "int64")

    def solve(self) -> None:
        team = self.team
        with team.computing:
            self._nearest.load(self._train.data)
            self._nearest.find(self._queries.mine.data, self._own_squares.mine.data, self._numbers)
            labels = self._known.data[self._numbers]
            self._own_classes.mine.data[...] = vote(team.xp, labels, self.problem.clusters)
        self._own_squares.gather()
        self._own_classes.gather()


def kernel(team: Team, problem: Queries) -> Classification:
    """Return the kernel that divides as the problem asks."""
    return {"samples": OverSamples, "queries": OverQueries}[problem.divide](team, problem)


APPLICATION = Application(
    name="knn",
    title="k Nearest Neighbours",
    summary="Classification by the k nearest neighbours, samples or queries divided over ranks.",
    problem=Queries,
    kernel=kernel,
    metric=lambda problem, seconds: problem.queries / seconds,
    unit="queries/s",
    compare=compare,
    sequential=sequential,
    weak_scaled=lambda problem, ranks: weak_scaled(problem, ranks, problem.divide),
)

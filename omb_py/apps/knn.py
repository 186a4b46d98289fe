"""Classification by the k nearest neighbours: training samples are divided over the ranks.

The square of the distance of a query q from a sample t is |q|^2 - 2 q.t + |t|^2: a product of
matrices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from omb_py.apps import Application, CheckedResult, Detail, Kernel, Sequential, option
from omb_py.apps.runtime.distribution import BlockDistribution, broadcast
from omb_py.apps.runtime.samples import Samples, draw, weak_scaled, working_bytes
from omb_py.apps.runtime.team import Team
from omb_py.core.calls import Call
from omb_py.core.errors import UsageError, needing

MIN_ROWS = 16
"""Queries at a time at least, so that a product of matrices is one."""


def find_nearest(team: Team, samples: Any, queries: Any, squares: Any, numbers: Any) -> None:
    """Set squares of distances, and numbers of samples, of shape queries, k; in no order."""
    xp, k = team.xp, squares.shape[1]
    of_samples = (samples * samples).sum(axis=1)
    of_queries = (queries * queries).sum(axis=1, keepdims=True)
    rows = max(MIN_ROWS, working_bytes(team) // (len(samples) * samples.itemsize))
    for start in range(0, len(queries), rows):
        part = slice(start, start + rows)
        compared = of_samples - 2 * (queries[part] @ samples.T)
        numbers[part] = smallest(xp, compared, k)
        found = xp.take_along_axis(compared, numbers[part], axis=1)
        squares[part] = xp.maximum(found + of_queries[part], 0)


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

    def __post_init__(self) -> None:
        if self.neighbours > self.samples:
            raise UsageError(
                f"{self.samples} samples have no {self.neighbours} neighbours: choose more "
                "--samples or fewer --neighbours"
            )


@dataclass(frozen=True)
class Classified:
    """The queries' classes, and the squares of their neighbours' distances, in order."""

    classes: Any
    squares: Any


def split(problem: Queries) -> tuple[Any, Any, Any, Any]:
    """Return training samples, their classes, queries, and their true classes."""
    values, classes = draw(problem, problem.queries)
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
    """Each rank finds its nearest for all queries; rank 0 gathers them and merges."""

    def __init__(self, team: Team, problem: Queries) -> None:
        super().__init__(team, problem)
        count, k, dtype = problem.samples, problem.neighbours, problem.dtype
        if count // team.ranks < k:
            raise UsageError(
                f"{count} samples on {team.ranks} ranks leave less than {k} neighbours to each: "
                "choose more --samples or fewer --neighbours"
            )
        train = BlockDistribution(team, (count, problem.features), dtype)
        known = BlockDistribution(team, (count,), "int32")
        queries = team.array((problem.queries, problem.features), dtype)
        if train.whole is not None and known.whole is not None:
            samples, classes, asked, self._truth = split(problem)
            arrays = train.whole, known.whole, queries
            for array, values in zip(arrays, (samples, classes, asked), strict=True):
                array.data[...] = team.xp.asarray(values)
        self._deals = train.scatter, known.scatter, broadcast(team, queries)
        self._data = train.mine.data, known.mine.data, queries.data
        shape = (problem.queries, k)
        self._numbers = team.xp.empty(shape, "int64")
        self._found = Candidates(team, shape, dtype), Candidates(team, shape, "int32")
        self._squares: Any = None
        self._classes: Any = None

    def distribute(self) -> None:
        for deal in self._deals:
            deal()

    def solve(self) -> None:
        team, xp = self.team, self.team.xp
        samples, known, queries = self._data
        squares, classes = self._found
        with team.computing:
            find_nearest(team, samples, queries, squares.own.data, self._numbers)
            classes.own.data[...] = known[self._numbers]
        squares.gather()
        classes.gather()
        if team.rank != 0:
            return
        with team.computing:
            distances, labels = squares.beside(), classes.beside()
            chosen = smallest(xp, distances, self.problem.neighbours)
            self._squares = xp.take_along_axis(distances, chosen, axis=1)
            labels = xp.take_along_axis(labels, chosen, axis=1)
            self._classes = vote(xp, labels, self.problem.clusters)

    def result(self) -> Classified | None:
        if self._classes is None:
            return None
        squares = self.team.on_host(self._squares).copy()
        squares.sort(axis=1)
        return Classified(self.team.on_host(self._classes), squares)

    def parts(self) -> list[Detail]:
        """Return the share of the queries that got their true class."""
        if self._classes is None:
            return []
        right = self.team.on_host(self._classes) == self._truth
        return [Detail("accuracy", value=float(right.mean()))]


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


APPLICATION = Application(
    name="knn",
    title="k Nearest Neighbours",
    summary="Classification by the k nearest neighbours, samples divided over the ranks.",
    problem=Queries,
    kernel=Classification,
    metric=lambda problem, seconds: problem.queries / seconds,
    unit="queries/s",
    compare=compare,
    sequential=sequential,
    weak_scaled=weak_scaled,
)

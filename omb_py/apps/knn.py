"""Classification by the k nearest neighbours: training samples or queries are divided."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from omb_py.apps import Application, Detail, Kernel
from omb_py.apps.numerics.neighbours import (
    Classified,
    Nearest,
    Queries,
    compare,
    sequential,
    smallest,
    split,
    vote,
)
from omb_py.apps.numerics.samples import weak_scaled
from omb_py.apps.runtime.distribution import BlockDistribution, broadcast
from omb_py.apps.runtime.team import Array, Team
from omb_py.core.calls import Call
from omb_py.core.errors import UsageError


class Classification(Kernel[Queries]):
    """What both ways of dividing have in common: all arrays of rank 0, and what is told of them."""

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
        """How many of the queries got their true class."""
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
        """All ranks' in one row for each query; on rank 0."""
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
    """The one that divides as the problem says."""
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

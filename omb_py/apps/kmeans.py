"""k-means for several k at once: samples or the values of k are divided over the ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from omb_py.apps import Application, Detail, Kernel
from omb_py.apps.numerics.clusters import (
    Clustering,
    Clusters,
    compare,
    elbow,
    first_centers,
    sequential,
)
from omb_py.apps.numerics.lloyd import Lloyd
from omb_py.apps.numerics.samples import draw, weak_scaled
from omb_py.apps.runtime.distribution import BlockDistribution, broadcast
from omb_py.apps.runtime.team import Array, Team
from omb_py.core.calls import Call
from omb_py.core.errors import UsageError


class Search(Kernel[Clusters]):
    """For each k: assign, sum over the ranks, move the centers. Then reduce what was found.

    A cluster without samples keeps its center.
    """

    def __init__(self, team: Team, problem: Clusters) -> None:
        super().__init__(team, problem)
        _check_ranks(problem, team.ranks)
        count, features, dtype = problem.samples, problem.features, problem.dtype
        self._first = team.array((max(problem.ks), features), dtype)
        by_k = problem.divide == "k"
        whole: Array | None
        if by_k:
            self._own = deal_out(problem.ks, team.ranks)[team.rank]
            self._samples = whole = team.array((count, features), dtype)
            deal = broadcast(team, self._samples)
        else:
            self._own = problem.ks
            blocks = BlockDistribution(team, (count, features), dtype)
            self._samples, whole, deal = blocks.mine, blocks.whole, blocks.scatter
        self._deals = deal, broadcast(team, self._first)
        if team.rank == 0 and whole is not None:
            samples, _ = draw(problem)
            whole.data[...] = team.xp.asarray(samples)
            self._first.data[...] = team.xp.asarray(first_centers(problem, samples))
        self._tells = by_k or team.rank == 0
        self._lloyd = Lloyd(team, self._samples.data, self._own)
        self._bind(summed=not by_k and team.ranks > 1)

    def distribute(self) -> None:
        for deal in self._deals:
            deal()

    def solve(self) -> None:
        with self.team.computing:
            self._lloyd.load()
            self._found.data[...] = 0
        for k in self._own:
            self._solve(k)
        if self._reduce is not None:
            self._reduce()

    def result(self) -> list[Clustering] | None:
        return None if self._answer is None else self._read(self._answer)

    def parts(self) -> list[Detail]:
        """The inertia of each k, and the k that the elbow criterion chooses."""
        if self._answer is None:
            return []
        found = self._read(self._answer)
        parts = [Detail(f"k {one.k}", value=one.inertia, unit="inertia") for one in found]
        chosen = elbow(self.problem.ks, [one.inertia for one in found])
        if chosen is not None:
            parts.append(Detail("chosen k", value=chosen, unit="by the elbow"))
        return parts

    def _bind(self, summed: bool) -> None:
        """The sums and counts of each k, added up over the ranks, and all that is found."""
        team, height = self.team, self.problem.features + 1
        own = team.array(height * max(self.problem.ks), "float64")
        total = team.array(height * max(self.problem.ks), "float64") if summed else own
        self._sums: dict[int, tuple[Any, Any]] = {}
        self._adds: dict[int, Callable[[], None]] = {}
        for k in self._own:
            mine, all_ranks = own.rows(0, height * k), total.rows(0, height * k)
            self._sums[k] = mine.data.reshape(k, height), all_ranks.data.reshape(k, height)
            if summed:
                operands = mine.message(), all_ranks.message()
                self._adds[k] = team.bind(Call("allreduce", operands, op="sum"))
        size = sum(map(self._size, self.problem.ks))
        self._found = team.array(size, "float64")
        self._answer: Array | None = None
        self._reduce = None
        if team.ranks == 1:
            self._answer = self._found
            return
        if team.rank == 0:
            self._answer = team.array(size, "float64")
        answer = None if self._answer is None else self._answer.message()
        self._reduce = team.bind(Call("reduce", (self._found.message(), answer), op="sum", root=0))

    def _solve(self, k: int) -> None:
        """Lloyd's iterations for one k."""
        team, xp = self.team, self.team.xp
        own, totals = self._sums[k]
        add = self._adds.get(k)
        centers, emptied = self._first.data[:k], False
        for _ in range(self.problem.lloyd_iterations):
            with team.computing:
                self._lloyd.add_up(centers, own)
            if add is not None:
                add()
            with team.computing:
                counts = totals[:, -1:]
                emptied = emptied or bool((counts == 0).any())
                means = totals[:, :-1] / xp.maximum(counts, 1)
                centers = xp.where(counts > 0, means, centers).astype(centers.dtype)
        with team.computing:
            stretch = self._stretch(self._found.data, k)
            stretch[-2] = self._lloyd.inertia(centers)
            if self._tells:
                stretch[:-2] = centers.reshape(-1)
                stretch[-1] = emptied

    def _size(self, k: int) -> int:
        """Numbers found for one k: centers, inertia, and whether a cluster was empty."""
        return k * self.problem.features + 2

    def _stretch(self, data: Any, k: int) -> Any:
        """Those numbers."""
        before = sum(self._size(one) for one in self.problem.ks if one < k)
        return data[before : before + self._size(k)]

    def _read(self, answer: Array) -> list[Clustering]:
        data = self.team.on_host(answer.data)
        found = []
        for k in self.problem.ks:
            *_, inertia, emptied = stretch = self._stretch(data, k)
            centers = stretch[:-2].reshape(k, -1).copy()
            found.append(Clustering(k, centers, float(inertia), bool(emptied)))
        return found


def _check_ranks(problem: Clusters, ranks: int) -> None:
    """Raises `UsageError` where a rank would have nothing to do."""
    if problem.divide == "samples" and problem.samples < ranks:
        raise UsageError(
            f"{problem.samples} samples are too few for {ranks} ranks: choose more --samples"
        )
    if problem.divide == "k" and len(problem.ks) < ranks:
        raise UsageError(
            f"{len(problem.ks)} values of k are too few for {ranks} ranks: choose a greater "
            "--k-to, a smaller --k-step or --divide samples"
        )


def deal_out(ks: Sequence[int], ranks: int) -> tuple[tuple[int, ...], ...]:
    """The values of k of each rank: the largest first, each to the rank with the least work.

    The work is proportional to k (R. Graham, Bounds on multiprocessing timing anomalies, 1969).
    """
    hands: list[list[int]] = [[] for _ in range(ranks)]
    for k in sorted(ks, reverse=True):
        min(hands, key=sum).append(k)
    return tuple(map(tuple, hands))


APPLICATION = Application(
    name="kmeans",
    title="k-Means",
    summary="k-means clustering for several k, samples or values of k divided over the ranks.",
    problem=Clusters,
    kernel=Search,
    metric=lambda problem, seconds: (
        problem.samples * problem.lloyd_iterations * len(problem.ks) / seconds
    ),
    unit="samples/s",
    compare=compare,
    sequential=sequential,
    weak_scaled=weak_scaled,
)

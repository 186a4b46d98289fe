"""k-means for several k at once: samples or the values of k are divided over the ranks.

Lloyd's iterations, each as products of matrices, are compared with scikit-learn's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from omb_py.apps import Application, CheckedResult, Detail, Kernel, Sequential, option
from omb_py.apps.runtime.distribution import BlockDistribution, broadcast
from omb_py.apps.runtime.samples import Samples, draw, weak_scaled, working_bytes
from omb_py.apps.runtime.team import Array, Team
from omb_py.core.calls import Call
from omb_py.core.errors import UsageError, needing

WIDTH = 512
"""Samples in a block: few enough for the BLAS kernels that do not copy small matrices first."""


def _least(distances: Any, minimum: Any) -> None:
    """Write the distance of the nearest center: CuPy 14.2's ``min`` on a GPU fails with ``out``."""
    minimum[...] = distances.min(axis=1, keepdims=True)


class Lloyd:
    """Lloyd's assignment of ``samples``, a row each, to as many centers as one of ``ks``.

    It takes two products of matrices: distances, then sums over those that are marked. Samples are
    laid out in blocks of `WIDTH`, each a column with a one below it. The unused columns of the last
    block are zero, their one too: they do not change any sum.
    """

    def __init__(self, team: Team, samples: Any, ks: Iterable[int]) -> None:
        self.xp = xp = team.xp
        self.samples = samples
        self.squares = 0.0
        count, features = samples.shape
        self._whole, self._rest = divmod(count, WIDTH)
        blocks = self._whole + (self._rest > 0)
        self._blocks = xp.zeros((blocks, features + 1, WIDTH), samples.dtype)
        self._blocks[: self._whole, -1] = 1
        self._blocks[self._whole :, -1, : self._rest] = 1
        self._chunks = {k: self._divided(k, working_bytes(team)) for k in ks}

    def load(self) -> None:
        """Take the samples as they are now."""
        self.squares = float(self.xp.sum(self.samples * self.samples, dtype="float64"))
        whole, samples = self._whole, self.samples
        rows = samples[: whole * WIDTH].reshape(whole, WIDTH, samples.shape[1])
        self._blocks[:whole, :-1] = rows.transpose(0, 2, 1)
        self._blocks[whole:, :-1, : self._rest] = samples[whole * WIDTH :].T

    def add_up(self, centers: Any, totals: Any) -> None:
        """Add up the samples nearest to each center; ``totals``, a row for each, is float64.

        A row has the sums of the features, then the number of samples. A sample as far from two
        centers belongs to the first one.
        """
        self._add_up(centers, totals, self._mark_nearest)
        if float(totals[:, -1].sum()) != len(self.samples):
            self._add_up(centers, totals, self._mark_first)

    def inertia(self, centers: Any) -> float:
        """Return the sum of the squares of all samples' distances from their nearest centers."""
        weights, found = self._weights(centers), self.squares
        for samples, distances, minimum, _, _ in self._chunks[len(centers)]:
            self.xp.matmul(weights, samples, out=distances)
            _least(distances, minimum)
            found += float(self.xp.sum(minimum, dtype="float64"))
        return found

    def _divided(self, k: int, nbytes: int) -> list[tuple[Any, ...]]:
        """Return chunks of blocks, and memory for each one's distances, minima, marks and sums."""
        blocks, height, width = self._blocks.shape
        dtype = self._blocks.dtype
        most = min(blocks, max(1, nbytes // ((2 * k + height) * width * dtype.itemsize)))
        shapes = (k, width), (1, width), (k, width), (height, k)
        arrays = [self.xp.empty((most, *shape), dtype) for shape in shapes]
        chunks = (self._blocks[start : start + most] for start in range(0, blocks, most))
        return [(chunk, *(array[: len(chunk)] for array in arrays)) for chunk in chunks]

    def _weights(self, centers: Any) -> Any:
        """Return the matrix whose product with the blocks contains the distances."""
        squares = (centers * centers).sum(axis=1, keepdims=True)
        return self.xp.concatenate((-2 * centers, squares), axis=1)

    def _add_up(self, centers: Any, totals: Any, mark: Callable[[Any, Any, Any], None]) -> None:
        weights = self._weights(centers)
        totals[...] = 0
        for samples, distances, minimum, marks, sums in self._chunks[len(centers)]:
            self.xp.matmul(weights, samples, out=distances)
            mark(distances, minimum, marks)
            self.xp.matmul(samples, marks.transpose(0, 2, 1), out=sums)
            totals += sums.sum(axis=0).T

    def _mark_nearest(self, distances: Any, minimum: Any, marks: Any) -> None:
        """Mark a nearest center by a one, and every other as near as it: more than one in a tie."""
        _least(distances, minimum)
        self.xp.equal(distances, minimum, out=marks)

    def _mark_first(self, distances: Any, minimum: Any, marks: Any) -> None:
        """Mark the first of the nearest centers by a one: slower."""
        nearest = self.xp.argmin(distances, axis=1)
        numbers = self.xp.arange(distances.shape[1])
        marks[...] = nearest[:, None, :] == numbers[None, :, None]


LIMITS = {"float32": (1e-4, 5e-2), "float64": (1e-9, 1e-6)}
"""By how much inertias may differ, of themselves, and centers, of the samples' spread: the root of
the mean square of their distances from their mean. In float32 a sample halfway between two centers
falls to either side, and each iteration moves the centers further apart."""


@dataclass(frozen=True)
class Clusters(Samples):
    """Samples to be put into clusters, and the numbers of clusters to try."""

    k_from: int = option(2, "Minimum number of clusters to try.", minimum=1)
    k_to: int = option(16, "Maximum number of clusters to try.", minimum=1)
    k_step: int = option(2, "From one number of clusters to the next.", minimum=1)
    lloyd_iterations: int = option(
        20, "Lloyd's iterations for each k; all of them are done.", minimum=1
    )
    divide: str = option(
        "samples",
        "samples: each rank has a part of them for all k; k: all of them for some k.",
        choices=("samples", "k"),
    )

    def __post_init__(self) -> None:
        if not self.k_from <= self.k_to <= self.samples:
            raise UsageError(
                f"k from {self.k_from} to {self.k_to} with {self.samples} samples cannot be: "
                "choose --k-from, --k-to and --samples that do not decrease"
            )

    @property
    def ks(self) -> tuple[int, ...]:
        """The numbers of clusters to try."""
        return tuple(range(self.k_from, self.k_to + 1, self.k_step))


@dataclass(frozen=True)
class Clustering:
    """The result for a k: centers (k x features), float64, and inertia.

    ``emptied``: a cluster had no sample at some time.
    """

    k: int
    centers: Any
    inertia: float
    emptied: bool


def first_centers(problem: Clusters, samples: Any) -> Any:
    """Return as many different samples as the maximum k; each k begins with the first ones.

    Raises `UsageError` if there are fewer.
    """
    import numpy as np

    chosen: dict[bytes, int] = {}
    for row in np.random.default_rng(problem.seed).permutation(len(samples)):
        chosen.setdefault(samples[row].tobytes(), int(row))
        if len(chosen) == max(problem.ks):
            return samples[list(chosen.values())]
    raise UsageError(f"only {len(chosen)} samples are different: choose a smaller --k-to")


def elbow(ks: Sequence[int], inertias: Sequence[float]) -> int | None:
    """Return the k where the curve is farthest below its chord, both axes from 0 to 1.

    The result is None if there is no curve. This is Kneedle without its smoothing (V. Satopaa et
    al., Finding a "Kneedle" in a Haystack, 2011).
    """
    drop = inertias[0] - inertias[-1]
    if len(ks) < 3 or drop <= 0:
        return None
    width = ks[-1] - ks[0]

    def below(point: tuple[int, float]) -> float:
        k, inertia = point
        return 1 - (k - ks[0]) / width - (inertia - inertias[-1]) / drop

    return max(zip(ks, inertias, strict=True), key=below)[0]


def sequential(problem: Clusters) -> Sequential:
    """Return scikit-learn's KMeans, from the same centers."""
    with needing("apps"):
        from sklearn.cluster import KMeans

    samples, _ = draw(problem)
    first = first_centers(problem, samples)
    settings = {"n_init": 1, "max_iter": problem.lloyd_iterations, "tol": 0, "algorithm": "lloyd"}

    def solve() -> list[Any]:
        return [KMeans(k, init=first[:k], **settings).fit(samples) for k in problem.ks]

    return Sequential("scikit-learn KMeans", solve)


def compare(
    problem: Clusters, result: Sequence[Clustering], reference: Sequence[Any]
) -> CheckedResult | None:
    """Compare inertias and centers; scikit-learn's inertias are added up anew, in double precision.

    A k is left out if a cluster was empty, since scikit-learn moves it to a sample far away. The
    result is None if no k is left.
    """
    import numpy as np

    samples = draw(problem)[0].astype(np.float64)
    size = float(np.sqrt((samples * samples).sum(axis=1).mean()))
    inertias, shifts = [], []
    for found, model in zip(result, reference, strict=True):
        if found.emptied:
            continue
        centers = model.cluster_centers_.astype(np.float64)
        inertia = float(((samples - centers[model.labels_]) ** 2).sum())
        minimum = len(samples) * size**2 * float(np.finfo(problem.dtype).eps)
        inertias.append(abs(found.inertia - inertia) / max(inertia, minimum))
        distances = np.linalg.norm(found.centers - centers, axis=1)
        shifts.append(float(distances.max()) / size)
    if not inertias:
        return None
    inertia, shift = max(inertias), max(shifts)
    most_inertia, most_shift = LIMITS[problem.dtype]
    text = (
        f"inertias differ from scikit-learn's by {inertia:.2g} of their size (limit "
        f"{most_inertia:g}), centers by {shift:.2g} of the samples' spread (limit {most_shift:g})"
    )
    emptied = [found.k for found in result if found.emptied]
    if emptied:
        text += f"; left out, since a cluster became empty: k {_listed(emptied)}"
    last = problem.lloyd_iterations
    settled = [len(one.cluster_centers_) for one in reference if one.n_iter_ < last]
    if settled:
        text += f"; scikit-learn stopped before the last iteration, at rest: k {_listed(settled)}"
    passed = inertia <= most_inertia and shift <= most_shift
    return CheckedResult(passed, text, inertia)


def _listed(ks: Sequence[int]) -> str:
    return ", ".join(map(str, ks))


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
        """Return the inertia of each k, and the k that the elbow criterion chooses."""
        if self._answer is None:
            return []
        found = self._read(self._answer)
        parts = [Detail(f"k {one.k}", value=one.inertia, unit="inertia") for one in found]
        chosen = elbow(self.problem.ks, [one.inertia for one in found])
        if chosen is not None:
            parts.append(Detail("chosen k", value=chosen, unit="by the elbow"))
        return parts

    def _bind(self, summed: bool) -> None:
        """Bind the sums and counts of each k, added up over the ranks, and all results."""
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
        """Run Lloyd's iterations for one k."""
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
        """Return the number of values of one k: centers, inertia, and a flag of empty clusters."""
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
    """Raise `UsageError` if a rank would have no work."""
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
    """Return the values of k of each rank: the largest first, each to the rank with least work.

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

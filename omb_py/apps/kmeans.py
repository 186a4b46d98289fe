"""k-means for several k at once: samples or the values of k are divided over the ranks.

Lloyd's iterations are compared with scikit-learn's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from omb_py.apps import Application, CheckedResult, Detail, Kernel, Sequential, option
from omb_py.apps.runtime.distribution import BlockDistribution, broadcast
from omb_py.apps.runtime.samples import Samples, draw, weak_scaled, working_bytes
from omb_py.apps.runtime.team import Array, Team
from omb_py.core.calls import Call
from omb_py.core.errors import UsageError, needing
from omb_py.core.text.words import first_ranges, ranges_of

FEW = 32
"""Centers up to which a product of matrices adds samples up faster than counting does: 0.4 to 0.7
of the time with 16 features, on one core."""


def add_up(team: Team, samples: Any, centers: Any, totals: Any) -> None:
    """Add up the samples nearest to each center; ``totals``, a row for each, is float64.

    A row has the sums of the features, then the number of samples. A sample as far from two centers
    belongs to the first one.
    """
    xp = team.xp
    totals[...] = 0
    for part, distances in compared(team, samples, centers):
        if len(centers) > FEW:
            nearest = distances.argmin(axis=0)
            for feature, sums in enumerate(totals[:, :-1].T):
                sums += xp.bincount(nearest, part[:, feature], len(centers))
            totals[:, -1] += xp.bincount(nearest, minlength=len(centers))
        else:
            marks = distances == distances.min(axis=0)
            if int(marks.sum()) != len(part):  # ties: slower
                marks = distances.argmin(axis=0) == xp.arange(len(centers))[:, None]
            marks = marks.astype(part.dtype)
            totals[:, :-1] += marks @ part
            totals[:, -1] += marks.sum(axis=1)


def inertia(team: Team, samples: Any, centers: Any) -> float:
    """Return the sum of the squares of all samples' distances from their nearest centers."""
    found = float((samples * samples).sum(dtype="float64"))
    for _, distances in compared(team, samples, centers):
        found += float(distances.min(axis=0).sum(dtype="float64"))
    return found


def compared(team: Team, samples: Any, centers: Any) -> Iterator[tuple[Any, Any]]:
    """Yield some samples at a time, and the squares of each center's distances from them.

    They are less by the square of the sample, which is the same for all centers.
    """
    squares, doubled = (centers * centers).sum(axis=1), -2 * centers
    rows = max(1, working_bytes(team) // (2 * len(centers) * centers.itemsize))
    for start in range(0, len(samples), rows):
        part = samples[start : start + rows]
        if len(centers) > FEW:  # the least of each row is faster where rows are long
            yield part, (part @ doubled.T + squares).T
        else:
            yield part, doubled @ part.T + squares[:, None]


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
    return first_ranges(ranges_of(ks))


def elbow(ks: Sequence[int], inertias: Sequence[float]) -> int | None:
    """Return the k whose inertia is farthest below the line from the first k to the last one.

    None if no k is below it. The k that the search chooses, as by V. Satopaa et al., Finding a
    "Kneedle" in a Haystack, 2011, without its smoothing.
    """
    slope = (inertias[-1] - inertias[0]) / max(1, ks[-1] - ks[0])
    below = [
        inertias[0] + slope * (k - ks[0]) - inertia for k, inertia in zip(ks, inertias, strict=True)
    ]
    return ks[below.index(max(below))] if max(below) > 0 else None


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
        self._bind(summed=not by_k and team.ranks > 1)

    def distribute(self) -> None:
        for deal in self._deals:
            deal()

    def solve(self) -> None:
        with self.team.computing:
            self._found.data[...] = 0
        for k in self._own:
            self._solve(k)
        if self._reduce is not None:
            self._reduce()

    def result(self) -> list[Clustering] | None:
        return None if self._answer is None else self._read(self._answer)

    def parts(self) -> list[Detail]:
        """Return the inertia of each k, and the k of the elbow."""
        found = [] if self._answer is None else self._read(self._answer)
        parts = [Detail(f"k {one.k}", value=one.inertia, unit="inertia") for one in found]
        chosen = elbow(self.problem.ks, [one.inertia for one in found]) if found else None
        return [*parts, Detail("elbow", value=chosen, unit="clusters")] if chosen else parts

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
        team, xp, samples = self.team, self.team.xp, self._samples.data
        own, totals = self._sums[k]
        add = self._adds.get(k)
        centers, emptied = self._first.data[:k], False
        for _ in range(self.problem.lloyd_iterations):
            with team.computing:
                add_up(team, samples, centers, own)
            if add is not None:
                add()
            with team.computing:
                counts = totals[:, -1:]
                emptied = emptied or bool((counts == 0).any())
                means = totals[:, :-1] / xp.maximum(counts, 1)
                centers = xp.where(counts > 0, means, centers).astype(centers.dtype)
        with team.computing:
            stretch = self._stretch(self._found.data, k)
            stretch[-2] = inertia(team, samples, centers)
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
            f"too few values of k, {len(problem.ks)}, for {ranks} ranks: choose a greater "
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

"""k-means for several k: the problem, where it begins, what is found, and scikit-learn's answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from omb_py.apps import CheckedResult, Sequential, option
from omb_py.apps.numerics.samples import Samples, draw
from omb_py.core.errors import UsageError, needing

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
    """What came of a k: centers (k x features), float64, and inertia.

    ``emptied``: a cluster had no sample at some time.
    """

    k: int
    centers: Any
    inertia: float
    emptied: bool


def first_centers(problem: Clusters, samples: Any) -> Any:
    """As many different samples as the maximum k; each k begins with the first ones of them.

    Raises `UsageError` where there are not so many.
    """
    import numpy as np

    chosen: dict[bytes, int] = {}
    for row in np.random.default_rng(problem.seed).permutation(len(samples)):
        chosen.setdefault(samples[row].tobytes(), int(row))
        if len(chosen) == max(problem.ks):
            return samples[list(chosen.values())]
    raise UsageError(f"only {len(chosen)} samples are different: choose a smaller --k-to")


def elbow(ks: Sequence[int], inertias: Sequence[float]) -> int | None:
    """The k at which the curve is farthest below the line between its ends, both axes from 0 to 1.

    None where there is no curve. This is Kneedle without its smoothing (V. Satopaa et al., Finding
    a "Kneedle" in a Haystack, 2011).
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
    """scikit-learn's KMeans, from the same centers."""
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
    """Inertias and centers; scikit-learn's inertias are added up anew, in double precision.

    A k is left out where a cluster was empty, since scikit-learn moves it to a sample far away;
    None where no k is left.
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

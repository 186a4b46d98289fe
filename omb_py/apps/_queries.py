"""Classification by neighbours: the problem, what is found, and scikit-learn's answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from omb_py.apps import Check, Sequential, option
from omb_py.apps._samples import Samples, drawn
from omb_py.errors import UsageError, needing

ROUNDING = 32
"""Squares of distances may differ by so many units of the last place of the greatest terms."""


@dataclass(frozen=True)
class Queries(Samples):
    """Samples whose classes are known, and queries whose classes are wanted."""

    queries: int = option(
        2_000, "Samples to classify; at most a quarter of a shipped data set.", least=1
    )
    neighbours: int = option(5, "Neighbours that vote for a class: k.", least=1)
    divide: str = option(
        "samples",
        "samples: each rank looks for neighbours of all queries among its part of the training "
        "samples; queries: of its part of the queries among all.",
        choices=("samples", "queries"),
    )

    def __post_init__(self) -> None:
        shipped = self.shipped
        if shipped is not None:
            self._become(queries=min(self.queries, shipped.samples // 4))
        super().__post_init__()
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
    values, classes = drawn(problem)
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


def compare(problem: Queries, result: Classified, reference: tuple[Any, Any]) -> Check:
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
    return Check(difference <= limit and wrong == 0, text, difference)

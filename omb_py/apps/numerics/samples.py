"""Samples to learn from, for several applications: generated, or shipped with scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeVar

from omb_py.apps import option
from omb_py.apps.runtime.team import Team
from omb_py.core.errors import UsageError, needing

GENERATED = "generated"


@dataclass(frozen=True)
class Shipped:
    """A data set that scikit-learn has on board: what loads it, and how much of it there is."""

    loader: str
    samples: int
    features: int
    classes: int


SHIPPED = {
    "digits": Shipped("load_digits", 1797, 64, 10),
    "iris": Shipped("load_iris", 150, 4, 3),
    "wine": Shipped("load_wine", 178, 13, 3),
    "breast-cancer": Shipped("load_breast_cancer", 569, 30, 2),
}


@dataclass(frozen=True)
class Samples:
    """Samples with so many features, in so many clusters.

    With a shipped data set ``samples`` is the most to take of it; it and the other two become what
    the set has.
    """

    data: str = option(
        GENERATED,
        "generated, or the name of a small data set that is shipped with scikit-learn.",
        choices=(GENERATED, *SHIPPED),
    )
    samples: int = option(50_000, "Samples; of a shipped data set at most so many.", minimum=1)
    features: int = option(16, "Features of a generated sample.", minimum=1)
    clusters: int = option(8, "Clusters of generated samples, which are their classes.", minimum=1)
    dtype: str = option("float32", "Element type.", choices=("float32", "float64"))
    seed: int = option(1, "Of generated samples, and of the order of shipped ones.", minimum=0)

    def __post_init__(self) -> None:
        shipped = self.shipped
        if shipped is not None:
            self._become(
                samples=min(self.samples, shipped.samples - self.apart),
                features=shipped.features,
                clusters=shipped.classes,
            )

    @property
    def shipped(self) -> Shipped | None:
        """The data set chosen; None for generated samples."""
        return SHIPPED.get(self.data)

    @property
    def apart(self) -> int:
        """Samples that are drawn too, for another purpose."""
        return 0

    def _become(self, **values: int) -> None:
        """Set fields while the object is made."""
        for name, value in values.items():
            object.__setattr__(self, name, value)


P = TypeVar("P", bound=Samples)


def weak_scaled(problem: P, ranks: int, name: str = "samples") -> P:
    """So many times as many samples, or another thing of that name.

    Raises `UsageError` where there are no more.
    """
    if problem.shipped is not None and ranks > 1:
        raise UsageError(
            f"--data {problem.data} cannot grow with the ranks: use --data {GENERATED}, or leave "
            "out --scaling weak"
        )
    return replace(problem, **{name: getattr(problem, name) * ranks})


def draw(problem: Samples) -> tuple[Any, Any]:
    """The samples, a row each, and their classes (int32), on the host.

    Their mean is at the origin: distances calculated as |a|^2 - 2 a.b + |b|^2 lose digits far from
    it. Raises `MissingPackageError` where a shipped data set is not there.
    """
    import numpy as np

    count = problem.samples + problem.apart
    random = np.random.default_rng(problem.seed)
    if problem.shipped is None:
        values, classes = _generated(problem, count, random)
    else:
        values, classes = _loaded(problem.shipped)
        order = random.permutation(len(values))[:count]
        values, classes = values[order], classes[order]
    values -= values.mean(axis=0)
    return values.astype(problem.dtype), classes.astype(np.int32)


def _generated(problem: Samples, count: int, random: Any) -> tuple[Any, Any]:
    """Samples normally distributed around centers, which overlap."""
    centers = random.uniform(-1, 1, (problem.clusters, problem.features))
    classes = random.integers(0, problem.clusters, count)
    return centers[classes] + random.standard_normal((count, problem.features)), classes


def _loaded(shipped: Shipped) -> tuple[Any, Any]:
    """All samples of a data set, each feature scaled to a standard deviation of 1."""
    with needing("apps"):
        from sklearn import datasets
    values, classes = getattr(datasets, shipped.loader)(return_X_y=True)
    spread = values.std(axis=0)
    spread[spread == 0] = 1
    return values / spread, classes


HOST_BYTES = 1 << 19
DEVICE_BYTES = 1 << 28
"""What to work on at a time: what stays in a core's cache, and what fills a device."""


def working_bytes(team: Team) -> int:
    """How many bytes of intermediate results to make at a time."""
    return HOST_BYTES if team.buffer.device is None else DEVICE_BYTES

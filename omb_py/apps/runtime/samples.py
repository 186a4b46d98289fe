"""Samples to learn from, for several applications."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeVar

from omb_py.apps import option
from omb_py.apps.runtime.team import Team


@dataclass(frozen=True)
class Samples:
    """Samples to learn from: their number, features, clusters, element type and seed."""

    samples: int = option(50_000, "Samples.", minimum=1)
    features: int = option(16, "Features of a sample.", minimum=1)
    clusters: int = option(8, "Clusters of samples, which are their classes.", minimum=1)
    dtype: str = option("float32", "Element type.", choices=("float32", "float64"))
    seed: int = option(1, "Of the generated samples.", minimum=0)


P = TypeVar("P", bound=Samples)


def weak_scaled(problem: P, ranks: int) -> P:
    """Return a problem with ``ranks`` times its samples: as many on each rank as on one alone."""
    return replace(problem, samples=problem.samples * ranks)


def draw(problem: Samples, more: int = 0) -> tuple[Any, Any]:
    """Return the samples and so many ``more``, a row each, and their classes (int32), on the host.

    They are normally distributed around centers, and overlap. Their mean is at the origin:
    distances calculated as |a|^2 - 2 a.b + |b|^2 lose digits far from it.
    """
    import numpy as np

    count = problem.samples + more
    random = np.random.default_rng(problem.seed)
    centers = random.uniform(-1, 1, (problem.clusters, problem.features))
    classes = random.integers(0, problem.clusters, count)
    values = centers[classes] + random.standard_normal((count, problem.features))
    values -= values.mean(axis=0)
    return values.astype(problem.dtype), classes.astype(np.int32)


HOST_BYTES = 1 << 19
DEVICE_BYTES = 1 << 28
"""Bytes to work on at a time: a core's cache holds the first, the second fills a device."""


def working_bytes(team: Team) -> int:
    """Return the number of bytes of intermediate results to make at a time."""
    return HOST_BYTES if team.buffer.device is None else DEVICE_BYTES

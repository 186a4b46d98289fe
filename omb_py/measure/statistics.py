"""Statistics of samples, in plain Python: NumPy may not be loaded under ``mpiexec``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, fsum, sqrt


def percentile(ordered: Sequence[float], percent: float) -> float:
    """The smallest sample that at least ``percent`` % of the samples do not exceed.

    ``ordered`` is sorted and not empty. This is the nearest-rank definition; native OMB's index
    ``floor(n * percent / 100) - 1`` is the same wherever that product is whole, and is out of
    range at 0 %.
    """
    rank = ceil(len(ordered) * percent / 100)
    return ordered[min(max(rank, 1), len(ordered)) - 1]


@dataclass(frozen=True)
class Summary:
    """Samples in brief; ``ordered`` are the samples themselves, sorted."""

    ordered: tuple[float, ...]
    mean: float
    stddev: float

    def percentile(self, percent: float) -> float:
        """See `percentile`."""
        return percentile(self.ordered, percent)


def summarize(samples: Sequence[float]) -> Summary:
    """Mean, standard deviation (of the sample, n - 1) and order of at least one sample."""
    count = len(samples)
    mean = fsum(samples) / count
    variance = fsum((sample - mean) ** 2 for sample in samples) / max(1, count - 1)
    return Summary(tuple(sorted(samples)), mean, sqrt(variance))

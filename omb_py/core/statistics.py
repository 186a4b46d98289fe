"""Statistics of samples, in plain Python: NumPy may not be loaded under ``mpiexec``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import ceil, comb, dist, floor, fsum, sqrt

from omb_py.core.dataclass import dataclass

LARGEST_EXACT = 1000
"""Samples up to which the interval's ranks come from the binomial distribution itself."""

FINE_LAGS = 128
"""Lags up to twice which each autocorrelation is computed; beyond it one stands for several, so
that millions of samples take no longer than some hundred lags."""

BUSY = 0.1
"""Relative spread of repeated measurements above which a note calls the machine busy."""

PARTS = 10**9
"""Parts of a percent in which percentages are counted: nine decimals are exact."""

NORMAL = 1.4826
"""Standard deviation of normal values over their median deviation from the median."""


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Return the smallest sample that at least ``percent`` % of the samples do not exceed.

    ``ordered`` is sorted and not empty. This is the nearest-rank definition; native OMB's index
    ``floor(n * percent / 100) - 1`` is the same wherever that product is whole, and is out of
    range at 0 %.
    """
    # in integers: 16.1 % of 1000 are 161.00000000000003 in floats, and the rank would be 162
    rank = -(-len(ordered) * round(percent * PARTS) // (100 * PARTS))
    return ordered[min(max(rank, 1), len(ordered)) - 1]


@lru_cache(maxsize=64)
def median_ranks(count: int) -> tuple[int, int] | None:
    """Return the ranks (from 1) of the two of ``count`` samples that enclose the median with 95 %.

    The number of samples below the median is binomial with probability 1/2, whatever the samples'
    distribution, so the interval from the j-th smallest to the j-th largest holds the median unless
    fewer than j samples are on one side. Beyond `LARGEST_EXACT` the ranks come from the normal
    approximation. Source: J.-Y. Le Boudec, Performance Evaluation of Computer and Communication
    Systems, EPFL Press 2010, theorem 2.1 and its remarks; recommended for such data by T. Hoefler
    and R. Belli, Scientific benchmarking of parallel computing systems, SC 2015. It is None below 6
    samples, because their whole range is not enough.
    """
    if count > LARGEST_EXACT:
        return floor(0.5 * count - 0.98 * sqrt(count)), ceil(0.5 * count + 1 + 0.98 * sqrt(count))
    allowed = 2**count // 40
    rank = 0
    outside = 1
    while outside <= allowed:
        rank += 1
        outside += comb(count, rank)
    return (rank, count + 1 - rank) if rank else None


def median_interval(ordered: Sequence[float], time: float = 1.0) -> tuple[float, float] | None:
    """Return the 95 % confidence interval of the median of sorted samples, or None.

    ``time`` is the samples' `autocorrelation_time`, by whose root the interval's ranks lie farther
    apart; 1 for independent samples. None if the whole range is not enough.
    """
    ranks = median_ranks(len(ordered))
    if ranks is None:
        return None
    farther = (sqrt(time) - 1) * (ranks[1] - ranks[0]) / 2
    low, high = floor(ranks[0] - farther), ceil(ranks[1] + farther)
    return (ordered[low - 1], ordered[high - 1]) if low >= 1 else None


def autocorrelation_time(samples: Sequence[float], median: float | None = None) -> float:
    """Return the number of consecutive samples that count as one independent sample.

    It holds for the median: 1 plus twice the sum of all autocorrelations of the indicator that a
    sample is above the median. By this factor the variance of the number of samples above it, and
    so of the median, exceeds that of independent samples (P. K. Sen, Asymptotic normality of sample
    quantiles for m-dependent processes, Annals of Mathematical Statistics 39, 1968). The sum ends
    by the initial monotone sequence of C. J. Geyer, Practical Markov chain Monte Carlo, Statistical
    Science 7, 1992. The result is at least 1. ``median`` is that of the samples, if it is known.
    """
    count = len(samples)
    if median is None:
        median = percentile(sorted(samples), 50)
    above = int("".join(map("01".__getitem__, map(float(median).__lt__, samples))), 2)
    share = above.bit_count() / count
    variance = share * (1 - share)
    if variance == 0:
        return 1.0

    def correlation(lag: int) -> float:
        earlier = above >> lag
        later = above.bit_count() - (above >> (count - lag)).bit_count()
        both = (above & earlier).bit_count() - share * (earlier.bit_count() + later)
        return (both / (count - lag) + share**2) * (1 - lag / count) / variance

    total, last, lag = 0.0, 2.0, 0
    while lag < count // 2:
        last = min(last, (correlation(lag) if lag else 1.0) + correlation(lag + 1))
        if last <= 0:
            break
        pairs = max(1, lag // FINE_LAGS)
        total += last * pairs
        lag += 2 * pairs
    return max(1.0, 2 * total - 1)


def relative_spread(values: Sequence[float]) -> float:
    """Return the standard deviation of positive values over their median, by median deviation.

    So a few values far off do not count (P. J. Rousseeuw and C. Croux, *Alternatives to the median
    absolute deviation*, JASA 88, 1993). 0 for a single value.
    """
    middle = percentile(sorted(values), 50)
    return NORMAL * percentile(sorted(abs(value - middle) for value in values), 50) / middle


@dataclass(frozen=True)
class Summary:
    """Samples in brief: ``samples`` as they were taken, ``ordered`` sorted."""

    samples: Sequence[float]
    ordered: tuple[float, ...]
    mean: float
    stddev: float

    def percentile(self, percent: float) -> float:
        return percentile(self.ordered, percent)

    @property
    def median_interval(self) -> tuple[float, float] | tuple[None, None]:
        """See `median_interval`; wider where neighbours are alike (`autocorrelation_time`)."""
        time = autocorrelation_time(self.samples, self.percentile(50))
        return median_interval(self.ordered, time) or (None, None)


def summarize(samples: Sequence[float]) -> Summary:
    """Return mean, standard deviation (n - 1) and order of at least one sample."""
    count = len(samples)
    mean = fsum(samples) / count
    # C computes a Euclidean distance, and there may be millions of samples
    deviation = dist(samples, [mean] * count) / sqrt(max(1, count - 1))
    return Summary(samples, tuple(sorted(samples)), mean, deviation)

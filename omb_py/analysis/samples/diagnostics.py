"""What is odd about a series: two modes, a drift, noise with a period, dependence.

Each test has a level of `LEVEL` for a series without what it looks for. Steps of the clock and
dependence of neighbours are allowed for, as each function says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, sqrt

import numpy as np
from scipy.ndimage import median_filter
from scipy.stats import kendalltau, theilslopes

from omb_py.analysis.otsu import split_point
from omb_py.analysis.samples.series import Numbers, Series
from omb_py.core.statistics import autocorrelation_time
from omb_py.core.text.units import size_text, value_text

LEVEL = 0.01
"""Probability of each finding where there is nothing to find."""

MAX_FINDINGS = 20
"""Sentences that are said of one figure."""

FEWEST = 50
"""Samples below which nothing is said of a series."""

MOST = 20_000
"""Samples beyond which the dip is that of evenly some of them."""

DIP_QUANTILE = 0.637
"""99 % quantile of the dip of uniform samples, the distribution with one mode whose dip is largest,
times the root of their number; from 4000 series of 20,000. That of fewer samples is lower."""

SHARE = 0.05
"""Share of samples that a mode has at least."""

APART = 1.05
"""Factor that modes are apart at least: less is of no use to anybody."""

BLOCKS = 20
"""Blocks of a series whose medians show a drift."""

FEWEST_BLOCKS = 6
"""Blocks below which no order of their medians is improbable enough."""

IN_TIME = 10
"""Autocorrelation times that a block lasts at least, so that its median is all but independent."""

DRIFT = 0.01
"""Change over the series, as a share of the median, from which a drift is of interest."""

CAP = 95.0
"""Percentile that slow samples are cut down to before a period is looked for."""

FIRST_FREQUENCY = 5
"""Times that a period fits into a series at least."""

NEIGHBOURS = 101
"""Frequencies whose median is the noise around each."""

UNCERTAIN_NOISE = 1.2
"""Factor for the noise around a frequency, which so few neighbours tell to some 15 %."""

HARMONIC = 0.25
"""Share of the highest power from which a lower frequency is the period, that its harmonic."""


@dataclass(frozen=True)
class Modes:
    """The medians of two groups of samples, in microseconds, and the share of the slower."""

    fast: float
    slow: float
    share: float


@dataclass(frozen=True)
class Drift:
    """The change from the first to the last sample, in microseconds and as a share of the median;
    ``p`` is the probability of such a trend by chance."""

    change: float
    relative: float
    p: float


@dataclass(frozen=True)
class Period:
    """Seconds of a period, and its half amplitude in microseconds."""

    seconds: float
    amplitude: float


@dataclass(frozen=True)
class Dependence:
    """Autocorrelation of neighbours, of ranks of samples; as how many samples one independent one
    counts for the median, and how many independent ones there are so."""

    neighbours: float
    time: float
    effective: float


@dataclass(frozen=True)
class Diagnosis:
    """All that was found in a series; None where nothing was."""

    modes: Modes | None
    drift: Drift | None
    period: Period | None
    dependence: Dependence

    def sentences(self) -> list[str]:
        """What was found, in words."""
        found = []
        if self.modes:
            fast, slow = (value_text(one, "us") for one in (self.modes.fast, self.modes.slow))
            share = f"{100 * self.modes.share:.0f} %"
            found.append(f"There are two speeds: {fast}, and {slow} in {share} of the iterations")
        if self.drift:
            word = "slower" if self.drift.change > 0 else "faster"
            size = value_text(abs(self.drift.change), "us")
            share = f"{100 * abs(self.drift.relative):.2g} %"
            found.append(f"Iterations become {word} by {size} ({share}) from the first to the last")
        if self.period:
            seconds = value_text(1e6 * self.period.seconds, "us")
            size = value_text(self.period.amplitude, "us")
            found.append(f"Noise comes back every {seconds}, {size} in amplitude")
        if self.dependence.time > 2:
            found.append(
                f"Neighbours are alike (lag-1 correlation {self.dependence.neighbours:.2f}): for "
                f"the median they count as {self.dependence.effective:.0f} independent samples, "
                f"one of {self.dependence.time:.1f}"
            )
        return found


def diagnose(series: Series) -> Diagnosis | None:
    """What there is to find in a series; None where it is too short."""
    samples = series.samples
    if len(samples) < FEWEST:
        return None
    dependent = dependence(samples)
    return Diagnosis(
        modes(samples, dependent.time),
        drift(series.starts, samples),
        period(series.starts, samples),
        dependent,
    )


def findings(series: Sequence[Series]) -> list[str]:
    """What was found in series, a sentence each that names the message size and the rank.

    At most `MAX_FINDINGS`, and then how many more there are.
    """
    found = []
    several = len({one.rank for one in series}) > 1
    for one in series:
        diagnosis = diagnose(one)
        names = [size_text(one.size)] if one.size is not None else []
        names += [f"rank {one.rank}"] if several else []
        where = f"{', '.join(names)}: " if names else ""
        found += [f"{where}{text}" for text in (diagnosis.sentences() if diagnosis else ())]
    more = len(found) - MAX_FINDINGS
    return [*found[:MAX_FINDINGS], f"and {more} more"] if more > 0 else found


def dependence(samples: Numbers) -> Dependence:
    """How much alike neighbours are.

    The correlation is of ranks, which outliers do not rule; the time is
    `omb_py.core.statistics.autocorrelation_time`.
    """
    ranks = np.argsort(np.argsort(samples, kind="stable"), kind="stable") - (len(samples) - 1) / 2
    neighbours = float((ranks[1:] * ranks[:-1]).sum() / (ranks**2).sum())
    time = autocorrelation_time(samples.tolist())
    return Dependence(neighbours, time, len(samples) / time)


def modes(samples: Numbers, time: float = 1.0) -> Modes | None:
    """The two modes of samples of which `dip` says that one mode is not enough.

    The dip is that of as many samples as count as independent, evenly chosen, with half a step of
    the clock of noise, since values that repeat would look like modes. The samples are parted by
    their logarithms, without the slowest percent (`split_point`). A part of less than `SHARE`, or
    modes closer than `APART`, are none.
    """
    above = samples[samples > 0]
    step = max(1, int(np.ceil(time)), -(-len(above) // MOST))
    chosen = above[::step]
    if len(chosen) < FEWEST:
        return None
    values = np.unique(chosen)
    tick = float(np.diff(values).min()) if len(values) > 1 else 0.0
    if len(values) < len(chosen):
        chosen = chosen + tick * (np.random.default_rng(0).random(len(chosen)) - 0.5)
    if dip(np.sort(chosen)) * sqrt(len(chosen)) <= DIP_QUANTILE:
        return None
    ordered = np.sort(above)[: int(0.99 * len(above))]
    split = split_point(np.log(ordered))
    fast, slow = float(np.median(ordered[:split])), float(np.median(ordered[split:]))
    share = 1 - split / len(ordered)
    if not SHARE <= share <= 1 - SHARE or slow < APART * fast:
        return None
    return Modes(fast, slow, share)


def dip(ordered: Numbers) -> float:
    """How far, at least, a distribution with one mode is from the distribution of the samples.

    The dip statistic of J. A. Hartigan and P. M. Hartigan, The dip test of unimodality, Annals of
    Statistics 13, 1985, by P. M. Hartigan's algorithm (Applied Statistics 34, AS 217, 1985):
    ``ordered`` samples are compared with the greatest convex minorant of their distribution left of
    the mode and the least concave majorant right of it, on an interval that narrows.
    """
    count = len(ordered)
    low, high = 0, count - 1
    found = 1.0
    places = np.arange(count, dtype=np.float64)
    while True:
        below = hull(ordered, places, low, high, convex=True)
        over = hull(ordered, places, low, high, convex=False)
        minorant = np.interp(ordered[over], ordered[below], places[below])
        majorant = np.interp(ordered[below], ordered[over], places[over])
        gaps_over = places[over] - minorant
        gaps_below = majorant - places[below]
        if max(gaps_over.max(), gaps_below.max()) + 1 <= found:
            break
        if gaps_below.max() >= gaps_over.max():
            left = int(below[gaps_below.argmax()])
            right = int(over[np.searchsorted(over, left)])
        else:
            right = int(over[gaps_over.argmax()])
            left = int(below[np.searchsorted(below, right, side="right") - 1])
        widest = max(gaps_over.max(), gaps_below.max()) + 1
        within = max(
            deviation(ordered, places, below[below <= left], convex=True),
            deviation(ordered, places, over[over >= right], convex=False),
        )
        found = max(found, within)
        if widest <= found or (left <= low and right >= high):
            break
        low, high = left, right
    return found / (2 * count)


def hull(ordered: Numbers, places: Numbers, low: int, high: int, convex: bool) -> np.ndarray:
    """The samples at which the convex minorant, or the concave majorant, has its corners."""
    sign = 1.0 if convex else -1.0
    x, y = ordered.tolist(), (sign * places).tolist()
    corners: list[int] = []
    for place in range(low, high + 1):
        while len(corners) > 1:
            one, two = corners[-2], corners[-1]
            if (y[two] - y[one]) * (x[place] - x[two]) < (y[place] - y[two]) * (x[two] - x[one]):
                break
            corners.pop()
        corners.append(place)
    return np.array(corners)


def deviation(ordered: Numbers, places: Numbers, corners: np.ndarray, convex: bool) -> float:
    """How far samples are from the hull that they have, in samples."""
    if len(corners) < 2:
        return 1.0
    first, last = int(corners[0]), int(corners[-1])
    line = np.interp(ordered[first : last + 1], ordered[corners], places[corners])
    here = places[first : last + 1]
    return float(((here - line) if convex else (line - here)).max()) + 1.0


def drift(starts: Numbers, samples: Numbers) -> Drift | None:
    """A trend of the medians of blocks, with its size.

    Blocks are so long that their medians are all but independent of each other but for the trend,
    which the test assumes (H. B. Mann, Nonparametric tests against trend, Econometrica 13, 1945;
    M. G. Kendall, Rank correlation methods, 1948); the slope is the median of those between any two
    blocks (P. K. Sen, Estimates of the regression coefficient based on Kendall's tau, JASA 63,
    1968).
    """
    middles, medians = block_medians(starts, samples, BLOCKS)
    slope = float(theilslopes(medians, middles)[0]) if np.ptp(medians) > 0 else 0.0
    time = autocorrelation_time((samples - slope * starts).tolist())
    blocks = min(BLOCKS, int(len(samples) / (IN_TIME * time)))
    if slope == 0 or blocks < FEWEST_BLOCKS:
        return None
    middles, medians = block_medians(starts, samples, blocks)
    p = float(kendalltau(middles, medians).pvalue)
    change = float(theilslopes(medians, middles)[0] * (starts[-1] - starts[0]))
    relative = change / float(np.median(samples))
    if not p < LEVEL or abs(relative) < DRIFT:
        return None
    return Drift(change, relative, p)


def block_medians(starts: Numbers, samples: Numbers, blocks: int) -> tuple[Numbers, Numbers]:
    """When blocks were in the middle, and their medians."""
    parts = np.array_split(np.arange(len(samples)), blocks)
    middles = np.array([starts[part].mean() for part in parts])
    return middles, np.array([np.median(samples[part]) for part in parts])


def period(starts: Numbers, samples: Numbers) -> Period | None:
    """The period of noise, from the power of the samples at each frequency.

    Samples, slow ones cut down to a percentile, are averaged in even steps of time. Slow
    fluctuations, whose power is high at all low frequencies, are no period: the power is that of
    what one step does not predict of the next (red noise as in C. Torrence and G. P. Compo, A
    practical guide to wavelet analysis, Bulletin of the American Meteorological Society 79, 1998),
    divided by the mean that the median of neighbouring frequencies stands for. For noise alone it
    exceeds x with probability exp(-x) (J. D. Scargle, Studies in astronomical time series analysis
    II, Astrophysical Journal 263, 1982); the level is divided by the number of frequencies. Pulses
    have harmonics: the lowest frequency that is nearly as strong is the period.
    """
    count = len(samples)
    span = float(starts[-1] - starts[0])
    if span <= 0 or count < 2 * (FIRST_FREQUENCY + NEIGHBOURS):
        return None
    cut = np.minimum(samples, np.percentile(samples, CAP))
    cells = np.minimum(((starts - starts[0]) / span * count).astype(np.int64), count - 1)
    sums = np.bincount(cells, cut - cut.mean(), minlength=count)
    values = sums / np.maximum(np.bincount(cells, minlength=count), 1)
    square = float((values**2).sum())
    if square == 0:
        return None
    unpredicted = values[1:] - float((values[1:] * values[:-1]).sum()) / square * values[:-1]
    power = np.abs(np.fft.rfft(unpredicted, count)[FIRST_FREQUENCY:-1]) ** 2
    noise = median_filter(power, NEIGHBOURS, mode="reflect") / log(2)
    relative = power / np.maximum(noise, 1e-12 * power.max())
    needed = UNCERTAIN_NOISE * log(len(power) / LEVEL)
    strong = relative > max(needed, HARMONIC * relative.max())
    if not strong.any():
        return None
    near = FIRST_FREQUENCY + int(strong.argmax()) + np.linspace(-1, 1, 41)
    turns = np.exp(-2j * np.pi * near[:, None] * np.arange(count) / count) @ values
    best = int(np.abs(turns).argmax())
    return Period(span / float(near[best]), float(2 * np.abs(turns[best]) / count))

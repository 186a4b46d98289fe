"""Verdicts: whether one result is slower than another by more than noise, and by how much.

Every command with verdicts uses these: compare, show --across, guidelines.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import floor, log10
from typing import NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from scipy.special import ndtr
from scipy.stats import false_discovery_control, mannwhitneyu, norm
from scipy.stats import t as student

from omb_py.core.text.units import digits

LEVEL = 0.05
"""The chance of an interval to miss the true value, and of a test to see a false difference."""

SLOWER, FASTER = "slower", "faster"
WITHIN, EQUAL, UNCLEAR = "within noise", "equal", "unclear"

MARGIN = 0.05
"""The default slowdown up to which results are called equal."""

WIDEST = 2.0
"""The largest slowdown in the interval of a point within noise: noise in which a factor of two may
hide says nothing of a difference."""

EXACT_PAIRS = 2500
"""Pairs of runs up to which the rank test's distribution is exact; normal above."""

BLOCK = 1 << 22
"""Quotients that are held in memory at once."""


LAUNCHES_FOR_SPREAD = 6
"""Launches of both sides together from which their spread gives an interval.

Where a library is in one of two states from launch to launch, with chance p, all launches of each
side are in the same state and the sides in different ones with chance p^m q^n + q^m p^n: at most
7 % for 6 launches, but 9 % for 5 and 25 % for 3.
"""


Numbers: TypeAlias = float | np.ndarray | pd.Series

ONE_SIDED = 2 * LEVEL
"""The level of an interval each end of which, taken alone, is a bound of level `LEVEL`."""

RANK_EFFICIENCY = 3 / np.pi
"""Variance of the mean of normal values over that of Hodges and Lehmann's estimate, for many."""

MOST_LAUNCHES = 50
"""Launches that are still advised."""


class Interval(NamedTuple):
    """Estimates of ratios, their intervals, and the chance of such data without a change."""

    ratio: np.ndarray
    low: np.ndarray
    high: np.ndarray
    p_value: np.ndarray


def by_runs(base: np.ndarray, other: np.ndarray, level: float = LEVEL) -> Interval:
    """Return ratio other / base of repeated runs, one pair of samples for each row.

    The ratio is the median of the quotients of all pairs of runs; its interval holds the ratios
    that a two-sided rank test (Mann and Whitney, 1947) of this level does not refute, which are the
    quotients between the k-th smallest and the k-th largest (J. L. Hodges and E. L. Lehmann,
    *Estimates of location based on rank tests*, Annals of Mathematical Statistics 34, 1963, on
    logarithms). Equal runs count against a difference. The interval is missing if there are too few
    runs (`enough`).
    """
    points, m = base.shape
    n = other.shape[1]
    chances = chance(m, n)
    k = int((chances[: m * n // 2 + 1] <= level).sum())
    found = Interval(*(np.full(points, np.nan) for _ in range(4)))
    logs = np.log(base), np.log(other)
    step = max(1, BLOCK // (m * n))
    for start in range(0, points, step):
        part = slice(start, start + step)
        quotients = (logs[1][part, None, :] - logs[0][part, :, None]).reshape(-1, m * n)
        against = np.minimum((quotients <= 0).sum(axis=1), (quotients >= 0).sum(axis=1))
        found.p_value[part] = chances[against]
        found.ratio[part] = np.exp(np.median(quotients, axis=1))
        if k:
            quotients.partition([k - 1, m * n - k], axis=1)
            found.low[part] = np.exp(quotients[:, k - 1])
            found.high[part] = np.exp(quotients[:, m * n - k])
    return found


def enough(m: int, n: int) -> bool:
    """Return whether these numbers of runs can show a difference at 5 %: from 4 against 4."""
    return bool(chance(m, n)[0] <= LEVEL)


@cache
def chance(m: int, n: int) -> np.ndarray:
    """Return the two-sided rank test's P-value of m and n runs, by pairs against the difference.

    ``chance(m, n)[u]`` belongs to data in which the direction of the majority fails in ``u`` of
    the ``m * n`` pairs.
    """
    pairs = m * n
    below = np.arange(pairs // 2 + 1)
    if pairs > EXACT_PAIRS:
        deviation = np.sqrt(pairs * (m + n + 1) / 12)
        tail = 2 * ndtr((below + 0.5 - pairs / 2) / deviation)
    else:
        # ranks that give each number of such pairs: u = sum over the runs of those they exceed
        exceeded = np.clip(below[:, None] - n * np.arange(m), 0, n)
        ranks = exceeded - 0.5
        places = np.broadcast_to(np.arange(n), (len(below), n))
        tail = mannwhitneyu(ranks, places, method="exact", axis=1).pvalue
    return np.concatenate([np.minimum(tail, 1.0), np.ones(pairs - pairs // 2)])


def by_samples(base: Sequence[np.ndarray], other: Sequence[np.ndarray]) -> Interval:
    """Return ratio other / base of values with their own 95 % intervals, each ``value, low, high``.

    The interval recovers the variances from both intervals, on logarithms (MOVER: G. Y. Zou and A.
    Donner, *Construction of confidence limits about effect measures*, Statistics in Medicine 27,
    2008): asymmetric ones stay so. Neither contains the noise between launches, so the result is
    not the interval of a difference until `with_launches` has widened it.
    """
    (x, x_low, x_high), (y, y_low, y_high) = base, other
    ratio = y / x
    with np.errstate(divide="ignore"):  # an interval may begin at 0, the clock's first tick
        low = ratio * np.exp(-np.hypot(np.log(y / y_low), np.log(x_high / x)))
        high = ratio * np.exp(np.hypot(np.log(y_high / y), np.log(x / x_low)))
    return Interval(ratio, low, high, np.full(len(x), np.nan))


def with_launches(
    found: Interval,
    launches: Sequence[np.ndarray],
    spread: np.ndarray,
    degrees: np.ndarray,
    level: float = LEVEL,
) -> Interval:
    """Return intervals of `by_samples` widened by the noise between ``launches`` of both sides.

    ``spread`` is the standard deviation of a launch's logarithm, known with ``degrees`` of freedom
    (infinite if it is stated); without samples, the interval is only the spread's. On logarithms
    that is Student's interval of a difference of means with a pooled variance, added to the
    samples' as independent (MOVER). Repetition is needed at the level of launches: T. Kalibera and
    R. Jones, *Rigorous benchmarking in reasonable time*, ISMM 2013. The interval is missing if the
    spread is. The chance is that of Student's test whose level is ``level`` where the interval ends
    at 1.
    """
    variance = sum(variance_of_median(count) for count in launches)
    degrees = np.where(degrees > 0, degrees, np.nan)
    quantile = student.ppf(1 - level / 2, degrees)
    between = quantile * spread * np.sqrt(variance)
    with np.errstate(divide="ignore"):
        within = np.log(found.ratio / found.low), np.log(found.high / found.ratio)
    below, above = (np.hypot(between, np.nan_to_num(part, posinf=np.inf)) for part in within)
    towards_one = np.where(found.ratio > 1, below, above)
    with np.errstate(divide="ignore", invalid="ignore"):
        deviations = np.abs(np.log(found.ratio)) / towards_one * quantile
    return found._replace(
        low=found.ratio * np.exp(-below),
        high=found.ratio * np.exp(above),
        p_value=2 * student.sf(deviations, degrees),
    )


def variance_of_median(count: Numbers) -> np.ndarray:
    """Return the variance of the median of ``count`` normal values, in theirs, or a little more."""
    return np.asarray(np.where(np.greater(count, 2), np.pi / 2, 1.0) / count)


def prediction(spread: Numbers, degrees: Numbers, count: Numbers, points: int) -> np.ndarray:
    """Return how far one more launch may be beyond the median of ``count`` launches, on logarithms.

    With a chance of 95 %, no point of ``points`` is further off on one side. That is Student's
    prediction limit with a ``spread`` that is known with ``degrees`` of freedom, at a level divided
    by the number of points (G. J. Hahn and W. Q. Meeker, *Statistical Intervals*, Wiley 1991,
    section 4.8, for the mean). It holds however the noise of the points depends on each other.
    """
    quantile = student.isf(LEVEL / points, degrees)
    return np.asarray(quantile * spread * np.sqrt(1 + variance_of_median(count)))


def launches_to_find(points: int) -> int:
    """Return how many launches a side the rank test needs to find one slow point of so many.

    >>> launches_to_find(1), launches_to_find(20), launches_to_find(160)
    (4, 6, 8)
    """
    return next(n for n in range(1, MOST_LAUNCHES + 1) if chance(n, n)[0] * points <= LEVEL)


def launches_to_pass(spread: float, allowed: float, points: int) -> int | None:
    """Return how many launches a side bound the slowdown of so many equal points by ``allowed``.

    All `by_runs` bounds of level 5 % are then below with a chance of some 95 %, if launches have a
    normal noise of this relative ``spread``. None for more than `MOST_LAUNCHES`.

    >>> [launches_to_pass(spread, 1.05, points=160) for spread in (0.01, 0.02, 0.05)]
    [4, 10, None]
    """
    of_noise = norm.isf(LEVEL / points)
    for n in range(launches_to_find(1), MOST_LAUNCHES + 1):
        deviation = np.log1p(spread) * np.sqrt(2 / n / RANK_EFFICIENCY)
        if (of_noise + student.isf(LEVEL, 2 * n - 2)) * deviation <= np.log(allowed):
            return n
    return None


def verdicts(slowdown: Interval, p_adjusted: np.ndarray, margin: float = MARGIN) -> np.ndarray:
    """Return the verdict of each point by its interval of the slowdown and its adjusted p-value.

    `SLOWER` or `FASTER`: the whole interval is, and ``p_adjusted`` is 5 % at most. Else `EQUAL`:
    the whole interval is between 1 / (1 + ``margin``) and 1 + ``margin``; never for a ``margin``
    that is not a number. Else `WITHIN` noise, if the interval reaches to `WIDEST` at most.
    `UNCLEAR`: there is no interval, or one that says nothing.
    """
    significant = p_adjusted <= LEVEL
    with np.errstate(invalid="ignore"):
        equal = (slowdown.low >= 1 / (1 + margin)) & (slowdown.high <= 1 + margin)
        known = (slowdown.low >= 1 / WIDEST) & (slowdown.high <= WIDEST)
    return np.select(
        [
            np.isnan(slowdown.low),
            (slowdown.low > 1) & significant,
            (slowdown.high < 1) & significant,
            equal,
            known,
        ],
        [UNCLEAR, SLOWER, FASTER, EQUAL, WITHIN],
        UNCLEAR,
    )


def adjusted(p_values: pd.Series, families: pd.Series) -> pd.Series:
    """Return p-values adjusted for the number in their family; missing ones do not count.

    If p-values of at most 5 % are taken for differences, on average at most 5 % of the differences
    in a family are false. If no point differs, a family has a false difference with a chance of at
    most 5 % (Y. Benjamini and Y. Hochberg, *Controlling the false discovery rate*, JRSS B 57,
    1995). That holds for independent points, and for those whose noise is alike, as that of sizes
    of one launch (Y. Benjamini and D. Yekutieli, Annals of Statistics 29, 2001).
    """
    known = p_values.dropna()
    groups = known.groupby(families.reindex(known.index), sort=False)
    return groups.transform(false_discovery_control).reindex(p_values.index)


def percent(part: float) -> str:
    """Return a part as a percentage with two digits.

    >>> percent(0.0291), percent(0.5)
    ('2.9 %', '50 %')
    """
    return f"{100 * part:.2g} %" if part < 1 else f"{100 * part:.0f} %"


def times(slowdown: float, rounding: float = 0.0) -> str:
    """Return a slowdown in words, with as many digits as its relative ``rounding`` leaves.

    >>> times(1.25), times(0.5), times(1.0), times(1.25, rounding=0.06)
    ('1.250x slower', '2.000x faster', 'equal', '1.2x slower')
    """
    text = factor(max(slowdown, 1 / slowdown), rounding)
    if float(text.rstrip("x")) == 1:
        return "equal"
    return f"{text} {'slower' if slowdown > 1 else 'faster'}"


def factor(number: float, rounding: float = 0.0) -> str:
    """Return a ratio to a tenth of a percent, or to three digits if it is large or small; to
    fewer if the relative ``rounding`` of its two numbers leaves fewer.

    >>> factor(1.0321), factor(74.4321), factor(0.00123)
    ('1.032x', '74.4x', '0.00123x')
    >>> factor(2.0, rounding=1.5), factor(74.4321, rounding=0.1), factor(0.05, rounding=0.5)
    ('2x', '74x', '0.05x')
    """
    text = f"{number:.3f}" if 0.1 <= number < 10 else digits(number)
    error = number * rounding
    known = max(0, floor(-log10(error)), -floor(log10(number))) if error > 0 else 99  # one at least
    return f"{number:.{known}f}x" if known < len(text.partition(".")[2]) else f"{text}x"

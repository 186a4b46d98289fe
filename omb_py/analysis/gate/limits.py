"""How far each host is above the typical one, and above how much it is slow.

A host's cost at a point is the median of the logarithms of its times. Its limit is that of a slow
pair of ranks (`pairs.findings.slow_limit`), with noise that is robust: neither a few slow hosts nor
a long tail of their times make a false alarm. Between two hosts a time is that of the slower end,
so a host counts by its median partner.

NumPy is enough but for long tails: rank 0 of a job judges between two turns.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from math import comb
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from omb_py.analysis.pairs.findings import FEW, MAD_OF_NORMAL, SMALLEST_NOISE, slow_limit
from omb_py.core.dataclass import dataclass, replace
from omb_py.core.text.words import first_of

Numbers: TypeAlias = NDArray[np.float64]
Places: TypeAlias = NDArray[np.intp]

FEWEST = 3
"""Fewest hosts among which a slow one can be found."""

UPPER = 84.13
"""The percentile of normal noise at one standard deviation above its median."""

MEDIAN_OF_NORMAL = 1.2533
"""Standard deviation of the median of normal samples, times the root of their number."""

SMALLEST_CLASS = 0.2
"""Smallest part of all hosts that can be hardware of its own; fewer are slow hosts."""

FEW_HOSTS = 30
"""Hosts from which on their own noise is known well enough."""

GAP = 6.0
"""Standard deviations between two classes of hosts at least."""

MOST_CHANGES = 0.05
"""The part of all turns in which a host may be on the other side of the gap of two classes."""

CLIPPED = 10.0
"""The percentile on each side beyond which hosts do not move the split into two classes."""

TAIL = 99.0
"""The percentile by which a long tail is seen."""

FEWEST_OF_TAIL = 200
"""Fewest hosts whose `TAIL` percentile says something."""

LONG_TAIL = 1.05
"""How many times longer than a normal one a tail is that counts."""

QUARTER = 4
"""The part of a host's turns that may be fast although it is slow: one of so many."""

FREEDOMS = (30.0, 20.0, 14.0, 10.0, 8.0, 6.0, 5.0, 4.0, 3.0)
"""Degrees of freedom of Student's distribution, from the shortest tail to the longest."""

LARGEST_LIMIT = float(np.log(2))
"""Logarithm of the factor above which a limit is no judgement any more."""

NOISY = float(np.log(1.5))
"""Logarithm of the limit above which hosts are judged by their fastest iterations, too."""

FEWEST_SPLITS = 3
"""Splits into halves from which on all halves of a host name it."""


@dataclass(frozen=True)
class Point:
    """Costs, natural logarithms of times, of ``hosts`` at one benchmark, size and kind of place.

    ``costs`` has a row for each host and a column for each turn, NaN where it was not measured; the
    last ``again`` columns measured what had been suspected. ``partners`` has the place of the other
    host of a pair, -1 for none. In ``halves``, costs are of the host's half over the other half.
    ``fastest`` are the costs of the fastest iterations, if they are known.
    """

    name: str
    hosts: tuple[str, ...]
    costs: Numbers
    partners: Places | None = None
    again: int = 0
    halves: bool = False
    fastest: Numbers | None = None

    @property
    def first(self) -> Numbers:
        """The costs of the turns before anything was suspected."""
        return self.costs[:, : self.costs.shape[1] - self.again]

    @property
    def repeated(self) -> Numbers:
        """The costs of the turns in which suspected hosts were measured again."""
        return self.costs[:, self.costs.shape[1] - self.again :]


@dataclass(frozen=True)
class HostCosts:
    """Costs of the hosts of a point above the typical one, and the limit of each.

    ``excess`` and ``limits`` are logarithms of factors; ``classes`` numbers each host's class: 1
    for the slower one of two, 0 for all if there is one.
    """

    point: Point
    excess: Numbers
    limits: Numbers
    classes: Places
    between: float = 0.0

    @property
    def judged(self) -> NDArray[np.bool_]:
        """Whether each host has a cost, and a limit that is worth something."""
        return np.isfinite(self.excess) & (self.limits <= LARGEST_LIMIT)

    @property
    def is_noisy(self) -> bool:
        """Whether noise hides a host that takes `NOISY` times as long."""
        known = np.isfinite(self.excess)
        return bool(known.any() and np.median(self.limits[known]) > NOISY)

    @property
    def is_too_noisy(self) -> bool:
        """Whether noise hides a host that takes `LARGEST_LIMIT` times as long."""
        return not self.judged.any()

    @property
    def slow(self) -> NDArray[np.bool_]:
        """Whether each host is beyond its limit, however large that is."""
        return np.nan_to_num(self.excess, nan=-np.inf) > self.limits


@dataclass(frozen=True)
class Classes:
    """Two classes of hosts that are apart at a point, as two generations of hardware are.

    The ``slower`` ones take ``factor`` times as long as the others.
    """

    point: str
    slower: tuple[str, ...]
    faster: tuple[str, ...]
    factor: float

    @property
    def text(self) -> str:
        """The finding as a sentence without its end."""
        return (
            f"two groups of hosts at {self.point}: {len(self.slower)} ({first_of(self.slower, 4)}) "
            f"take {self.factor:.2f} times as long as {len(self.faster)} others "
            f"({first_of(self.faster, 4)})"
        )


def typical_costs(point: Point, costs: Numbers) -> Numbers:
    """Return the cost of each host over the turns; of pairs the lower median of its partners.

    In halves it is the least of its halves, since others share only some of them with a slow host.
    """
    ordered = np.sort(costs, axis=1)  # NaN are last
    turns = np.isfinite(ordered).sum(axis=1)
    if not ordered.size:
        return np.full(len(costs), np.nan)
    if point.halves:
        return np.where(turns > 0, ordered[:, 0], np.nan)
    low = np.maximum((turns - 1) // 2, 0)
    high = low if point.partners is not None else np.minimum(turns // 2, ordered.shape[1] - 1)
    every = np.arange(len(costs))
    middles: Numbers = (ordered[every, low] + ordered[every, high]) / 2
    return middles


def costs_of(point: Point, tolerance: float, alarms: float, usual: float) -> list[HostCosts]:
    """Return the hosts' costs; where noise hides much, also those of the fastest iterations.

    What takes a core from time to time makes medians longer, and the fastest iterations hardly.
    ``usual`` is the noise of all points.
    """
    one = host_costs(point, tolerance, alarms, usual)
    if point.fastest is None or not one.is_noisy:
        return [one]
    other = replace(point, name=f"{point.name}, fastest", costs=point.fastest, fastest=None)
    fastest = host_costs(other, tolerance, alarms)
    if fastest.is_too_noisy:
        return [one]
    return [fastest] if one.is_too_noisy else [one, fastest]


def host_costs(
    point: Point, tolerance: float, alarms: float, usual: float = 0.0, alike: bool = False
) -> HostCosts:
    """Return how far each host is above the typical one, and above how much it is slow.

    ``usual`` is the noise of all points: that of few hosts is often far too small by chance. Hosts
    that are ``alike`` are of one class.
    """
    costs = typical_costs(point, point.first)
    known = np.isfinite(costs)
    if point.halves:
        return costs_of_halves(point, costs, tolerance, alarms)
    classes = np.zeros(len(costs), np.intp) if alike else two_classes(costs, tolerance)
    excess, limits = np.full(len(costs), np.nan), np.full(len(costs), np.inf)
    for number in (0, 1):
        members = known & (classes == number)
        if not members.any():
            continue
        of_class = costs[members]
        excess[members] = of_class - np.median(of_class)
        noise = spread(of_class)
        if len(of_class) < FEW_HOSTS:
            noise = max(noise, usual)
        limit = slow_limit(noise, len(of_class), alarms, 1 + tolerance)
        noise, turns = spread_of_turns(point, members, costs)
        if turns < 2:
            limits[members] = max(limit, limit_of_tail(of_class, alarms))
        else:
            # many turns of few hosts: their noise is better known than that of the hosts
            many = turns * len(of_class), turns * alarms
            limit = max(limit, slow_limit(noise, *many, 1 + tolerance))
            suspects = np.flatnonzero(members)[excess[members] > limit]
            own = limits_of_turns(point, members, suspects, alarms) + excess
            limits[members] = np.maximum(limit, own[members])
    between = 0.0
    if (classes == 1).any():
        between = float(np.median(costs[known & (classes == 1)]) - np.median(costs[classes == 0]))
    found = HostCosts(point, excess, limits, classes, between)
    return (
        found
        if are_classes(found, costs)
        else host_costs(point, tolerance, alarms, usual, alike=True)
    )


def are_classes(one: HostCosts, costs: Numbers) -> bool:
    """Return false if the two classes of hosts come of noise, by the turns or pairs of each."""
    slower = one.classes == 1
    if not slower.any():
        return True
    if one.point.partners is not None:
        inside = inside_costs(one.point, np.flatnonzero(slower))
        is_fast = fast_inside(one, np.flatnonzero(slower))
        return not len(inside) or is_fast or len(classes_of(one).slower) >= FEWEST
    turns = one.point.first
    middle = (costs[slower].min() + costs[np.isfinite(costs) & ~slower].max()) / 2
    changed = ((turns > middle) != slower[:, None])[np.isfinite(turns)]
    return bool(np.mean(changed) <= MOST_CHANGES)


def usual_noise(points: Iterable[Point], tolerance: float) -> float:
    """Return the median noise of points, within the classes of each."""
    noises = []
    for point in points:
        costs = typical_costs(point, point.first)
        classes = two_classes(costs, tolerance)
        members = (costs[np.isfinite(costs) & (classes == number)] for number in (0, 1))
        noises += [spread(own) for own in members if len(own)]
    return float(np.median(noises)) if noises else 0.0


def limits_of_turns(point: Point, members: Places, suspects: Places, alarms: float) -> Numbers:
    """Return the limit of each host's lower quartile of turns, above that quartile.

    If noise is beyond a cost in a share p of all turns, however long its tail is, it is in k of a
    host's t turns in less than C(t, k) p^k. The limit makes that as rare as a false alarm. It is a
    percentile of turns, without those of ``suspects``, and needs no distribution far beyond them.
    """
    costs = np.sort(point.first, axis=1)
    numbers = np.isfinite(costs).sum(axis=1)
    others = np.isfinite(point.first) & members[:, None]
    others[suspects] = False
    if point.partners is not None:  # of another class, or slow itself, it makes the pair slow
        partners = point.partners[:, : others.shape[1]]
        others &= np.isin(partners, np.setdiff1d(np.flatnonzero(members), suspects))
    found = np.full(len(costs), -np.inf)
    known = point.first[others]
    for turns in np.unique(numbers[members & (numbers > 0)]).tolist() if len(known) else ():
        below = (turns - 1) // QUARTER
        beyond = turns - below
        share = (alarms / int(members.sum()) / comb(turns, beyond)) ** (1 / beyond)
        own = members & (numbers == turns)
        found[own] = np.percentile(known, 100 * (1 - share)) - costs[own, below]
    return found


def costs_of_halves(point: Point, costs: Numbers, tolerance: float, alarms: float) -> HostCosts:
    """Return the costs by halves: a host is slow if each of its halves is.

    In all splits the same host is on the slower side: of equal hosts there is always one. One that
    is the reason makes all differences alike, and several slow hosts make them unlike: the limit is
    Student's, of their standard deviation.
    """
    sizes = np.abs(point.first[0])
    sizes = sizes[np.isfinite(sizes)]
    limits = np.full(len(costs), np.inf)
    if len(sizes) >= FEWEST_SPLITS:
        limits[:] = np.log1p(tolerance)
        if (costs > limits).any():
            from scipy.stats import t

            factor = float(t.isf(alarms, len(sizes) - 1)) / np.sqrt(len(sizes))
            limits = np.maximum(limits, factor * np.std(sizes, ddof=1))
    return HostCosts(point, costs, limits, np.zeros(len(costs), np.intp))


def spread(costs: Numbers) -> float:
    """Return a robust standard deviation of costs, which their upper half makes larger."""
    upper = np.percentile(costs, UPPER, method="lower") - np.median(costs)
    return max(deviation(costs), float(upper))


def limit_of_tail(costs: Numbers, alarms: float) -> float:
    """Return the limit of costs whose upper tail is longer than a normal one; 0 for others.

    Student's distribution stands for them, with the degrees of freedom of their `TAIL` percentile.
    """
    if len(costs) < FEWEST_OF_TAIL:
        return 0.0
    middle = np.median(costs)
    upper, tail = np.percentile(costs, (UPPER, TAIL), method="lower") - middle
    if not upper > 0 or tail / upper < LONG_TAIL * NormalDist().inv_cdf(TAIL / 100):
        return 0.0
    from scipy.stats import t

    longer = LONG_TAIL * tail / upper  # the percentile is uncertain
    ratios = t.ppf(TAIL / 100, FREEDOMS) / t.ppf(UPPER / 100, FREEDOMS)
    freedom = next((f for f, ratio in zip(FREEDOMS, ratios, strict=True) if ratio >= longer), 3.0)
    deviation_of_one = upper / t.ppf(UPPER / 100, freedom)
    return float(deviation_of_one * t.ppf(1 - alarms / len(costs), freedom))


def spread_of_turns(point: Point, members: Places, middles: Numbers) -> tuple[float, int]:
    """Return the standard deviation of hosts' medians that turns make likely, and their number.

    That of few hosts is often far too small by chance. A pair is expected to be as slow as its
    slower end, so a slow partner is no noise; ``middles`` are the costs of all hosts. The upper
    part of the differences counts, too: times may be of two kinds, as with both ranks on one core
    or on two.
    """
    costs = point.first[members]
    turns = int(np.mean(np.isfinite(costs).sum(axis=1)))
    if turns < 2:
        return 0.0, turns
    own = middles[members][:, None]
    pairs, ends, lost = turns * len(costs) / 2, len(costs), 1.0
    if point.partners is not None and pairs > ends:
        partners = point.partners[members, : costs.shape[1]]
        left = costs - np.fmax(own, middles[partners])
        lost = 1 - ends / pairs  # by as many middles
    else:
        # without what all hosts have in common in a turn
        left = costs - own
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # turns without any host
            left = left - np.nanmedian(left, axis=0)
    left = left[np.isfinite(left)]
    each = max(float(np.median(np.abs(left))) / MAD_OF_NORMAL, float(np.percentile(left, UPPER)))
    return MEDIAN_OF_NORMAL * each / float(np.sqrt(turns * lost)), turns


def two_classes(costs: Numbers, tolerance: float) -> Places:
    """Return 1 for hosts of the slower of two classes, if there are two; 0 for others.

    Two generations of nodes are apart by much beside the spread of each, and neither is a small
    part of all. They are split where they explain most of the variance (N. Otsu, IEEE Transactions
    on Systems, Man, and Cybernetics 9, 1979), without what is beyond the outer `CLIPPED` parts. The
    spread of few is uncertain, as in `slow_limit`.
    """
    classes = np.zeros(len(costs), np.intp)
    known = np.sort(costs[np.isfinite(costs)])
    number = len(known)
    fewest = max(FEWEST, int(np.ceil(SMALLEST_CLASS * number)))
    if number < 2 * fewest:
        return classes
    left = np.arange(fewest, number - fewest + 1)
    inner = np.clip(known, *np.percentile(known, (CLIPPED, 100 - CLIPPED), method="nearest"))
    sums = np.cumsum(inner)[left - 1]
    at = int(left[np.argmax((sums - left * inner.mean()) ** 2 / (left * (number - left)))])
    low, high = known[:at], known[at:]
    within = max(deviation(low), deviation(high)) * (1 + FEW / number)
    if np.median(high) - np.median(low) > max(GAP * within, np.log1p(tolerance)):
        classes[np.nan_to_num(costs, nan=-np.inf) >= high[0]] = 1
    return classes


def deviation(costs: Numbers) -> float:
    """Return the robust standard deviation of costs."""
    middle = np.median(costs)
    return float(max(SMALLEST_NOISE, np.median(np.abs(costs - middle)) / MAD_OF_NORMAL))


def fast_inside(one: HostCosts, members: Places) -> bool:
    """Return whether hosts are slow only with others, as behind a slow switch that they share."""
    inside = inside_costs(one.point, members)
    if not len(inside):
        return False
    costs = typical_costs(one.point, one.point.costs)
    others = float(np.median(costs[np.isfinite(costs) & (one.classes == 0)]))
    return bool(np.median(inside) - others < np.log1p(np.expm1(one.between) / 2))


def inside_costs(point: Point, members: Places) -> Numbers:
    """Return the costs of pairs of which both hosts are among ``members``."""
    if point.partners is None:
        return np.empty(0)
    inside = np.isin(point.partners[members], members)
    costs = point.costs[members][inside]
    return costs[np.isfinite(costs)]


def classes_of(one: HostCosts) -> Classes:
    """Return the two classes of a point's hosts; of pairs, a host is as fast as its best pair."""
    costs, classes = one.point.costs, one.classes
    if one.point.partners is not None:
        best = np.full(len(costs), np.nan)
        there = np.isfinite(costs).any(axis=1)
        best[there] = np.nanmin(costs[there], axis=1)
        middle = np.nanmedian(typical_costs(one.point, costs)[classes == 0])
        classes = np.where(best - middle > one.between / 2, 1, 0)
    hosts = np.array(one.point.hosts, object)
    slower = tuple(hosts[one.judged & (classes == 1)].tolist())
    faster = tuple(hosts[one.judged & (classes == 0)].tolist())
    return Classes(one.point.name, slower, faster, float(np.exp(one.between)))

"""Which links of a matrix are slow, and what they have in common.

The logarithm of a pair's time is taken as a sum: one of its tier (same host, another host, another
switch), one of its sender, one of its receiver, and what remains. The parts are found by median
polish (J. W. Tukey, Exploratory Data Analysis, 1977, chapter 11), which a few slow links do not
move. A sender, a receiver or a remainder is slow when it is beyond what normal noise of the same
matrix reaches in `ALARMS` of all cases, and when it costs at least `UNIT_FACTOR` or `PAIR_FACTOR`.
Where senders have few partners, only pairs are judged. A pair is also slow when it costs
`PLAIN_FACTOR` and more than the two directions of pairs differ by, so that a small matrix may have
many slow pairs.

Tiers are told apart where the times fall into two classes (`omb_py.analysis.otsu`) such that the
fast pairs form groups and the slow ones are between groups.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from omb_py.analysis.pairs.matrix import Matrix, Numbers
from omb_py.core.dataclass import dataclass
from omb_py.core.text.ranks import some_ranks
from omb_py.core.text.words import count, first_of

ALARMS = 0.01
"""Rate of false alarms: share of matrices without a slow link in which one is found."""

UNIT_FACTOR = 1.1
PAIR_FACTOR = 1.2
"""By what a rank or host, or a single pair, is slower at least."""

BEYOND_FASTEST = 2.0
"""And this many times as far from the middle as the fastest is on the other side, in logarithms:
noise need not be normal, and slow links are on one side alone."""

OTHER_DIRECTION = 0.5
"""Where one direction of a pair is slow, the other is too from this part of the limit on."""

PLAIN_FACTOR = 3.0
"""By what a pair is slower at least where the spread of all pairs does not count."""

FEWEST_UNITS = 4
"""Hosts, or values, with fewer of which `UNIT_FACTOR` and tiers are not looked for."""

FEWEST_PARTNERS = 3
"""Partners of each sender and receiver with fewer of which only pairs are judged."""

POLISH_COSTS = 2.0
"""Times the limit of pairs beside all others; where that of what senders and receivers leave is
larger, they have so few partners that polishing takes slow pairs away, and pairs are judged beside
all others."""

FEW_DIRECTIONS = 12
"""Directions of a kind with fewer of which their spread tells nothing: `PLAIN_FACTOR` counts."""

BASELINES = {True: 0.25, False: 0.5}
"""The quantile of the times that pairs are compared with, where there are few and where not."""

DIRECTIONS_OF_A_HOST = 6
"""Directions within a host from which its pairs have a median of their own: three ranks."""

MOST_NEEDED = 1000.0
"""Times as long; what would have to be slower than that to be found is not told apart."""

SCALE_PERCENT = 70
SCALE_OF_NORMAL = NormalDist().inv_cdf(0.5 + SCALE_PERCENT / 200)
"""The noise is this percentile of the remainders' amounts, in units of what it is of normal noise
of standard deviation 1. The median would do, but for small matrices, half of whose remainders
polishing makes 0; up to 30 of 100 pairs may be slow."""

MEDIAN_OF_NORMAL = NormalDist().inv_cdf(0.75)

SMALLEST_NOISE = 0.005
"""Noise that is assumed at least: values repeat where the clock is coarse."""

SIMULATED_UNITS = 20
SIMULATIONS = 2000
"""Limits of small matrices are simulated, for polishing takes a part of their noise away; in larger
ones, a sender or receiver has at least as many pairs to be judged."""

ROUNDS = 6
"""Of median polish; it has settled then but for some thousandths of the noise."""

TIER_FACTOR = 1.1
TIER_OVER_NOISE = 4.0
TIER_PURITY = 0.9
"""Two tiers are so far apart at least, as a factor and in units of the noise within them; and this
share of the fast pairs is within groups, of the slow ones between them."""

CLIPPED = (2.5, 97.5)
"""Percentiles at which times are clipped before they are divided: one slow link is no tier."""

NAMED = 8
"""Groups, and hosts of a group, that are named."""

COMMON = 0.7
"""Share of the pairs of two hosts that are slow where it is said of all of them."""

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Finding:
    """Slow pairs with one cause: who they are, how many, and how many times as long they take."""

    subject: str
    pairs: int
    factor: float

    @property
    def text(self) -> str:
        """A sentence without its end."""
        takes = "take" if self.subject.startswith("all ") else "takes"
        return f"{self.subject} {takes} {self.factor:.2f} times as long"


@dataclass(frozen=True)
class Judgement:
    """Slow pairs, largest factor first; the tiers that are normal; and ``remarks``, which say what
    was not judged, and how slow a pair would have to be where none was found."""

    findings: tuple[Finding, ...]
    tiers: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    def sentences(self) -> list[str]:
        """All of it in words."""
        return [*self.tiers, *(f"slow: {found.text}" for found in self.findings), *self.remarks]


@dataclass(frozen=True)
class Limits:
    """Times the noise that normal noise exceeds in a share of all matrices.

    ``units`` is that of senders and receivers and ``rest`` that of what they leave of pairs; both
    are None where senders and receivers are not judged. ``pairs`` is that of pairs beside all
    others, ``plain`` the same in units of `direction_scale`.
    """

    units: float | None
    rest: float | None
    pairs: float
    plain: float


def judge(matrix: Matrix) -> Judgement:
    """Find the slow links of a matrix."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # rows and blocks without any value
        return judge_matrix(matrix)


def judge_matrix(matrix: Matrix) -> Judgement:
    """`judge`, with the warnings of NumPy."""
    costs = matrix.costs
    names = np.array(matrix.hosts)
    same = names[:, None] == names[None, :]
    findings: list[Finding] = []
    tiers: list[str] = []
    remarks: list[str] = []
    slow_inside: dict[str, Finding] = {}
    there = np.isfinite(costs)
    both = {True: same & there, False: ~same & there}
    kinds = {inside: measured for inside, measured in both.items() if measured.any()}
    hosts = [host for host in dict.fromkeys(matrix.hosts) if has_median(there, names == host)]
    several = len(hosts) > 1
    alarms = ALARMS / max(1, len(kinds) + several)
    for inside, measured in kinds.items():
        place = f"{'within' if inside else 'between'} hosts, " if len(kinds) > 1 else ""
        if np.triu(measured | measured.T).sum() < 2:
            remarks.append(f"{place}there is one pair, and no other to compare it with")
            continue
        part = np.where(measured, costs, np.nan)
        groups, tier = split(part, names, inside)
        if tier is not None:
            factor = float(np.exp(middle(part[tier]) - middle(part[measured & ~tier])))
            tiers.append(tier_text(matrix, groups, inside, factor))
            part = part - np.where(tier, middle(part[tier]), middle(part[measured & ~tier]))
        if inside and several:
            part, slow_inside = within_hosts(matrix, part, hosts, alarms)
        found, needed = of_part(matrix, part, slow_inside, inside, alarms)
        findings += found
        if not found and not (inside and slow_inside):
            remarks.append(f"{place}{nothing_slow(*needed)}")
    findings += slow_inside.values()
    missing = int(np.triu(~(there | there.T), 1).sum())
    if missing:
        were = "was" if missing == 1 else "were"
        remarks.append(f"{count(missing, 'pair')} {were} not measured")
    ordered = sorted(findings, key=lambda one: -one.factor)
    return Judgement(tuple(ordered), tuple(tiers), tuple(remarks))


def has_median(there: Mask, members: Mask) -> bool:
    """Whether enough pairs within a host were measured for a median of their own."""
    return bool(there[np.ix_(members, members)].sum() >= DIRECTIONS_OF_A_HOST)


def nothing_slow(of_units: float | None, of_pairs: float) -> str:
    """That nothing is slow among some pairs, and what could have been found.

    Both are logarithms of factors; ``of_units`` is None where senders were not judged.
    """

    def times(needed: float) -> str:
        factor = np.exp(min(needed, 700.0))
        return f"{factor:.2f}" if factor <= MOST_NEEDED else f"more than {MOST_NEEDED:.0f}"

    text = f"a pair would have to take {times(of_pairs)} times as long"
    if of_units is None:
        return f"no pair is slow: {text}; senders and receivers have too few partners to be judged"
    return (
        f"no pair and no sender or receiver is slow: {text}, a sender or receiver "
        f"{times(of_units)} times"
    )


def of_part(
    matrix: Matrix, part: Numbers, slow_inside: dict[str, Finding], inside: bool, alarms: float
) -> tuple[list[Finding], tuple[float | None, float]]:
    """What is slow among the pairs of one kind: within hosts, or between them.

    And what a sender or receiver, and a pair, would have to cost to be found, in logarithms.
    """
    measured = np.isfinite(part)
    known = limits(measured, alarms)
    found: list[Finding] = []
    of_units = None
    rest = None
    if known.units is not None and known.rest is not None:
        senders, receivers, left = polish(part)
        fastest = -min(senders.min(), receivers.min())
        noise = max(SMALLEST_NOISE, scale(left))
        of_units = max(known.units * noise, np.log(UNIT_FACTOR), BEYOND_FASTEST * fastest)
        found += units_of(matrix, measured, (senders, receivers), of_units, slow_inside, inside)
        if found or known.rest < POLISH_COSTS * known.pairs:
            rest, needed = left, needed_of(known.rest * noise, left, PAIR_FACTOR)
    if rest is None:
        rest = beside_all(part)
        noise = max(SMALLEST_NOISE, float(direction_scale(rest)))
        needed = needed_of(known.plain * noise, rest, PLAIN_FACTOR)
        if measured.sum() >= FEW_DIRECTIONS:
            noise = max(SMALLEST_NOISE, scale(rest))
            needed = min(needed, needed_of(known.pairs * noise, rest, PAIR_FACTOR))
    left = np.nan_to_num(rest)
    slow = (left > needed) | ((needed < left.T) & (left > OTHER_DIRECTION * needed))
    return [*found, *pairs_of(matrix, rest, slow)], (of_units, needed)


def needed_of(limit: float, rest: Numbers, factor: float) -> float:
    """What a pair has to cost to be slow, by a limit of noise and a factor."""
    return float(max(limit, np.log(factor), -BEYOND_FASTEST * float(np.nanmin(rest))))


def units_of(
    matrix: Matrix,
    measured: Mask,
    added: tuple[Numbers, Numbers],
    needed: float,
    slow_inside: dict[str, Finding],
    inside: bool,
) -> Iterable[Finding]:
    """Slow senders and receivers, by what they add; those of a whole host are said of the host.

    What is slow between hosts is taken out of ``slow_inside`` where it is that host.
    """
    senders, receivers = (frozenset(np.flatnonzero(one > needed).tolist()) for one in added)
    for units, words, ends in (
        (senders & receivers, "with {}", (0, 1)),
        (senders - receivers, "that {} sends to", (0,)),
        (receivers - senders, "that {} receives from", (1,)),
    ):
        for members, name in by_host(matrix, sorted(units)):
            pairs = sum(int(measured.sum(axis=1 - end)[members].sum()) for end in ends)
            factor = float(np.exp(np.mean([added[end][members] for end in ends])))
            subject = f"all pairs {words.format(name)}"
            if len(members) > 1 and not inside:
                own = slow_inside.pop(matrix.hosts[members[0]], None)
                subject += " (and within it)" if own else " (but not within it)"
            yield Finding(subject, pairs, factor)


def by_host(matrix: Matrix, units: Sequence[int]) -> list[tuple[list[int], str]]:
    """Units together where they are all of their host, each by itself otherwise."""
    found: list[tuple[list[int], str]] = []
    for host in dict.fromkeys(matrix.hosts[unit] for unit in units):
        members = [unit for unit in units if matrix.hosts[unit] == host]
        if len(members) > 1 and len(members) == matrix.hosts.count(host):
            found.append((members, f"host {host}"))
        else:
            found += [([unit], matrix.name(unit)) for unit in members]
    return found


def pairs_of(matrix: Matrix, rest: Numbers, slow: Mask) -> Iterable[Finding]:
    """Pairs that are slow beside their sender and receiver, together where hosts have them all."""
    left = slow.copy()
    hosts = np.array(matrix.hosts)
    for first, second in sorted({in_order(matrix.hosts[i], matrix.hosts[j]) for i, j in at(slow)}):
        both = ((hosts[:, None] == first) & (hosts[None, :] == second)) | (
            (hosts[:, None] == second) & (hosts[None, :] == first)
        )
        all_of = both & np.isfinite(rest)
        several = matrix.hosts.count(first) > 1 or matrix.hosts.count(second) > 1
        where = f"between {first} and {second}"
        if first == second:
            several = matrix.hosts.count(first) > 2 and len(set(matrix.hosts)) > 1
            where = f"within host {first}"
        if several and left[all_of].mean() >= COMMON:
            yield Finding(
                f"all pairs {where}",
                int(all_of.sum()),
                float(np.exp(np.median(rest[all_of]))),
            )
            left &= ~both
    for i, j in at(left):
        there_and_back = bool(left[j, i])
        if there_and_back and i > j:
            continue
        values = [rest[i, j], rest[j, i]] if there_and_back else [rest[i, j]]
        words = "{} and {}" if there_and_back else "from {} to {}"
        names = words.format(matrix.name(i), matrix.name(j))
        subject = f"the pair {names}" if there_and_back else f"the direction {names}"
        yield Finding(subject, len(values), float(np.exp(np.mean(values))))


def at(mask: Mask) -> list[tuple[int, int]]:
    """Where a mask is true."""
    return [(int(i), int(j)) for i, j in np.argwhere(mask)]


def in_order(first: str, second: str) -> tuple[str, str]:
    """Two hosts as a pair without a direction."""
    return (first, second) if first <= second else (second, first)


def beside_all(costs: Numbers) -> Numbers:
    """Differences from the baseline of a matrix, or of several with the same pairs.

    The baseline is one of the values, so that it is fast where exactly half of them are slow.
    """
    measured = np.isfinite(costs).reshape(-1, *costs.shape[-2:])[0]
    low = BASELINES[bool(measured.sum() < FEW_DIRECTIONS)]
    middle = np.quantile(costs[..., measured], low, axis=-1, method="lower")
    return np.asarray(costs - middle[..., None, None])


def polish(costs: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """What senders and receivers add to the middle, and what remains, of one matrix or several.

    A sender or receiver without pairs adds nothing.
    """
    rest = costs.copy()
    senders = np.zeros(costs.shape[:-1])
    receivers = np.zeros(costs.shape[:-1])
    rest -= np.nanmedian(rest, axis=(-2, -1), keepdims=True)
    for _ in range(ROUNDS):
        step = np.nan_to_num(np.nanmedian(rest, axis=-1))
        rest -= step[..., :, None]
        senders += step
        step = np.nan_to_num(np.nanmedian(rest, axis=-2))
        rest -= step[..., None, :]
        receivers += step
    empty = ~np.isfinite(costs)
    for added, axis in ((senders, -1), (receivers, -2)):
        without = empty.all(axis=axis)
        added[without] = np.nan
        added -= np.nanmedian(added, axis=-1, keepdims=True)
        added[without] = 0.0
    return senders, receivers, rest


def scale(rest: Numbers) -> float:
    """The standard deviation of the noise, which a few large values do not move."""
    return float(np.nanpercentile(np.abs(rest), SCALE_PERCENT)) / SCALE_OF_NORMAL


def scales_of(rest: Numbers) -> Numbers:
    """`scale` of each of several matrices."""
    found = np.nanpercentile(np.abs(rest), SCALE_PERCENT, axis=(-2, -1))
    return np.asarray(found / SCALE_OF_NORMAL)


def direction_scale(rest: Numbers) -> NDArray[np.float64]:
    """The standard deviation of the noise by what the directions of each pair differ by.

    Slow pairs do not move it, however many, if they are slow in both directions. Infinite where no
    pair was measured in both.
    """
    apart = np.abs(rest - np.swapaxes(rest, -2, -1)) / np.sqrt(2)
    middle = np.nanmedian(apart.reshape(*apart.shape[:-2], -1), axis=-1)
    return np.asarray(np.nan_to_num(middle / MEDIAN_OF_NORMAL, nan=np.inf))


def limits(measured: Mask, alarms: float) -> Limits:
    """How many times the noise a sender or receiver, and a pair, exceed in ``alarms`` of all cases.

    Half of the cases are left to either. Senders and receivers are judged if all have
    `FEWEST_PARTNERS`, and in large matrices as many as in the largest of small ones.
    """
    used = measured.any(axis=0) | measured.any(axis=1)
    measured = measured[np.ix_(used, used)]
    fewest = fewest_partners(measured)
    if len(measured) <= SIMULATED_UNITS:
        packed = np.packbits(measured).tobytes()
        return simulated_limits(packed, len(measured), fewest >= FEWEST_PARTNERS, alarms)
    directions = int(measured.sum())
    if fewest < SIMULATED_UNITS:
        of_pairs = quantile(alarms / directions)
        return Limits(None, None, of_pairs, of_pairs)
    error_of_median = (np.pi / 2 / fewest) ** 0.5
    of_pairs = quantile(alarms / 2 / directions)
    of_units = quantile(alarms / 4 / len(measured)) * error_of_median
    return Limits(of_units, of_pairs, of_pairs, of_pairs)


def fewest_partners(measured: Mask) -> int:
    """How many partners the sender or receiver with the fewest has, of those that have any."""
    partners = np.concatenate([measured.sum(axis=0), measured.sum(axis=1)])
    return int(partners[partners > 0].min())


def quantile(exceeding: float) -> float:
    """What normal noise of standard deviation 1 exceeds with a probability."""
    return NormalDist().inv_cdf(1 - exceeding)


@lru_cache(maxsize=64)
def simulated_limits(packed: bytes, units: int, of_units: bool, alarms: float) -> Limits:
    """`limits` of a small matrix: what its polish makes of noise, by simulation."""
    flat = np.unpackbits(np.frombuffer(packed, np.uint8), count=units * units)
    measured = flat.reshape(units, units).astype(bool)
    chance = np.random.default_rng(units)
    noise = np.where(measured, chance.standard_normal((SIMULATIONS, units, units)), np.nan)
    share = alarms / 2 if of_units else alarms

    def limit(largest: Numbers, scales: Numbers) -> float:
        return float(np.quantile(largest / scales, 1 - share))

    def worst(rest: Numbers) -> Numbers:
        return np.asarray(np.nanmax(rest, axis=(-2, -1)))

    beside = beside_all(noise)
    of_pairs = limit(worst(beside), scales_of(beside))
    plain = limit(worst(beside), direction_scale(beside))
    if not of_units:
        return Limits(None, None, of_pairs, plain)
    senders, receivers, rest = polish(noise)
    scales = scales_of(rest)
    largest = np.maximum(senders.max(axis=-1), receivers.max(axis=-1))
    return Limits(limit(largest, scales), limit(worst(rest), scales), of_pairs, plain)


def middle(values: Numbers) -> float:
    """The median of what is there."""
    return float(np.nanmedian(values))


def within_hosts(
    matrix: Matrix, part: Numbers, judged: Sequence[str], alarms: float
) -> tuple[Numbers, dict[str, Finding]]:
    """Pairs of the same host without what is their host's, and the hosts that are slow inside.

    ``judged`` are the hosts that have a median of their own; pairs of others are compared with the
    usual one.
    """
    names = np.array(matrix.hosts)
    blocks = {host: np.ix_(names == host, names == host) for host in dict.fromkeys(matrix.hosts)}
    known = {host: middle(part[blocks[host]]) for host in judged}
    enough = len(known) >= FEWEST_UNITS
    usual = float(np.quantile(list(known.values()), 0.5, method="linear" if enough else "lower"))
    rest = part.copy()
    for host, block in blocks.items():
        rest[block] -= known.get(host, usual)
    noise = max(SMALLEST_NOISE, scale(rest))
    least = np.log(UNIT_FACTOR if enough else PLAIN_FACTOR)
    found = {}
    for host, cost in known.items():
        pairs = int(np.isfinite(part[blocks[host]]).sum())
        limit = quantile(alarms / len(known)) * noise * (np.pi / 2 / pairs) ** 0.5
        fastest = usual - min(known.values())
        if cost - usual > max(limit, least, BEYOND_FASTEST * fastest):
            factor = float(np.exp(cost - usual))
            found[host] = Finding(f"all pairs within host {host}", pairs, factor)
    return rest, found


def split(
    part: Numbers, names: NDArray[np.str_], inside: bool
) -> tuple[list[list[int]], Mask | None]:
    """Groups of units with fast pairs, and a mask of the pairs between them.

    None where the pairs are not of two tiers. Between hosts, a group has whole hosts.
    """
    tried = [part]
    if fewest_partners(np.isfinite(part)) >= FEWEST_PARTNERS:
        tried.append(part - sum_of_parts(part))
    for costs in tried:
        symmetric = np.nanmean([costs, costs.T], axis=0) if np.isfinite(costs).any() else costs
        if not inside:
            symmetric = over_hosts(symmetric, names)
        limit = two_classes(symmetric[np.isfinite(symmetric)])
        if limit is None:
            continue
        groups = components(symmetric < limit)
        label = np.empty(len(names), int)
        for number, members in enumerate(groups):
            label[members] = number
        between = (label[:, None] != label[None, :]) & np.isfinite(symmetric)
        within = ~between & np.isfinite(symmetric)
        sizes = np.array([len({*names[group]}) if not inside else len(group) for group in groups])
        proper = (sizes[label] > 1)[:, None] & (sizes[label] > 1)[None, :]
        slow = np.isfinite(symmetric) & (symmetric >= limit)
        if (
            within.any()
            and (between & proper).any()
            and (within & ~slow).sum() >= TIER_PURITY * within.sum()
            and (between & proper & slow).sum() >= TIER_PURITY * slow.sum()
        ):
            return [group for group in groups if len(group) > 1], between & np.isfinite(part)
    return [], None


def sum_of_parts(part: Numbers) -> Numbers:
    """What senders and receivers add, for each pair."""
    senders, receivers, _ = polish(part)
    return senders[:, None] + receivers[None, :]


def over_hosts(costs: Numbers, names: NDArray[np.str_]) -> Numbers:
    """Each pair's value replaced by the median of all pairs of its two hosts."""
    found = costs.copy()
    hosts, place = np.unique(names, return_inverse=True)
    if len(hosts) == len(names):
        return found
    for i in range(len(hosts)):
        for j in range(i + 1, len(hosts)):
            one, other = np.flatnonzero(place == i), np.flatnonzero(place == j)
            value = np.nanmedian(costs[np.ix_(one, other)])
            for block in (np.ix_(one, other), np.ix_(other, one)):
                found[block] = np.where(np.isfinite(costs[block]), value, np.nan)
    return found


def two_classes(values: Numbers) -> float | None:
    """The value that divides two classes which are clearly apart; None where there is one."""
    if len(values) < FEWEST_UNITS:
        return None
    ordered = np.sort(np.clip(values, *np.percentile(values, CLIPPED)))
    cut = split_point(ordered)
    fast, slow = ordered[:cut], ordered[cut:]
    gap = np.median(slow) - np.median(fast)
    noise = scale(np.concatenate([fast - np.median(fast), slow - np.median(slow)]))
    if gap < max(np.log(TIER_FACTOR), TIER_OVER_NOISE * max(noise, SMALLEST_NOISE)):
        return None
    return float((fast[-1] + slow[0]) / 2)


def components(linked: Mask) -> list[list[int]]:
    """Groups of units that are connected by links in either direction."""
    left, found = set(range(len(linked))), []
    while left:
        front = [left.pop()]
        group = list(front)
        while front:
            near = {int(i) for i in np.flatnonzero(linked[front.pop()])} & left
            left -= near
            front += near
            group += near
        found.append(sorted(group))
    return sorted(found)


def tier_text(matrix: Matrix, groups: Sequence[Sequence[int]], inside: bool, factor: float) -> str:
    """Tiers in words."""

    def name(group: Sequence[int]) -> str:
        if inside:
            return some_ranks(matrix.ranks[unit] for unit in group)
        return first_of(list(dict.fromkeys(matrix.hosts[unit] for unit in group)), NAMED)

    named = "; ".join(name(group) for group in groups[:NAMED])
    more = f"; and {len(groups) - NAMED} more" if len(groups) > NAMED else ""
    return (
        f"two tiers: pairs between {count(len(groups), 'group')} take {factor:.2f} times as long "
        f"as those within them ({named}{more})"
    )


def split_point(ordered: NDArray[np.float64]) -> int:
    """How many of some sorted values, two or more, are in the lower of two classes.

    They are parted where the variance within the classes is smallest, and between them largest
    (N. Otsu, A threshold selection method from gray-level histograms, IEEE Transactions on Systems,
    Man, and Cybernetics 9, 1979).
    """
    count = np.arange(1, len(ordered))
    sums = np.cumsum(ordered)
    first, total = sums[:-1], sums[-1]
    between = first**2 / count + (total - first) ** 2 / (len(ordered) - count)
    return int(between.argmax()) + 1

"""Slow links of a matrix, and what they have in common.

The logarithm of a pair's time is taken as a sum: one part of its tier (`tiers`), one of its sender,
one of its receiver (by median polish, `noise`), and what remains. A sender, a receiver or a
remainder is slow when it is beyond what normal noise of the same matrix reaches in `ALARMS` of all
cases, and when it costs at least `UNIT_FACTOR` or `PAIR_FACTOR`. Where senders have few partners,
only pairs are judged. A pair is also slow when it costs `PLAIN_FACTOR` and more than the two
directions of pairs differ by, so that a small matrix may have many slow pairs.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence

import numpy as np

from omb_py.analysis.pairs.matrix import Mask, Matrix, Numbers
from omb_py.analysis.pairs.noise import (
    FEW_DIRECTIONS,
    at_least,
    direction_scale,
    error_of_median,
    from_baseline,
    limits,
    polish,
    quantile,
    scale,
)
from omb_py.analysis.pairs.tiers import without_tiers
from omb_py.core.dataclass import dataclass
from omb_py.core.text.words import count

ALARMS = 0.01
"""Rate of false alarms: share of matrices without a slow link in which one is found."""

UNIT_FACTOR = 1.1
PAIR_FACTOR = 1.2
PLAIN_FACTOR = 3.0
"""By what a rank or host, a pair, and a pair for which the spread of all pairs does not count, are
slower at least."""

BEYOND_FASTEST = 2.0
"""And this many times as far from the middle as the fastest is on the other side, in logarithms:
noise need not be normal, and slow links are on one side only."""

OTHER_DIRECTION = 0.5
"""Where one direction of a pair is slow, the other is too from this part of the limit on."""

FEWEST_HOSTS = 4
"""Hosts from which on `UNIT_FACTOR` counts for what is within one, and not `PLAIN_FACTOR`."""

POLISH_COSTS = 2.0
"""Times the limit of pairs next to all others; where that of what senders and receivers leave is
larger, they have so few partners that polishing takes slow pairs away, and pairs are judged next to
all others."""

DIRECTIONS_OF_A_HOST = 6
"""Directions within a host from which its pairs have a median of their own: three ranks."""

MOST_NEEDED = 1000.0
"""Times as long; factors beyond it are not printed."""

COMMON = 0.7
"""Share of the pairs of two hosts that are slow where all of them are named together."""


@dataclass(frozen=True)
class Finding:
    """Slow pairs with one cause: which they are, and how many times as long they take."""

    subject: str
    factor: float

    @property
    def text(self) -> str:
        """A sentence without its end."""
        takes = "take" if self.subject.startswith("all ") else "takes"
        return f"{self.subject} {takes} {self.factor:.2f} times as long"


@dataclass(frozen=True)
class Judgement:
    """Slow pairs, largest factor first; the tiers that are normal; and ``remarks``: what was not
    judged, and how slow a pair would have to be where none was found."""

    findings: tuple[Finding, ...]
    tiers: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    def sentences(self) -> list[str]:
        """All of it in words."""
        return [*self.tiers, *(f"slow: {found.text}" for found in self.findings), *self.remarks]


def judge(matrix: Matrix) -> Judgement:
    """Find the slow links of a matrix: those of pairs within hosts and between hosts apart."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # rows and blocks without any value
        return judge_kinds(matrix)


def judge_kinds(matrix: Matrix) -> Judgement:
    """`judge`, which may warn of what has no values."""
    names = np.array(matrix.hosts)
    there, same = np.isfinite(matrix.costs), names[:, None] == names[None, :]
    kinds = {
        inside: measured
        for inside, measured in ((True, there & same), (False, there & ~same))
        if measured.any()
    }
    directions = {host: (there & same & (names == host)).sum() for host in matrix.hosts}
    own = [host for host in directions if directions[host] >= DIRECTIONS_OF_A_HOST]
    several = len(own) > 1
    alarms = ALARMS / max(1, len(kinds) + several)
    findings: list[Finding] = []
    tiers, remarks = [], []
    slow_inside: dict[str, Finding] = {}
    for inside, measured in kinds.items():
        place = f"{'within' if inside else 'between'} hosts, " if len(kinds) > 1 else ""
        if np.triu(measured | measured.T).sum() < 2:
            remarks.append(f"{place}there is one pair, and no other to compare it with")
            continue
        part, tier = without_tiers(matrix, np.where(measured, matrix.costs, np.nan), inside)
        tiers += [tier] if tier else []
        if inside and several:
            part, slow_inside = without_hosts(matrix, part, own, alarms)
        found, needed = of_kind(matrix, part, slow_inside, inside, alarms)
        findings += found
        if not found and not (inside and slow_inside):
            remarks.append(f"{place}{nothing_slow(*needed)}")
    findings += slow_inside.values()
    if missing := int(np.triu(~(there | there.T), 1).sum()):
        remarks.append(f"{count(missing, 'pair')} {'was' if missing == 1 else 'were'} not measured")
    ordered = sorted(findings, key=lambda one: -one.factor)
    return Judgement(tuple(ordered), tuple(tiers), tuple(remarks))


def nothing_slow(of_units: float | None, of_pairs: float) -> str:
    """Write that nothing is slow among some pairs, and what could have been found.

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


def without_hosts(
    matrix: Matrix, part: Numbers, own: Sequence[str], alarms: float
) -> tuple[Numbers, dict[str, Finding]]:
    """Take the median of its host out of pairs within hosts, and find hosts that are slow inside.

    ``own`` are the hosts that have a median of their own; pairs of others are compared with the
    usual one.
    """
    names = np.array(matrix.hosts)
    blocks = {host: np.ix_(names == host, names == host) for host in dict.fromkeys(matrix.hosts)}
    known = {host: float(np.nanmedian(part[blocks[host]])) for host in own}
    enough = len(known) >= FEWEST_HOSTS
    usual = float(np.quantile(list(known.values()), 0.5, method="linear" if enough else "lower"))
    rest = part.copy()
    for host, block in blocks.items():
        rest[block] -= known.get(host, usual)
    limit = quantile(alarms / len(known)) * at_least(scale(rest))
    factor = UNIT_FACTOR if enough else PLAIN_FACTOR
    least = max(np.log(factor), BEYOND_FASTEST * (usual - min(known.values())))
    found = {}
    for host, cost in known.items():
        error = error_of_median(np.isfinite(part[blocks[host]]).sum())
        if cost - usual > max(least, limit * error):
            found[host] = Finding(f"all pairs within host {host}", float(np.exp(cost - usual)))
    return rest, found


def of_kind(
    matrix: Matrix, part: Numbers, slow_inside: dict[str, Finding], inside: bool, alarms: float
) -> tuple[list[Finding], tuple[float | None, float]]:
    """Find what is slow among the pairs of one kind: within hosts, or between them.

    Also returns what a sender or receiver, and a pair, have to cost to be found, in logarithms.
    """
    measured = np.isfinite(part)
    known = limits(measured, alarms)
    found: list[Finding] = []
    of_units, rest = None, None
    if known.units is not None and known.rest is not None:
        senders, receivers, left = polish(part)
        noise = at_least(scale(left))
        fastest = -min(senders.min(), receivers.min())
        of_units = max(known.units * noise, np.log(UNIT_FACTOR), BEYOND_FASTEST * fastest)
        found += slow_units(matrix, (senders, receivers), of_units, slow_inside, inside)
        if found or known.rest < POLISH_COSTS * known.pairs:
            rest, needed = left, needed_cost(known.rest * noise, left, PAIR_FACTOR)
    if rest is None:
        rest = from_baseline(part)
        needed = needed_cost(known.plain * at_least(direction_scale(rest)), rest, PLAIN_FACTOR)
        if measured.sum() >= FEW_DIRECTIONS:
            noise = at_least(scale(rest))
            needed = min(needed, needed_cost(known.pairs * noise, rest, PAIR_FACTOR))
    left = np.nan_to_num(rest)
    slow = (left > needed) | ((needed < left.T) & (left > OTHER_DIRECTION * needed))
    return [*found, *slow_pairs(matrix, rest, slow)], (of_units, needed)


def needed_cost(limit: float, rest: Numbers, factor: float) -> float:
    """Return what a pair has to cost to be slow, by a limit of noise and a factor."""
    return float(max(limit, np.log(factor), -BEYOND_FASTEST * np.nanmin(rest)))


def slow_units(
    matrix: Matrix,
    added: tuple[Numbers, Numbers],
    needed: float,
    slow_inside: dict[str, Finding],
    inside: bool,
) -> Iterator[Finding]:
    """Find slow senders and receivers by what they add; all ranks of a host are named as the host.

    What is slow between hosts is taken out of ``slow_inside`` where it is that host.
    """
    senders, receivers = (frozenset(np.flatnonzero(one > needed).tolist()) for one in added)
    for units, words, ends in (
        (senders & receivers, "with {}", added),
        (senders - receivers, "that {} sends to", added[:1]),
        (receivers - senders, "that {} receives from", added[1:]),
    ):
        for members, name in by_host(matrix, sorted(units)):
            subject = f"all pairs {words.format(name)}"
            if len(members) > 1 and not inside:
                own = slow_inside.pop(matrix.hosts[members[0]], None)
                subject += " (and within it)" if own else " (but not within it)"
            yield Finding(subject, float(np.exp(np.mean([end[members] for end in ends]))))


def by_host(matrix: Matrix, units: Sequence[int]) -> Iterator[tuple[list[int], str]]:
    """Put units together where they are all of their host, each by itself otherwise."""
    for host in dict.fromkeys(matrix.hosts[unit] for unit in units):
        members = [unit for unit in units if matrix.hosts[unit] == host]
        if len(members) > 1 and len(members) == matrix.hosts.count(host):
            yield members, f"host {host}"
        else:
            yield from (([unit], matrix.name(unit)) for unit in members)


def slow_pairs(matrix: Matrix, rest: Numbers, slow: Mask) -> Iterator[Finding]:
    """Name slow pairs, together where most of those of two hosts, or of one, are slow."""
    left, hosts = slow.copy(), np.array(matrix.hosts)
    ends = {tuple(sorted((matrix.hosts[i], matrix.hosts[j]))) for i, j in np.argwhere(slow)}
    for first, second in sorted(ends):
        block = (hosts == first)[:, None] & (hosts == second)[None, :]
        block = (block | block.T) & np.isfinite(rest)
        if first == second:
            several = matrix.hosts.count(first) > 2 and len(set(matrix.hosts)) > 1
            where = f"within host {first}"
        else:
            several = max(map(matrix.hosts.count, (first, second))) > 1
            where = f"between {first} and {second}"
        if several and left[block].mean() >= COMMON:
            yield Finding(f"all pairs {where}", float(np.exp(np.median(rest[block]))))
            left &= ~block
    for i, j in np.argwhere(left).tolist():
        names = matrix.name(i), matrix.name(j)
        if not left[j, i]:
            subject = f"the direction from {' to '.join(names)}"
            yield Finding(subject, float(np.exp(rest[i, j])))
        elif i < j:
            subject = f"the pair {' and '.join(names)}"
            yield Finding(subject, float(np.exp(np.mean([rest[i, j], rest[j, i]]))))

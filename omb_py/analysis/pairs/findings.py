"""Slow links of a matrix, and the hosts or ranks that they share.

Pairs within hosts and pairs between hosts are judged separately. A pair is slow if it takes at
least `FACTOR` times as long as is typical of its kind, and if its logarithm is further above it
than normal noise reaches in `ALARMS` of all matrices. The noise is the median absolute deviation,
which a few slow pairs do not move.

`PairsWriter` is the text of `omb-py pairs`: slow pairs of each message size, a map, and findings.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from statistics import NormalDist
from typing import Any, TextIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from omb_py.analysis.pairs.matrix import Mask, Matrix, Numbers, matrices, matrix
from omb_py.core import VERSION
from omb_py.core.dataclass import dataclass
from omb_py.core.text.units import is_time, size_text, slowdown, value_text
from omb_py.core.text.words import count
from omb_py.results.columns import PairRow
from omb_py.results.writer import Writer

ALARMS = 0.01
"""Rate of false alarms: share of matrices without a slow link in which one is found."""

FACTOR = 1.2
"""The smallest ratio of a slow pair's time to the typical one."""

MAD_OF_NORMAL = NormalDist().inv_cdf(0.75)
"""Median absolute deviation of normal noise of standard deviation 1."""

SMALLEST_NOISE = 0.005
"""Noise that is assumed at least: values repeat if the clock is coarse."""

FEW = 15
"""Directions of a kind for which the limit doubles, because the deviation of few is itself
uncertain. Found by simulation: it keeps `ALARMS` from 6 directions to thousands."""

FEWEST_DIRECTIONS = 6
"""Directions of a kind that can be judged: three pairs."""

OTHER_DIRECTION = 0.5
"""The fraction of the limit from which the other direction of a slow pair is slow, too."""

COMMON = 0.7
"""Share of the pairs of a rank, a host or two hosts that are slow if they are named together."""

FEWEST_COMMON = 3
"""Directions that can be named together."""

MOST_NEEDED = 1000.0
"""Larger factors are not printed."""

MOST_NAMED = 10
"""Findings that are printed."""


Units: TypeAlias = NDArray[np.intp]

Cause: TypeAlias = tuple[str, list[tuple[Units, Units]]]
"""A cause as words, and the senders and receivers of each of its parts, which are all slow."""


@dataclass(frozen=True)
class Finding:
    """Slow pairs with one cause: which they are, and how many times as long they take."""

    subject: str
    factor: float

    @property
    def text(self) -> str:
        """Return the senders and their slowdown, as the beginning of a sentence."""
        takes = "take" if self.subject.startswith(("all ", "most ")) else "takes"
        return f"{self.subject} {takes} {self.factor:.2f} times as long"


@dataclass(frozen=True)
class Judgement:
    """Slow pairs, largest factor first; ``remarks`` name the pairs that were not judged, and how
    slow a pair would have to be if none was found."""

    findings: tuple[Finding, ...]
    remarks: tuple[str, ...]

    def sentences(self) -> list[str]:
        """Return all of it in words."""
        slow = [f"slow: {found.text}" for found in self.findings[:MOST_NAMED]]
        if more := len(self.findings) - len(slow):
            slow.append(f"slow: {count(more, 'more finding')}")
        return [*slow, *self.remarks]


def judge(matrix: Matrix) -> Judgement:
    """Find the slow links of a matrix: those of pairs within hosts and between hosts apart."""
    names = np.array(matrix.hosts)
    there, same = np.isfinite(matrix.costs), names[:, None] == names[None, :]
    kinds = {
        words: measured
        for words, measured in (("within", there & same), ("between", there & ~same))
        if measured.any()
    }
    findings: list[Finding] = []
    remarks: list[str] = []
    for words, measured in kinds.items():
        place = f"{words} hosts, " if len(kinds) > 1 else ""
        if measured.sum() < FEWEST_DIRECTIONS:
            pairs = int(np.triu(measured | measured.T).sum())
            remarks.append(f"{place}{count(pairs, 'pair')}: too few to be judged")
            continue
        excess, needed = excess_costs(np.where(measured, matrix.costs, np.nan), ALARMS / len(kinds))
        above = np.nan_to_num(excess)
        slow = (above > needed) | ((needed < above.T) & (above > OTHER_DIRECTION * needed))
        findings += named(matrix, excess, slow)
        if not slow.any():
            factor = np.exp(min(needed, 700.0))
            long = f"{factor:.2f}" if factor <= MOST_NEEDED else f"more than {MOST_NEEDED:.0f}"
            remarks.append(
                f"{place}no pair is slow: a pair would have to take {long} times as long"
            )
    if missing := int(np.triu(~(there | there.T), 1).sum()):
        remarks.append(f"{count(missing, 'pair')} {'was' if missing == 1 else 'were'} not measured")
    return Judgement(tuple(sorted(findings, key=lambda one: -one.factor)), tuple(remarks))


def verdicts(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return in words which pairs of rows of `PairRow` are slow, for each of their matrices."""
    return [
        f"{found.benchmark} of {size_text(found.bytes)}: {sentence}"
        for found in matrices(rows)
        for sentence in judge(found).sentences()
    ]


def excess_costs(costs: Numbers, alarms: float) -> tuple[Numbers, float]:
    """Return how far each pair is above the typical one, and above how much it is slow.

    Both are logarithms of factors; ``costs`` are those of one kind, NaN for other pairs. ``alarms``
    is the rate of false alarms.
    """
    excess = costs - typical(costs)
    noise = max(SMALLEST_NOISE, typical(np.abs(excess)) / MAD_OF_NORMAL)
    return excess, slow_limit(noise, int(np.isfinite(costs).sum()), alarms)


def slow_limit(noise: float, members: int, alarms: float, factor: float = FACTOR) -> float:
    """Return the logarithm of a factor above the typical member beyond which one is slow.

    ``noise`` is the robust standard deviation of all members; the rate of false ``alarms`` among
    all of them is divided by their number (Bonferroni). At least the logarithm of ``factor``.
    """
    deviations = NormalDist().inv_cdf(1 - alarms / members) * (1 + FEW / members)
    return float(max(deviations * noise, np.log(factor)))


def typical(values: Numbers) -> float:
    """Return the median of all values, or of the medians of all ranks if that is lower.

    One slow host of four has half of all pairs, but is one of four medians.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # ranks without any value
        by_rank = np.nanmedian(np.concatenate([values, values.T], axis=1), axis=1)
    return float(min(np.nanmedian(values), np.nanmedian(by_rank)))


def named(matrix: Matrix, excess: Numbers, slow: Mask) -> Iterator[Finding]:
    """Yield slow pairs of a kind by the cause that most pairs share, the others one by one."""
    left, measured = slow.copy(), np.isfinite(excess)
    for subject, blocks in causes(matrix, slow):
        parts = [(block, measured[block]) for block in (np.ix_(*ends) for ends in blocks)]
        found = [slow[block][known] for block, known in parts]
        if all(len(part) >= FEWEST_COMMON and part.mean() >= COMMON for part in found):
            share = "all" if all(part.all() for part in found) else "most"
            costs = np.concatenate([excess[block][known] for block, known in parts])
            yield Finding(f"{share} pairs {subject}", float(np.exp(np.median(costs))))
            for block, _ in parts:
                left[block] = measured[block] = False
    for i, j in np.argwhere(left).tolist():
        names = matrix.name(i), matrix.name(j)
        if not left[j, i]:
            yield Finding(f"the direction from {' to '.join(names)}", float(np.exp(excess[i, j])))
        elif i < j:
            both = np.mean([excess[i, j], excess[j, i]])
            yield Finding(f"the pair {' and '.join(names)}", float(np.exp(both)))


def causes(matrix: Matrix, slow: Mask) -> Iterator[Cause]:
    """Yield the causes that slow pairs may share, larger groups first: hosts, two hosts, ranks.

    Hosts and ranks without a slow pair are skipped: there may be thousands.
    """
    hosts, every = np.array(matrix.hosts), np.arange(len(matrix.hosts))
    units = np.flatnonzero(slow.any(axis=0) | slow.any(axis=1))
    of_host = {host: every[hosts == host] for host in dict.fromkeys(hosts[units].tolist())}
    for host, members in of_host.items():
        yield f"within host {host}", [(members, members)]
    for host, members in of_host.items():
        if len(members) > 1:
            yield from of_group(f"host {host}", members, every)
    ends = {tuple(sorted((matrix.hosts[i], matrix.hosts[j]))) for i, j in np.argwhere(slow)}
    for first, second in sorted(ends):
        one, other = of_host[first], of_host[second]
        yield f"between {first} and {second}", [(one, other), (other, one)]
    is_inside = len(set(matrix.hosts)) > 1 and all(first == second for first, second in ends)
    place = " on its host" if is_inside else ""
    for unit in units.tolist():
        yield from of_group(f"{matrix.name(unit)}{place}", every[[unit]], every)


def of_group(name: str, members: Units, every: Units) -> Iterator[Cause]:
    """Yield the causes that a host or a rank can be."""
    yield f"with {name}", [(members, every), (every, members)]
    yield f"that {name} sends to", [(members, every)]
    yield f"that {name} receives from", [(every, members)]


WORST = 10
"""Pairs of the table by default."""

SHADES = ((1.1, "."), (1.25, "-"), (1.5, "+"), (2.0, "*"), (float("inf"), "#"))
"""Largest ratios of a pair's time to the median, and the characters for them."""

MAPPED = 72
"""Units of a map at most: their columns fit on a screen."""


class PairsWriter(Writer[PairRow]):
    """Writing of the slow pairs of each message size as soon as it is measured."""

    def __init__(self, stream: TextIO, title: str, worst: int = WORST) -> None:
        self._stream = stream
        self._title = title
        self._worst = worst
        self._headed = False

    def row(self, row: PairRow) -> None:
        self.together([row])

    def together(self, rows: Iterable[PairRow]) -> None:
        made = list(rows)
        if not made:
            return
        if not self._headed:
            self._headed = True
            self._stream.write(f"{heading(self._title, made)}\n")
        found = matrix([vars(row) for row in made])
        self._stream.write("\n".join(["", *section(found, self._worst), ""]))
        self._stream.flush()


def heading(title: str, rows: list[PairRow]) -> str:
    """Return the line above a matrix: benchmark, units, hosts, and the load of other links."""
    first = rows[0]
    hosts = {row.sender_host for row in rows} | {row.receiver_host for row in rows}
    units = {row.sender for row in rows} | {row.receiver for row in rows}
    of_each = "" if first.by == "rank" else f", one of each {first.by}"
    others = "all other links idle" if first.alone else "disjoint pairs at once"
    return (
        f"# OMB-Py Pairs, {title} v{VERSION} (buffer {first.buffer}, binding {first.binding})\n"
        f"# {count(len(units), 'rank')} on {count(len(hosts), 'host')}{of_each}; "
        f"{count(len(rows) // 2, 'pair')} in both directions, {others}; "
        f"medians of {count(first.repeats, 'repeat')}"
    )


def section(found: Matrix, worst: int = WORST) -> Iterator[str]:
    """Yield the lines of one message size."""
    pairs = np.argwhere(np.isfinite(found.values))
    ordered = pairs[np.argsort(-found.costs[tuple(pairs.T)], kind="stable")]
    values = found.values[tuple(ordered.T)]
    middle, best, last = (
        value_text(value, found.unit) for value in (np.median(values), values[-1], values[0])
    )
    yield f"# {size_text(found.bytes)}: median {middle}, fastest {best}, slowest {last}"
    if worst:
        times = slowdown(values / np.median(values), found.unit)
        names = [f"{rank} ({host})" for rank, host in zip(found.ranks, found.hosts, strict=True)]
        ends = [[names[unit] for unit in pair] for pair in ordered[:worst].tolist()]
        wide = max(len("# Receiver"), *(len(name) for both in ends for name in both)) + 2
        label = "Latency" if is_time(found.unit) else "Bandwidth"
        yield f"{'# Sender':<{wide}}{'Receiver':<{wide}}{label:>12}{'x median':>12}"
        for (sender, receiver), value, ratio in zip(ends, values, times, strict=False):
            number = value_text(value, found.unit)
            yield f"{sender:<{wide}}{receiver:<{wide}}{number:>12}{ratio:>12.2f}"
    yield from drawn(found)
    yield from (f"# {sentence}" for sentence in judge(found).sentences())


def drawn(found: Matrix) -> Iterator[str]:
    """Yield a map of shades, senders downwards; nothing if there are too many of them."""
    if not 2 < len(found.ranks) <= MAPPED:
        return
    ratios = np.exp(found.costs - np.nanmedian(found.costs))
    wide = max(len(str(rank)) for rank in found.ranks)
    scale = ", ".join(f"{mark} to {limit:g}" for limit, mark in SHADES[:-1])
    yield f"# Times the median: {scale}, {SHADES[-1][1]} more; senders downwards, ordered by host"
    before = ""
    for rank, host, row in zip(found.ranks, found.hosts, ratios, strict=True):
        shades = "".join(
            next((mark for limit, mark in SHADES if ratio <= limit), " ") for ratio in row
        )
        yield f"# {rank:>{wide}} {shades}{'' if host == before else f' {host}'}"
        before = host

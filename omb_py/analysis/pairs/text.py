"""The text of `omb-py pairs`: the slowest pairs of each message size, a map, and findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TextIO

import numpy as np

from omb_py.analysis.pairs.findings import judge
from omb_py.analysis.pairs.matrix import Matrix, matrix
from omb_py.core import VERSION
from omb_py.core.text.units import size_text, value_text
from omb_py.core.text.words import count
from omb_py.results.columns import PairRow
from omb_py.results.writer import Writer

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
        ratios = values / np.median(values)
        times = ratios if found.unit == "us" else 1 / ratios
        names = [f"{rank} ({host})" for rank, host in zip(found.ranks, found.hosts, strict=True)]
        ends = [[names[unit] for unit in pair] for pair in ordered[:worst].tolist()]
        wide = max(len("# Receiver"), *(len(name) for both in ends for name in both)) + 2
        label = "Latency" if found.unit == "us" else "Bandwidth"
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

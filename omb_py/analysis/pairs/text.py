"""The text of `omb-py pairs`: the slowest pairs of each message size, a map, and what is slow."""

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
"""How many times as long as the median a pair takes at most, and the character for it."""

MAPPED = 72
"""Units of a map at most: their columns fit on a screen."""


class PairsWriter(Writer[PairRow]):
    """Says what is slow at each message size as soon as it is measured."""

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
    """What was measured, and how."""
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
    """The lines of one message size."""
    ordered = slowest(found)
    middle = found.middle
    best, last = (value_text(found.values[pair], found.unit) for pair in (ordered[-1], ordered[0]))
    yield (
        f"# {size_text(found.bytes)}: median {value_text(middle, found.unit)}, "
        f"fastest {best}, slowest {last}"
    )
    shown = ordered[:worst]
    if shown:
        label = "Latency" if found.unit == "us" else "Bandwidth"
        names = [place(found, unit) for pair in shown for unit in pair]
        wide = max(len("# Receiver"), *map(len, names)) + 2
        yield f"{'# Sender':<{wide}}{'Receiver':<{wide}}{label:>12}{'x median':>12}"
        for sender, receiver in shown:
            value = found.values[sender, receiver]
            ratio = value / middle if found.unit == "us" else middle / value
            names_of = (place(found, unit) for unit in (sender, receiver))
            cells = "".join(f"{name:<{wide}}" for name in names_of)
            yield f"{cells}{value_text(value, found.unit):>12}{ratio:>12.2f}"
    yield from drawn(found)
    yield from (f"# {sentence}" for sentence in judge(found).sentences())


def slowest(found: Matrix) -> list[tuple[int, int]]:
    """The pairs that were measured, slowest first."""
    pairs = [(int(i), int(j)) for i, j in np.argwhere(np.isfinite(found.values))]
    costs = found.costs
    return sorted(pairs, key=lambda pair: -costs[pair])


def place(found: Matrix, unit: int) -> str:
    """A rank and its host."""
    return f"{found.ranks[unit]} ({found.hosts[unit]})"


def drawn(found: Matrix) -> Iterator[str]:
    """A map of shades, senders downwards; nothing where there are too many of them."""
    if not 2 < len(found.ranks) <= MAPPED:
        return
    ratios = np.exp(found.costs - np.nanmedian(found.costs))
    wide = max(len(str(rank)) for rank in found.ranks)
    scale = ", ".join(f"{mark} to {limit:g}" for limit, mark in SHADES[:-1])
    yield f"# Times the median: {scale}, {SHADES[-1][1]} more; senders downwards, ordered by host"
    before = ""
    for rank, host, row in zip(found.ranks, found.hosts, ratios, strict=True):
        shades = "".join(map(shade, row))
        yield f"# {rank:>{wide}} {shades}{'' if host == before else f' {host}'}"
        before = host


def shade(ratio: float) -> str:
    """The character of a pair; a blank where none was measured."""
    return " " if ratio != ratio else next(mark for limit, mark in SHADES if ratio <= limit)

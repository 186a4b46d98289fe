"""Axes: message sizes, numbers of ranks, and values with their unit and statistic."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log2, log10
from typing import Any

import altair as alt

from omb_py.analysis.charts.spec import TEXT, widest
from omb_py.core.text.units import digits, size_text, value_text

UNITS = {
    "us": ((1e6, "s"), (1e3, "ms"), (1.0, "µs"), (1e-3, "ns")),
    "MB/s": ((1e6, "TB/s"), (1e3, "GB/s"), (1.0, "MB/s"), (1e-3, "kB/s")),
    "msg/s": ((1e6, "million/s"), (1e3, "thousand/s"), (1.0, "1/s")),
    "%": ((1.0, "%"),),
    "": ((1.0, ""),),
}
BINARY_UNITS = tuple(
    (2**power / 1e6, f"{name}iB/s") for power, name in ((30, "G"), (20, "M"), (10, "K"))
)


@dataclass(frozen=True)
class Measure:
    """What an axis shows: words for the quantity, its unit in results, its statistic ("" for none).

    ``unit`` is one of `UNITS`; ``binary`` writes rates in MiB/s and GiB/s.
    """

    words: str
    unit: str
    statistic: str = ""
    binary: bool = False

    def label(self, name: str) -> str:
        """The axis's label, with the unit by the ``name`` that its numbers have.

        >>> Measure("Latency", "us", "median").label("µs")
        'Latency (µs), median'
        """
        return ", ".join(
            filter(None, (f"{self.words} ({name})" * bool(name) or self.words, self.statistic))
        )

    def of(self, numbers: Sequence[float]) -> tuple[float, str]:
        """The unit of an axis's numbers, in the unit of results, and its name.

        >>> Measure("Latency", "us").of([900.0, 90000.0])
        (1000.0, 'ms')
        """
        steps = BINARY_UNITS if self.binary and self.unit == "MB/s" else UNITS[self.unit]
        above = [number for number in numbers if number > 0] or [1.0]
        middle = (min(above) * max(above)) ** 0.5
        return next((step for step in steps if middle >= step[0]), steps[-1])

    def text(self, value: float) -> str:
        """A value with its unit, as a cell or the end of a bar has it.

        >>> Measure("", "us").text(11858), Measure("", "MB/s", binary=True).text(2.097152)
        ('11.9 ms', '2.00 MiB/s')
        """
        if self.unit in ("%", ""):
            return f"{value:.0f} %" if self.unit else digits(value, 3 if value >= 1 else 2)
        if self.binary and self.unit == "MB/s":
            factor, name = self.of([value])
            return f"{digits(value / factor)} {name}"
        return value_text(value, self.unit)

    @property
    def note(self) -> list[str]:
        """What a megabyte is."""
        if self.unit != "MB/s":
            return []
        return ["MiB are 1,048,576 bytes" if self.binary else "MB are 1,000,000 bytes"]


def lookup(labels: Mapping[Any, str]) -> str:
    """An expression for the labels of ticks."""
    return f"{json.dumps({f'{place:.15g}': text for place, text in labels.items()})}[datum.value]"


def names_axis(names: Mapping[int, str], extent: float | None = None, **settings: Any) -> alt.Axis:
    """An axis of names for numbers of places, which may have several lines.

    Its labels are as wide as ``extent``; ``settings`` of Vega's axis beside them.
    """
    tall = {at: -4.5 * name.count("\n") for at, name in names.items() if "\n" in name}
    centred = [{"test": f"datum.value == {at}", "value": value} for at, value in tall.items()]
    known: dict[str, Any] = {"title": None, "ticks": False, "grid": False}
    known |= {"values": list(names), "labelExpr": f"split({lookup(names)}, '\\n')"}
    if extent is not None:
        known |= {"minExtent": extent, "maxExtent": extent}
        known |= {"labelOffset": {"condition": centred, "value": 0}} if centred else {}
    return alt.Axis(**known | settings)


@dataclass(frozen=True)
class ValueAxis:
    """An axis of values: ``ticks`` with their labels, and Vega's scale."""

    title: str
    ticks: Mapping[float, str]
    scale: alt.Scale
    low: float
    high: float
    logarithmic: bool

    @property
    def labels(self) -> float:
        """Points that labels and ticks need beside the axis."""
        return 7 + widest(self.ticks.values())

    @property
    def left(self) -> float:
        """Points that labels, ticks and title need beside the axis."""
        return self.labels + 4 + ceil(1.2 * TEXT)

    def axis(self, extent: float | None = None, **settings: Any) -> alt.Axis:
        """Ticks and title, labels and ticks as wide as ``extent``; ``settings`` of Vega's axis."""
        known: dict[str, Any] = {"title": self.title, "values": list(self.ticks)}
        known["labelExpr"] = lookup(self.ticks)
        room = {} if extent is None else {"minExtent": extent, "maxExtent": extent}
        return alt.Axis(**known | room | settings)


def value_axis(
    numbers: Sequence[float], measure: Measure, vertical: bool = True, behind: float = 0.0
) -> ValueAxis:
    """An axis for numbers: logarithmic, on both sides of 0 if some are below, or linear from 0
    where they are close together. ``behind`` is the share of it to leave free after the highest.
    """
    known = [float(number) for number in numbers if isfinite(number)]
    factor, name = measure.of([abs(number) for number in known])
    above = [abs(number) for number in known if number]
    more = 1 / (1 - min(0.6, behind))
    signed = min(known, default=0) < 0
    logarithmic = measure.unit != "%" and bool(above) and max(above) / min(above) >= 4
    if signed:
        low, high = -max(above), max(above)
        powers = decades(min(above) / factor, high / factor)
        scaled = [*(-power for power in powers if low), 0.0, *powers]
        scale = alt.Scale(type="symlog", constant=min(above), domain=[low, high], nice=False)
    elif logarithmic:
        room = (max(above) / min(above)) ** 0.04
        low, high = min(above) / room, max(above) * room
        scaled = decades(low / factor, high / factor, 300 if vertical else 10)
        scale = alt.Scale(type="log", domain=[low, low * (high / low) ** more], nice=False)
    else:
        low, high = 0.0, (max(known, default=1) or 1) * 1.08
        if measure.unit == "%":
            high = max(105.0, high)
        scaled = even(high / factor)
        scale = alt.Scale(type="linear", domain=[low, high * more], nice=False)
    ticks = {float(f"{tick * factor:.15g}"): number_text(tick) for tick in scaled}
    return ValueAxis(measure.label(name), ticks, scale, low, high, logarithmic and not signed)


def decades(low: float, high: float, most: float = 300) -> list[float]:
    """Ticks of a logarithmic axis: powers of ten, with 2 and 5 between if it is short."""
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    for steps in ([1], [1, 2, 5], range(1, 10)):
        ticks = (float(f"{n}e{power}") for power in powers for n in steps)
        found = [tick for tick in ticks if low <= tick <= high]
        if len(found) > 1 and (len(steps) > 1 or high / low > most):
            break
    return found


def even(high: float) -> list[float]:
    """Ticks of an axis from 0, round numbers."""
    power = 10.0 ** floor(log10(high / 4))
    step = next(power * n for n in (1, 2, 5, 10) if high / (power * n) <= 6)
    return [float(f"{step * n:.12g}") for n in range(int(high / step) + 1)]


def number_text(value: float) -> str:
    """A tick's number.

    >>> [number_text(value) for value in (0.2, 1500.0, 1e5, 2e6)]
    ['0.2', '1500', '100000', '2e6']
    """
    return f"{value:.6g}".replace("e+0", "e").replace("e-0", "e-")


def size_ticks(sizes: Sequence[float], room: float, label: float = 32.0) -> dict[float, str]:
    """Sizes whose labels fit in ``room`` points: all, or 0 and others in even steps.

    >>> list(size_ticks([0, 1, 2, 4, 8, 16, 32], 130).values())
    ['0 B', '4 B', '16 B']
    """
    ordered = sorted(set(sizes))
    positive = [size for size in ordered if size > 0]
    step = ceil(len(ordered) / max(2, int(room / label)))
    chosen = positive[::step]
    if len(positive) < len(ordered):
        chosen = [0, *(chosen if step == 1 else chosen[1:])]
    return {size: size_text(size) for size in chosen}


def size_axis(sizes: Sequence[float], room: float, **settings: Any) -> alt.X:
    """X with all message sizes in their order, as far apart from each other."""
    ticks = size_ticks(sizes, room)
    axis: dict[str, Any] = {"title": "Message size", "values": list(ticks)}
    axis |= {"labelExpr": lookup(ticks)} | settings
    scale = alt.Scale(type="point", domain=sorted(set(sizes)), padding=0.4)
    return alt.X("x:O", axis=alt.Axis(**axis), scale=scale)


def rank_ticks(ranks: Sequence[float], room: float) -> list[float]:
    """Numbers of ranks whose labels fit in ``room`` points; powers of two where not all do."""
    counts = sorted(set(ranks))
    most = max(3, int(room / 24))
    if len(counts) > most:
        counts = [count for count in counts if log2(count) % 1 == 0] or counts
        counts = counts[:: ceil(len(counts) / most)]
    return counts


def rank_axis(ranks: Sequence[float], room: float, **settings: Any) -> alt.X:
    """X as a logarithmic axis of numbers of ranks, of ``room`` points."""
    low, high = min(ranks), max(ranks)
    edge = max(1.04, (high / low) ** 0.04)
    axis: dict[str, Any] = {
        "title": "Ranks",
        "values": rank_ticks(ranks, room),
        "format": "d",
    } | settings
    scale = alt.Scale(type="log", base=2, domain=[low / edge, high * edge], nice=False)
    return alt.X("x:Q", axis=alt.Axis(**axis), scale=scale)

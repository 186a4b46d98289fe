"""Axes: message sizes, numbers of ranks, and values with their unit and statistic."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log2, log10
from typing import Any

import altair as alt

from omb_py.analysis.charts.spec import TEXT, widest
from omb_py.core.text.units import STEPS, digits, size_text, unit_of, value_text

BINARY_UNITS = tuple(
    (2**power / 1e6, f"{name}iB/s") for power, name in ((30, "G"), (20, "M"), (10, "K"))
)


TITLE_ROOM = 4 + ceil(1.2 * TEXT)
"""Points that the title of an axis takes beside it."""


@dataclass(frozen=True)
class Measure:
    """What an axis shows: words for the quantity, its unit in results, its statistic ("" for none).

    ``unit`` is one of `STEPS`, ``%`` or none; ``binary`` writes rates in MiB/s and GiB/s.
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
        if self.unit not in STEPS:
            return 1.0, self.unit
        steps = BINARY_UNITS if self.binary and self.unit == "MB/s" else STEPS[self.unit]
        above = [number for number in numbers if number > 0] or [1.0]
        return unit_of((min(above) * max(above)) ** 0.5, steps)

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


def extent(points: float) -> dict[str, Any]:
    """Settings of an axis whose labels and ticks take so many points."""
    return {"minExtent": points, "maxExtent": points}


def names_axis(names: Mapping[int, str], points: float | None = None, **settings: Any) -> alt.Axis:
    """An axis of names for numbers of places, which may have several lines.

    Its labels are as wide as ``points``; ``settings`` of Vega's axis beside them.
    """
    known: dict[str, Any] = {"title": None, "ticks": False, "grid": False, "values": list(names)}
    known["labelExpr"] = f"split({lookup(names)}, '\\n')"
    tall = {at: -4.5 * name.count("\n") for at, name in names.items() if "\n" in name}
    if points is not None:
        known |= extent(points)
    if points is not None and tall:
        centred = [{"test": f"datum.value == {at}", "value": value} for at, value in tall.items()]
        known["labelOffset"] = {"condition": centred, "value": 0}
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
    def left(self) -> float:
        """Points that labels, ticks and title need beside the axis."""
        return 7 + widest(self.ticks.values()) + TITLE_ROOM

    def axis(self, left: float | None = None, **settings: Any) -> alt.Axis:
        """Ticks and title in ``left`` points; ``settings`` of Vega's axis."""
        known: dict[str, Any] = {"title": self.title, "values": list(self.ticks)}
        known["labelExpr"] = lookup(self.ticks)
        return alt.Axis(**known | ({} if left is None else extent(left - TITLE_ROOM)) | settings)


def value_axis(
    numbers: Sequence[float], measure: Measure, vertical: bool = True, behind: float = 0.0
) -> ValueAxis:
    """An axis for numbers: logarithmic, on both sides of 0 if some are below, or linear from 0
    where they are close together. ``behind`` is the share of it to leave free after the highest.
    """
    known = [float(number) for number in numbers if isfinite(number)]
    factor, name = measure.of([abs(number) for number in known])
    above = [abs(number) for number in known if number] or [1.0]
    least, most = min(above), max(above)
    more = 1 / (1 - min(0.6, behind))
    signed = min(known, default=0) < 0
    logarithmic = not signed and measure.unit != "%" and most / least >= 4
    if signed:
        low, high = -most, most
        powers = decades(least / factor, high / factor)
        scaled = [*(-power for power in powers), 0.0, *powers]
        scale = alt.Scale(type="symlog", constant=least, domain=[low, high], nice=False)
    elif logarithmic:
        room = (most / least) ** 0.04
        low, high = least / room, most * room
        scaled = decades(low / factor, high / factor, 300 if vertical else 10)
        scale = alt.Scale(type="log", domain=[low, low * (high / low) ** more], nice=False)
    else:
        low, high = 0.0, max(105.0 if measure.unit == "%" else 0.0, 1.08 * most)
        scaled = even(high / factor)
        scale = alt.Scale(type="linear", domain=[low, high * more], nice=False)
    ticks = {float(f"{tick * factor:.15g}"): f"{tick:.6g}" for tick in scaled}
    return ValueAxis(measure.label(name), ticks, scale, low, high, logarithmic)


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


def ticks_along(x: str, values: Iterable[float], most: float) -> dict[float, str]:
    """About ``most`` of the sizes or numbers of ranks with their labels, in even steps.

    Of ranks powers of two where not all fit; 0 bytes always.

    >>> list(ticks_along("bytes", [0, 1, 2, 4, 8, 16, 32], 4).values())
    ['0 B', '4 B', '16 B']
    """
    ordered = sorted(set(values))
    step = ceil(len(ordered) / max(2, int(most)))
    if x == "ranks" and step > 1:
        ordered = [one for one in ordered if log2(one) % 1 == 0] or ordered
        step = ceil(len(ordered) / max(2, int(most)))
    chosen = ordered[::step]
    if ordered[0] == 0 and step > 1:  # the size beside 0 would be too near
        chosen = [0, *ordered[step + 1 :: step]]
    return {at: size_text(at) if x == "bytes" else f"{at:g}" for at in chosen}


def along_axis(x: str, values: Sequence[float], room: float, **settings: Any) -> alt.X:
    """X of ``room`` points: sizes in their order, as far apart from each other; ranks by powers."""
    ticks = ticks_along(x, values, room / (32 if x == "bytes" else 24))
    known: dict[str, Any] = {"values": list(ticks), "labelExpr": lookup(ticks)}
    known["title"] = "Message size" if x == "bytes" else "Ranks"
    axis = alt.Axis(**known | settings)
    if x == "bytes":
        scale = alt.Scale(type="point", domain=sorted(set(values)), padding=0.4)
        return alt.X("x:O", axis=axis, scale=scale)
    low, high = min(values), max(values)
    edge = max(1.04, (high / low) ** 0.04)
    scale = alt.Scale(type="log", base=2, domain=[low / edge, high * edge], nice=False)
    return alt.X("x:Q", axis=axis, scale=scale)

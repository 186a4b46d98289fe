"""Axes of figures: message sizes, ranks, and values with their unit and statistic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log2, log10
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from matplotlib.transforms import blended_transform_factory

from omb_py.analysis.plots.style import paper
from omb_py.core.text.units import digits, size_text, value_text

PLACE_OF_ZERO = 4.0
"""0 bytes stand this factor left of the minimum other size, where the axis is broken."""

LABEL = 34.0
"""Points along an axis that one label of a message size needs."""

UNITS = {
    "us": ((1e6, "s"), (1e3, "ms"), (1.0, "µs"), (1e-3, "ns")),
    "MB/s": ((1e6, "TB/s"), (1e3, "GB/s"), (1.0, "MB/s"), (1e-3, "kB/s")),
    "msg/s": ((1e6, "10⁶/s"), (1e3, "10³/s"), (1.0, "1/s")),
    "%": ((1.0, "%"),),
}
BINARY_UNITS = tuple(
    (2**power / 1e6, f"{name}iB/s") for power, name in ((30, "G"), (20, "M"), (10, "K"))
)

EXPONENTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def place(size: float, minimum: float) -> float:
    """Where a message size stands on a logarithmic axis; ``minimum`` is the smallest one > 0."""
    return size if size > 0 else minimum / PLACE_OF_ZERO


def min_size(sizes: Sequence[float]) -> float:
    """The minimum size above 0, or 1."""
    return min((size for size in sizes if size > 0), default=1.0)


def ticks_of_sizes(sizes: Sequence[float], labels: int = 8) -> list[float]:
    """Sizes that get one of so many ``labels``, and 0 if there.

    All if they are few, else powers of two in even steps.
    """
    positive = sorted({size for size in sizes if size > 0})
    zero = [0.0] if min(sizes, default=1) == 0 else []
    if len(positive) <= labels:
        return [*zero, *positive]
    low, high = log2(positive[0]), log2(positive[-1])
    first, last = floor(low + 0.999), floor(high)
    step = next(n for n in (1, 2, 3, 4, 5, 6, 8, 10, 20, 40) if (last - first) // n < labels)
    return [*zero, *(2.0**power for power in range(first, last + 1, step))]


def size_axis(axes: Axes, sizes: Sequence[float], room: float) -> None:
    """Make x a logarithmic axis of message sizes, broken left of the smallest for 0 bytes.

    The axis has ``room`` points.
    """
    minimum = min_size(sizes)
    labels = ticks_of_sizes(sizes, max(2, int(room / LABEL)))
    doublings = log2(max(sizes) / place(min(sizes), minimum)) if max(sizes) > 0 else 1.0
    if 0 in labels and room * log2(PLACE_OF_ZERO) < 0.8 * LABEL * doublings:
        labels = [size for size in labels if size != minimum]
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator([place(size, minimum) for size in labels]))
    axes.xaxis.set_minor_locator(FixedLocator([]))
    axes.xaxis.set_major_formatter(
        FuncFormatter(lambda at, _: size_text(0 if at < minimum else round(at)))
    )
    axes.set_xlabel("Message size")
    if 0 in labels:
        middle = minimum / PLACE_OF_ZERO**0.5
        across = blended_transform_factory(axes.transData, axes.transAxes)
        axes.text(
            middle,
            0,
            "//",
            transform=across,
            ha="center",
            va="center",
            bbox={"facecolor": paper(), "edgecolor": "none", "pad": 0.5},
        )


def rank_axis(axes: Axes, ranks: Sequence[float], room: float) -> None:
    """Make x a logarithmic axis of numbers of ranks, of ``room`` points."""
    counts = sorted(set(ranks))
    labels = max(3, int(room / 24))
    if len(counts) > labels:
        counts = [count for count in counts if log2(count) % 1 == 0] or counts
        counts = counts[:: ceil(len(counts) / labels)]
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(counts))
    axes.xaxis.set_minor_locator(FixedLocator([]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda count, _: f"{count:g}"))
    axes.set_xlabel("Ranks")


@dataclass(frozen=True)
class Measure:
    """What an axis shows: words for the quantity, its unit in results, its statistic ("" for none).

    ``unit`` is one of `UNITS`.
    """

    words: str
    unit: str
    statistic: str = ""

    def label(self, name: str) -> str:
        """The axis's label, with the unit by the ``name`` that its numbers have.

        >>> Measure("Latency", "us", "median").label("µs")
        'Latency (µs), median'
        """
        return ", ".join(filter(None, (f"{self.words} ({name})", self.statistic)))


def axis_unit(numbers: Sequence[float], unit: str, binary: bool = False) -> tuple[float, str]:
    """The unit of an axis's numbers, in the unit of results, and its name.

    >>> axis_unit([900.0, 90000.0], "us")
    (1000.0, 'ms')
    """
    steps = BINARY_UNITS if binary and unit == "MB/s" else UNITS[unit]
    above = [number for number in numbers if number > 0] or [1.0]
    middle = (min(above) * max(above)) ** 0.5
    return next((step for step in steps if middle >= step[0]), steps[-1])


def is_logarithmic(numbers: Sequence[float], unit: str) -> bool:
    """Whether numbers are so far apart that they need a logarithmic axis."""
    above = [number for number in numbers if number > 0]
    return unit != "%" and bool(above) and max(above) / min(above) >= 4


def value_axis(
    axis: Axis, numbers: Sequence[float], measure: Measure, binary: bool = False
) -> None:
    """Ticks, limits and label of an axis of values; ``numbers`` are all that is drawn along it.

    Logarithmic, or linear from 0 where values are close together.
    """
    axes = axis.axes
    vertical = axis is axes.yaxis
    set_scale = axes.set_yscale if vertical else axes.set_xscale
    set_limits = axes.set_ylim if vertical else axes.set_xlim
    known = [number for number in numbers if number == number]
    factor, name = axis_unit(known, measure.unit, binary)
    if is_logarithmic(known, measure.unit):
        above = [number for number in known if number > 0]
        low, high = min(above), max(above)
        set_scale("log")
        axis.set_major_locator(UnitLocator(factor, high / low > (300 if vertical else 10)))
        axis.set_minor_formatter(NullFormatter())
        room = (high / low) ** 0.04
        set_limits(low / room, high * room)
    else:
        axis.set_major_locator(UnitTicks(factor))
        set_limits(0, 105 if measure.unit == "%" else (max(known, default=1) or 1) * 1.08)
    axis.set_major_formatter(FuncFormatter(lambda value, _: number_text(value / factor)))
    axis.set_label_text(measure.label(name))


class UnitLocator(LogLocator):
    """Ticks of a logarithmic axis at round numbers of a unit; only powers of ten of ``decades``."""

    def __init__(self, factor: float, decades: bool) -> None:
        super().__init__(subs=(1.0,) if decades else (1.0, 2.0, 5.0))
        self.factor = factor

    def tick_values(self, vmin: float, vmax: float) -> Any:
        ticks = super().tick_values(vmin / self.factor, vmax / self.factor)
        return np.asarray(ticks) * self.factor


class UnitTicks(MaxNLocator):
    """Ticks of a linear axis at round numbers of a unit."""

    def __init__(self, factor: float) -> None:
        super().__init__(5, steps=[1, 2, 5, 10])
        self.factor = factor

    def tick_values(self, vmin: float, vmax: float) -> Any:
        ticks = super().tick_values(vmin / self.factor, vmax / self.factor)
        return np.asarray(ticks) * self.factor


def quantity_text(value: float, unit: str, binary: bool = False) -> str:
    """A value with its unit, as a cell or the end of a bar has it.

    >>> quantity_text(11858, "us"), quantity_text(50, "%"), quantity_text(2.097152, "MB/s", True)
    ('11.9 ms', '50 %', '2.00 MiB/s')
    """
    if unit == "%":
        return f"{value:.0f} %"
    if binary and unit == "MB/s":
        factor, name = axis_unit([value], unit, binary)
        return f"{digits(value / factor)} {name}"
    return value_text(value, unit)


def number_text(value: float) -> str:
    """A tick's number.

    >>> [number_text(value) for value in (0.2, 1500.0, 1e5, 2e6)]
    ['0.2', '1500', '10⁵', '2·10⁶']
    """
    if value == 0 or 1e-3 <= abs(value) < 99_999:
        return f"{value:.6g}"
    power = floor(log10(abs(value)) + 1e-9)
    digit = value / 10.0**power
    sign = "" if abs(digit - 1) < 1e-6 else f"{digit:.3g}·"
    return f"{sign}10{str(power).translate(EXPONENTS)}"

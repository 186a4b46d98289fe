"""How figures look: colours, markers, dashes, axes, and how they become files.

Colours are Okabe and Ito's (*Color Universal Design*, 2008), which stay apart for the colour-blind;
markers and dashes tell lines apart in grey as well.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import floor, log2
from typing import Any

import matplotlib as mpl
import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from matplotlib.transforms import blended_transform_factory

from omb_py.core.text.units import size_text, value_text

COLORS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "X", "P", "<", "*")
DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1)), (0, (6, 1.5, 1.5, 1.5)))

BINDINGS = ("native", "buffer", "pickle", "array", "persistent", "pkl5", "prebound", "nccl")
"""Bindings in the order of their looks, which are the same in every figure."""

MUTED = "#595959"
SEQUENTIAL = "cividis"
DIVERGING = "PuOr_r"

FORMATS = ("png", "svg", "pdf")

PLACE_OF_ZERO = 3.0
"""0 bytes stand this factor left of the minimum other size, where the axis is broken."""

LABELS = 8
"""Labels of an axis of sizes, at most."""

SETTINGS: dict[str, Any] = {
    "font.size": 10,
    "font.family": ["DejaVu Sans"],
    "axes.titlesize": 11,
    "axes.labelsize": 10,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.fontsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "hatch.linewidth": 0.6,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
    "legend.frameon": False,
    "savefig.dpi": 200,
    "pdf.fonttype": 42,  # TrueType: text stays text
    "svg.fonttype": "path",  # outlines: looks alike whatever fonts the reader has
    "svg.hashsalt": "omb-py",
}

METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": "omb-py"},
    "pdf": {"CreationDate": None, "Creator": "omb-py", "Producer": None},
}
"""Nothing that changes from day to day, so that the same data makes the same file."""


@dataclass(frozen=True)
class LineStyle:
    """How a line is drawn."""

    color: str
    marker: str
    dash: Any


def line_style(index: int) -> LineStyle:
    """The look of line ``index``; no two of the first 252 are the same."""
    return LineStyle(
        COLORS[index % len(COLORS)], MARKERS[index % len(MARKERS)], DASHES[index % len(DASHES)]
    )


@contextmanager
def apply_style() -> Iterator[None]:
    """Within it figures are made and written with these settings, whatever the user's are."""
    with mpl.style.context(["default", SETTINGS]):
        yield


def empty_figure(width: float, height: float) -> Figure:
    """A figure of so many inches whose parts make room for each other."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def caption(figure: Figure, facts: Sequence[str]) -> None:
    """What one must know to believe a figure, in small print below it, a sentence for each fact."""
    text = " ".join(f"{fact}." for fact in facts if fact)
    lines = textwrap.wrap(text, int(figure.get_size_inches()[0] * 16.5))
    figure.supxlabel(
        "\n".join(lines), x=0.015, ha="left", fontsize=7.5, color=MUTED, linespacing=1.3
    )


def image(figure: Figure, form: str) -> bytes:
    """A figure as the content of a file of one of `FORMATS`; the same figure, the same bytes."""
    stream = io.BytesIO()
    with apply_style():
        figure.savefig(stream, format=form, metadata=METADATA[form])
    return stream.getvalue()


def place(size: float, minimum: float) -> float:
    """Where a message size stands on a logarithmic axis; ``minimum`` is the smallest one > 0."""
    return size if size > 0 else minimum / PLACE_OF_ZERO


def min_size(sizes: Sequence[float]) -> float:
    """The minimum size above 0, or 1."""
    return min((size for size in sizes if size > 0), default=1.0)


def ticks_of_sizes(sizes: Sequence[float]) -> list[float]:
    """Sizes that get a label: all if they are few, else powers of two in even steps; 0 if there."""
    positive = sorted({size for size in sizes if size > 0})
    zero = [0.0] if min(sizes, default=1) == 0 else []
    if len(positive) <= LABELS:
        return [*zero, *positive]
    low, high = log2(positive[0]), log2(positive[-1])
    first, last = floor(low + 0.999), floor(high)
    step = next(n for n in (1, 2, 3, 4, 5, 10, 20) if (last - first) // n < LABELS)
    return [*zero, *(2.0**power for power in range(first, last + 1, step))]


def size_axis(axes: Axes, sizes: Sequence[float]) -> None:
    """Make x a logarithmic axis of message sizes, broken left of the smallest for 0 bytes."""
    minimum = min_size(sizes)
    labels = ticks_of_sizes(sizes)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator([place(size, minimum) for size in labels]))
    axes.xaxis.set_minor_locator(FixedLocator([]))
    axes.set_xticklabels([size_text(size) for size in labels])
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
            fontsize=9,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
        )


def rank_axis(axes: Axes, ranks: Sequence[float]) -> None:
    """Make x a logarithmic axis of numbers of ranks."""
    counts = sorted(set(ranks))
    axes.set_xscale("log", base=2)
    if len(counts) > 2 * LABELS:
        counts = [count for count in counts if log2(count) % 1 == 0] or counts[:: len(counts) // 8]
    axes.xaxis.set_major_locator(FixedLocator(counts))
    axes.xaxis.set_minor_locator(FixedLocator([]))
    axes.set_xticklabels([f"{count:g}" for count in counts])
    axes.set_xlabel("Ranks")


def value_axis(axes: Axes, values: Sequence[float], unit: str, binary: bool = False) -> bool:
    """Give y ticks with units; logarithmic, or linear from 0 where values are close together.

    Returns whether it is logarithmic. Values are in ``unit``, which `tick_text` knows.
    """
    axis = axes.yaxis
    above = [value for value in values if value > 0]
    logarithmic = unit != "%" and bool(above) and max(above) / min(above) >= 4
    if logarithmic:
        decades = max(above) / min(above) > 300
        if binary and unit == "MB/s":
            axes.set_yscale("log", base=2)
            axis.set_major_locator(BinaryLocator())
        else:
            axes.set_yscale("log")
            axis.set_major_locator(LogLocator(subs=(1.0,) if decades else (1.0, 2.0, 5.0)))
        axis.set_minor_formatter(NullFormatter())
    else:
        axis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: tick_text(value, unit, binary)))
    return logarithmic


class BinaryLocator(LogLocator):
    """Ticks at powers of two of bytes per second, on an axis of 10^6 bytes per second."""

    def __init__(self) -> None:
        super().__init__(base=2.0)

    def tick_values(self, vmin: float, vmax: float) -> Any:
        low, high = sorted((max(vmin, 1e-12) * 1e6, max(vmax, 1e-12) * 1e6))
        first, last = floor(log2(low)), floor(log2(high)) + 1
        step = max(1, -(-(last - first) // 7))
        return [2.0**power / 1e6 for power in range(first - first % step, last + 1, step)]


def tick_text(value: float, unit: str, binary: bool = False) -> str:
    """A tick's label with its unit.

    >>> tick_text(1500, "us"), tick_text(10, "us"), tick_text(1e4, "MB/s"), tick_text(50, "%")
    ('1.5 ms', '10 µs', '10 GB/s', '50 %')
    >>> tick_text(1.048576, "MB/s", binary=True)
    '1 MiB/s'
    """
    if value == 0:
        return "0"
    if unit == "%":
        return f"{value:g} %"
    if binary and unit == "MB/s":
        return f"{size_text(round(value * 1e6))}/s"
    number, name = value_text(value, unit).split(" ", 1)
    return f"{float(number):g} {name}"

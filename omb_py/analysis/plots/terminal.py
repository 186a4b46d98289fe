"""Figures as text, for a terminal or the log of a job."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from itertools import repeat
from math import ceil, floor, isnan, log2, log10

import click
import numpy as np
import plotext

from omb_py.analysis.pairs.text import drawn
from omb_py.analysis.plots.axes import (
    Measure,
    axis_unit,
    min_size,
    place,
    quantity_text,
    ticks_of_sizes,
)
from omb_py.analysis.plots.bars import BarChart
from omb_py.analysis.plots.charts import Chart, Line
from omb_py.analysis.plots.figures import Picture
from omb_py.analysis.plots.heat import HeatMap
from omb_py.analysis.plots.overhead import TIMES, Overhead, Panel, at, difference
from omb_py.analysis.plots.pairs import PairMap
from omb_py.analysis.plots.samples import (
    QUANTILES,
    TITLES,
    SamplePanel,
    SamplePlot,
    cumulated,
    pooled,
    running_median,
    some,
)
from omb_py.analysis.plots.winner import Cell, WinnerMap
from omb_py.analysis.samples.diagnostics import findings
from omb_py.core.text.units import size_text, value_text

WIDTH, HEIGHT = 80, 24
"""Columns and lines of a figure that does not go to a terminal."""

COLORS = (None, 33, 208, 35, 175, 214, 117, 245)
"""Numbers of a terminal's 256 colours, near those of `omb_py.analysis.plots.style`."""

MARKERS = ("●", "■", "▲", "◆", "▼", "x", "+", "◀")


def terminal_size() -> tuple[int, int]:
    """Columns and lines to use."""
    if not sys.stdout.isatty():
        return WIDTH, HEIGHT
    columns, lines = shutil.get_terminal_size((WIDTH, HEIGHT))
    return max(40, columns), min(max(15, lines - 6), 40)


def uses_color() -> bool:
    """Whether output may have colours: it goes to a terminal, and ``NO_COLOR`` is not set."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def text(
    picture: Picture, width: int, height: int, colored: bool = False, binary: bool = False
) -> str:
    """A picture in ``width`` columns, of which axes take ``height`` lines.

    Below single iterations stands what is odd about them.
    """
    said: list[str] = []
    match picture:
        case Chart():
            over = "message size" if picture.x == "bytes" else "ranks"
            words = f"{described(picture.measure)} over {over}"
            unit = picture.measure.unit
            body = []
            for part in picture.panels:
                body += [part.title] * bool(part.title)
                body += legend(part.lines, width, colored)
                body.append(plot(part.lines, picture.x, unit, (width, height), colored, binary))
        case Overhead():
            words = "added over message size" if picture.marks else "added"
            body = []
            for panel in picture.panels:
                body += [panel.title, *at_one_size(picture, panel)]
                if picture.marks:
                    body += legend(panel.added, width, colored)
                    body.append(plot(panel.added, "bytes", "us", (width, height), colored))
        case BarChart():
            words = described(picture.measure)
            body = bars(picture, width)
        case HeatMap():
            words = described(picture.measure)
            body = table(picture, binary)
        case WinnerMap():
            words = picture.words
            body = winners(picture, colored)
        case PairMap():
            words = described(picture.measure)
            body = list(drawn(picture.matrix)) or ["(too many ranks for a map of characters)"]
        case SamplePlot():
            words = TITLES[picture.kind]
            body = []
            for axes in [] if picture.kind == "violin" else picture.panels:
                body += [axes.title] * bool(axes.title)
                body.append(over_time(axes, picture.kind, (width, height), colored))
            body += quantiles(picture.panels) if picture.kind == "violin" else []
            every = [one for axes in picture.panels for one in axes.series]
            said = [textwrap.fill(f"{sentence}.", width) for sentence in findings(every)]
    title = click.style(picture.title, bold=True) if colored else picture.title
    caption = textwrap.wrap(" ".join(f"{fact}." for fact in picture.caption if fact), width)
    return "\n".join([f"{title}: {words}", *body, *caption, *said])


def described(measure: Measure) -> str:
    """What values are."""
    return ", ".join(filter(None, (measure.words, measure.statistic)))


def at_one_size(picture: Overhead, panel: Panel) -> list[str]:
    """What each binding adds at the size of a figure's bars."""
    where = "" if picture.size is None else f" at {size_text(picture.size)}"
    names = max(len(line.name) for line in (panel.base, *panel.added))
    base = value_text(at(panel.base, picture.size), "us")
    return [f"{panel.base.name:>{names}} {base}{where}"] + [
        f"{line.name:>{names}} {difference(at(line, picture.size))}, {TIMES} {ratio:.2f}"
        for line, ratio in zip(panel.added, panel.ratios, strict=True)
    ]


def legend(lines: Sequence[Line], width: int, colored: bool) -> list[str]:
    """The markers of lines with their names, as many lines as it takes."""
    rows: list[list[str]] = [[]]
    room = width
    for line in lines:
        if len(line.name) + 4 > room and rows[-1]:
            rows.append([])
            room = width
        room -= len(line.name) + 4
        entry = f"{MARKERS[line.style % len(MARKERS)]} {line.name}"
        rows[-1].append(
            click.style(entry, fg=COLORS[line.style % len(COLORS)]) if colored else entry
        )
    return ["  ".join(row) for row in rows]


def plot(
    lines: Sequence[Line],
    x: str,
    unit: str,
    size: tuple[int, int],
    colored: bool,
    binary: bool = False,
) -> str:
    """Axes with lines in ``size`` columns and lines; axes are logarithmic as in other figures."""
    points = [point for line in lines for point in line.points if point.value > 0 or unit == "%"]
    if not points:
        return "(nothing above 0 to draw on a logarithmic axis)"
    values = [point.value for point in points]
    logarithmic = unit != "%" and max(values) / min(values) >= 4
    sizes = [point.x for point in points]
    minimum = min_size(sizes)
    canvas = plotext.figure
    canvas.clear()
    canvas.theme("simple")
    canvas.plot_size(*size)
    canvas.legend(False)
    for line in lines:
        color = COLORS[line.style % len(COLORS)]
        symbol = MARKERS[line.style % len(MARKERS)]
        marker = plotext.marker(symbol, pixel="default" if color is None else color)
        shown = [point for point in line.points if point.value > 0 or unit == "%"]
        for part in ([p for p in shown if p.x == 0], [p for p in shown if p.x > 0]):
            if part:
                signal = canvas.signal(
                    [log2(place(point.x, minimum)) for point in part],
                    [log10(point.value) if logarithmic else point.value for point in part],
                    marker=marker,
                )
                signal.lines()
                canvas.draw(signal)
    counts = sorted(set(sizes))
    ticks = ticks_of_sizes(sizes) if x == "bytes" else counts[:: max(1, len(counts) // 8)]
    canvas.ruler("x").ticks(
        [log2(place(tick, minimum)) for tick in ticks],
        [size_text(tick) if x == "bytes" else f"{tick:g}" for tick in ticks],
    )
    levels = decades(values) if logarithmic else even(max(values))
    canvas.ruler("y").ticks(
        [log10(level) if logarithmic else level for level in levels],
        [tick_text(level, unit, binary) for level in levels],
    )
    if not logarithmic:
        canvas.ruler("y").lim(0, max(values) * 1.05)
    return str(canvas.build().string(colorless=not colored)).rstrip("\n")


def over_time(panel: SamplePanel, kind: str, size: tuple[int, int], colored: bool) -> str:
    """Axes with samples or their running median over starts, or with their distribution."""
    curves = {
        "samples": lambda: [some(one) for one in panel.series],
        "drift": lambda: [running_median(one)[:2] for one in panel.series],
        "ecdf": lambda: [cumulated(panel)],
    }[kind]()
    across, up = (np.concatenate(numbers) for numbers in zip(*curves, strict=True))
    times = across if kind == "ecdf" else up
    logarithmic = kind != "drift" and times.min() > 0 and times.max() / times.min() >= 4
    canvas = plotext.figure
    canvas.clear()
    canvas.theme("simple")
    canvas.plot_size(*size)
    canvas.legend(False)
    for number, (x, y) in enumerate(curves):
        if logarithmic:
            x, y = (np.log10(x), y) if kind == "ecdf" else (x, np.log10(y))
        tint = COLORS[number % len(COLORS)]
        marker = plotext.marker("·", pixel="default" if tint is None else tint)
        signal = canvas.signal(x.tolist(), y.tolist(), marker=marker)
        if kind != "samples":
            signal.lines()
        canvas.draw(signal)
    factor, name = axis_unit([times.min(), times.max()], "us")
    levels = decades(times.tolist()) if logarithmic else np.linspace(times.min(), times.max(), 5)
    canvas.ruler("x" if kind == "ecdf" else "y").ticks(
        [log10(level) if logarithmic else float(level) for level in levels],
        [f"{level / factor:.4g} {name}" for level in levels],
    )
    others = up if kind == "ecdf" else across
    marks = np.linspace(0 if kind == "ecdf" else others.min(), others.max(), 5)
    canvas.ruler("y" if kind == "ecdf" else "x").ticks(
        marks.tolist(), [f"{mark:.0f} %" if kind == "ecdf" else f"{mark:.4g} s" for mark in marks]
    )
    return str(canvas.build().string(colorless=not colored)).rstrip("\n")


def quantiles(panels: Sequence[SamplePanel]) -> list[str]:
    """What stands for a violin: percentiles of each message size."""
    heads = ["min", *(f"p{percent:g}" for percent in QUANTILES[1:-1]), "max"]
    rows = [["", *heads]] + [
        [panel.title]
        + [value_text(float(value), "us") for value in np.percentile(pooled(panel), QUANTILES)]
        for panel in panels
    ]
    return aligned(rows)


def tick_text(value: float, unit: str, binary: bool = False) -> str:
    """A tick's label with its unit.

    >>> tick_text(1500, "us"), tick_text(10, "us"), tick_text(1e4, "MB/s"), tick_text(0, "us")
    ('1.5 ms', '10 µs', '10 GB/s', '0')
    """
    if value == 0:
        return "0"
    number, name = quantity_text(value, unit, binary).split(" ", 1)
    return f"{float(number):g} {name}"


def decades(values: Sequence[float]) -> list[float]:
    """Ticks of a logarithmic axis within its values: powers of ten, or with 2 and 5 between."""
    low, high = min(values), max(values)
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    steps = (1, 2, 5) if high / low < 300 else (1,)
    return [
        step * 10.0**power
        for power in powers
        for step in steps
        if low * 0.999 <= step * 10.0**power <= high * 1.001
    ]


def even(most: float) -> list[float]:
    """Ticks of an axis from 0, round numbers."""
    power = 10.0 ** floor(log10(most / 4))
    step = next(power * n for n in (1, 2, 5, 10) if most / (power * n) <= 6)
    return [step * n for n in range(int(most / step) + 1)]


def bars(chart: BarChart, width: int) -> list[str]:
    """Bars, and below each the parts that it is made of."""
    most = max(bar.value for bar in chart.bars)
    names = max(len(bar.name) for bar in chart.bars)
    room = max(8, width - names - 14)
    lines = []
    for bar in chart.bars:
        value = quantity_text(bar.value, chart.measure.unit)
        lines.append(f"{bar.name:>{names}} {'█' * max(1, round(room * bar.value / most))} {value}")
        if bar.parts:
            parts = ", ".join(
                f"{name} {value_text(part, chart.measure.unit)}" for name, part in bar.parts
            )
            lines += textwrap.wrap(
                parts, width, initial_indent=" " * (names + 1), subsequent_indent=" " * (names + 1)
            )
    return lines


def winners(chart: WinnerMap, colored: bool) -> list[str]:
    """The winner of each cell, sizes downwards, in its colour where it is beyond noise."""
    rows = [["", *chart.ranks]]
    for size, cells in zip(chart.sizes, chart.cells, strict=True):
        label = "" if isnan(size) else size_text(size)
        rows.append([label, *("" if cell is None else cell.text for cell in cells)])
    first, *widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for number, (label, *texts) in enumerate(rows):
        padded = [f"{text:<{wide}}" for text, wide in zip(texts, widths, strict=True)]
        if number and colored:
            padded = list(map(paint, padded, chart.cells[number - 1], repeat(chart)))
        lines.append("  ".join([f"{label:>{first}}", *padded]).rstrip())
    return lines


def paint(text: str, cell: Cell | None, chart: WinnerMap) -> str:
    """A cell's text in the colour of its winner."""
    if cell is None or cell.within_noise:
        return text
    return click.style(text, fg=COLORS[chart.names.index(cell.winner) % len(COLORS)])


def table(heat: HeatMap, binary: bool) -> list[str]:
    """A map's numbers, sizes downwards so that they fit."""
    rows = [["", *heat.rows]]
    for column, size in enumerate(heat.sizes):
        cells = heat.cells[:, column]
        rows.append([size_text(size), *(heat.text(cell, binary) for cell in cells)])
    return aligned(rows)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Cells in columns, to the right."""
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    return [
        "  ".join(f"{cell:>{wide}}" for cell, wide in zip(row, widths, strict=True)) for row in rows
    ]

"""Drawing charts: lines with their intervals, a legend that hides nothing, a caption."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import isnan, log10

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from omb_py.analysis.plots.charts import Chart, Line, Point, shade
from omb_py.analysis.plots.style import (
    caption,
    empty_figure,
    line_style,
    min_size,
    place,
    rank_axis,
    size_axis,
    value_axis,
)

WIDTH, HEIGHT = 6.4, 4.4
INSIDE = 6
"""Lines whose legend still finds room inside the axes."""


def draw(chart: Chart, binary: bool = False) -> Figure:
    """A figure of a chart, ``binary`` with rates in MiB/s and GiB/s."""
    figure = empty_figure(WIDTH, HEIGHT)
    axes = figure.add_subplot()
    every = [point.x for line in chart.lines for point in line.points]
    minimum = min_size(every)
    for line in chart.lines:
        draw_line(axes, line, minimum, bands=shade(chart.lines))
    (size_axis if chart.x == "bytes" else rank_axis)(axes, every)
    values = [point.value for line in chart.lines for point in line.points]
    logarithmic = value_axis(axes, values, chart.unit, binary)
    if not logarithmic:
        axes.set_ylim(bottom=0, top=max(values) * 1.15 if chart.unit != "%" else 105)
    axes.set_ylabel(y_label(chart, binary))
    axes.set_title(chart.title, loc="left")
    axes.grid(True, which="major")
    caption(figure, [*chart.caption, *chart.marks])
    legend(figure, axes, chart, logarithmic)
    return figure


def draw_line(axes: Axes, line: Line, minimum: float, bands: bool) -> None:
    """One line; a point of 0 bytes stands alone, left of where the axis is broken."""
    style = line_style(line.look)
    for alone in (True, False):
        points = [point for point in line.points if (point.x == 0) is alone]
        if not points:
            continue
        x = [place(point.x, minimum) for point in points]
        y = [point.value for point in points]
        axes.plot(
            x,
            y,
            color=style.color,
            marker=style.marker,
            linestyle="none" if alone else style.dash,
            label="_" if alone else line.name,
            markeredgecolor="white",
            markeredgewidth=0.4,
            zorder=3,
        )
        if bands or any(point.runs > 1 for point in points):
            spread(axes, x, points, style.color, bands and not alone)
        whiskers(axes, x, points, style.color)


def spread(
    axes: Axes, x: Sequence[float], points: Sequence[Point], color: str, filled: bool
) -> None:
    """How far samples or runs spread, as a band or, where it would hide others, as thin bars."""
    low = [point.value if isnan(point.spread[0]) else point.spread[0] for point in points]
    high = [point.value if isnan(point.spread[1]) else point.spread[1] for point in points]
    if filled:
        axes.fill_between(x, low, high, color=color, alpha=0.13, linewidth=0, zorder=1)
        return
    for at, point, below, above in zip(x, points, low, high, strict=True):
        if point.runs > 1:  # samples would be as long as runs, and mean something else
            axes.vlines(at, below, above, color=color, linewidth=0.6, alpha=0.6, zorder=2)


def whiskers(axes: Axes, x: Sequence[float], points: Sequence[Point], color: str) -> None:
    """The interval of the median, where it is known."""
    known = [
        (at, point) for at, point in zip(x, points, strict=True) if not isnan(point.interval[0])
    ]
    if not known:
        return
    below = [max(0.0, point.value - point.interval[0]) for _, point in known]
    above = [max(0.0, point.interval[1] - point.value) for _, point in known]
    axes.errorbar(
        [at for at, _ in known],
        [point.value for _, point in known],
        yerr=[below, above],
        fmt="none",
        ecolor=color,
        elinewidth=1.0,
        capsize=2,
        capthick=0.8,
        zorder=2,
    )


def y_label(chart: Chart, binary: bool) -> str:
    """What y is; of bandwidths also what a megabyte is."""
    if chart.unit != "MB/s":
        return chart.words
    unit = "1 MiB/s = 2²⁰ bytes/s" if binary else "1 MB/s = 10⁶ bytes/s"
    return f"{chart.words}  ({unit})"


def legend(figure: Figure, axes: Axes, chart: Chart, logarithmic: bool) -> None:
    """Names beside the lines' ends where those are apart; else in free space, or outside."""
    if len(chart.lines) < 2:
        return
    handles = [handle for handle in axes.get_lines() if not str(handle.get_label()).startswith("_")]
    names = [str(handle.get_label()) for handle in handles]
    if logarithmic and len(chart.lines) <= 5 and apart(chart) and max(map(len, names)) <= 22:
        for line in chart.lines:
            beside(axes, line)
    elif len(chart.lines) <= INSIDE and len(names) * max(map(len, names)) <= 180:
        axes.legend(
            handles=handles,
            loc="best",
            handlelength=2.6,
            frameon=True,
            framealpha=0.85,
            edgecolor="none",
        )
    else:
        outside(figure, handles)


def apart(chart: Chart) -> bool:
    """Whether the lines end at one x, so far from each other that names fit between."""
    every = [point.value for line in chart.lines for point in line.points]
    height = log10(max(every) / min(every))
    ends = sorted(log10(line.points[-1].value) for line in chart.lines)
    if len({line.points[-1].x for line in chart.lines}) > 1:
        return False
    return all(after - before > 0.07 * height for before, after in pairwise(ends))


def beside(axes: Axes, line: Line) -> None:
    """A line's name right of its end."""
    last = line.points[-1]
    axes.annotate(
        line.name,
        (last.x, last.value),
        xytext=(7, 0),
        textcoords="offset points",
        va="center",
        color=line_style(line.look).color,
        fontsize=9,
        annotation_clip=False,
    )


def outside(figure: Figure, handles: Sequence[Line2D]) -> None:
    """A legend right of the axes, for which the figure becomes wider."""
    columns = 1 + (len(handles) - 1) // 16
    made = figure.legend(
        handles=list(handles), loc="outside right upper", handlelength=3.2, ncols=columns
    )
    width = made.get_window_extent(figure.canvas.get_renderer()).width / figure.dpi  # type: ignore[attr-defined]
    figure.set_size_inches(WIDTH + width, HEIGHT)

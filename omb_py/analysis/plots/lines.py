"""Drawing charts: panels of lines with their intervals, a legend that hides nothing, a caption."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, isnan

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from omb_py.analysis.plots.axes import min_size, place, rank_axis, size_axis, value_axis
from omb_py.analysis.plots.charts import Chart, Line, Point, is_long, shade, units_note
from omb_py.analysis.plots.style import (
    TEXT,
    Page,
    empty_figure,
    finish,
    legend_above,
    legend_name,
    line_style,
    paper,
    wrap,
)

WIDE = 12.0
"""Centimetres from which panels stand beside each other if they are few."""


def draw(chart: Chart, binary: bool = False, page: Page | None = None) -> Figure:
    """A figure of a chart, ``binary`` with rates in MiB/s and GiB/s."""
    page = page or Page()
    names = {(line.name, line.style) for line in chart.lines}
    named = len(names) + len(chart.bounds) > 1
    shared = len(names) == len(dict(names)) == len({style for _, style in names})
    columns = columns_of(len(chart.panels), page.width)
    rows = ceil(len(chart.panels) / columns)
    room = page.points / columns - (45 if columns == 1 else 25)
    height = height_of(page.width / columns, rows)
    if not shared:
        height += 0.35 * max(
            len(wrap(panel.title, TEXT, room))
            + sum(len(legend_name(line.name, room)) for line in panel.lines)
            for panel in chart.panels
        )
    figure = empty_figure(page, rows * height)
    grid = (
        figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flatten().tolist()
    )
    xs = [point.x for line in chart.lines for point in line.points]
    minimum = min_size(xs)
    for axes, panel in zip(grid, chart.panels, strict=False):
        title = "\n".join(wrap(panel.title, TEXT, room))
        for line in panel.lines:
            draw_line(axes, line, minimum, bands=shade(panel.lines))
        for bound in chart.bounds:
            axes.plot(
                [place(x, minimum) for x, _ in bound.points],
                [value for _, value in bound.points],
                color=axes.xaxis.label.get_color(),
                linestyle=":",
                linewidth=0.8,
                label=bound.words,
            )
        (size_axis if chart.x == "bytes" else rank_axis)(axes, xs, room)
        axes.grid(True, which="major")
        if not shared:
            legend_above(axes, handles([axes]), room, title)
        elif title:
            axes.set_title(title, loc="left")
    value_axis(grid[0].yaxis, list(numbers(chart)), chart.measure, binary)
    for axes in grid[len(chart.panels) :]:
        axes.set_visible(False)
    for place_in_grid, axes in enumerate(grid[: len(chart.panels)]):
        lowest = place_in_grid + columns >= len(chart.panels)
        axes.tick_params(labelbottom=lowest, labelleft=place_in_grid % columns == 0)
        if not lowest:
            axes.set_xlabel("")
        if place_in_grid % columns == 0:
            axes.set_ylabel(grid[0].get_ylabel())
    return finish(
        figure,
        chart.title,
        [*chart.caption, *chart.marks, *units_note(chart.measure, binary)],
        handles(grid[: len(chart.panels)]) if shared and named else (),
    )


def columns_of(panels: int, width: float) -> int:
    """Panels beside each other in so many centimetres."""
    if width < WIDE:
        return 1 if panels <= 3 else 2
    return 2 if panels in (2, 4) else min(3, panels)


def height_of(width: float, rows: int) -> float:
    """Centimetres that panels of a width are high."""
    return max(4.2, width * (0.68 if rows == 1 and width < WIDE else 0.5))


def handles(every: Sequence[Axes]) -> list[Line2D]:
    """A line of each name in axes."""
    found: dict[str, Line2D] = {}
    for axes in every:
        for line in axes.get_lines():
            if not str(line.get_label()).startswith("_"):
                found.setdefault(str(line.get_label()), line)
    return list(found.values())


def numbers(chart: Chart) -> Iterator[float]:
    """All that is drawn along the axis of values."""
    for bound in chart.bounds:
        yield from (value for _, value in bound.points)
    for panel in chart.panels:
        bands = shade(panel.lines)
        for line in panel.lines:
            for point in line.points:
                yield from (point.value, *point.interval)
                if bands or point.runs > 1:
                    yield from point.spread


def draw_line(axes: Axes, line: Line, minimum: float, bands: bool) -> None:
    """One line; a point of 0 bytes stands alone, left of where the axis is broken."""
    style = line_style(line.style)
    named = False
    for alone in (False, True):
        points = [point for point in line.points if (point.x == 0) is alone]
        if not points:
            continue
        x = [place(point.x, minimum) for point in points]
        axes.plot(
            x,
            [point.value for point in points],
            color=style.color,
            marker=style.marker,
            linestyle="none" if alone else style.dash,
            label="_" if named else line.name,
            markeredgecolor=paper(),
            markeredgewidth=0.3,
            zorder=3,
        )
        named = True
        draw_spread(axes, x, points, style.color, bands)
        draw_intervals(axes, x, points, style.color)


def draw_spread(
    axes: Axes, x: Sequence[float], points: Sequence[Point], color: str, bands: bool
) -> None:
    """How far samples or runs spread, as a band or, where it would hide others, as thin bars."""
    low = [point.value if isnan(point.spread[0]) else point.spread[0] for point in points]
    high = [point.value if isnan(point.spread[1]) else point.spread[1] for point in points]
    several = [point.runs > 1 for point in points]
    if bands and len(points) > 1:
        axes.fill_between(x, low, high, color=color, alpha=0.15, linewidth=0, zorder=1)
    elif any(many and is_long(point.spread) for many, point in zip(several, points, strict=True)):
        axes.fill_between(x, low, high, color=color, alpha=0.3, linewidth=0, zorder=1)
    else:  # samples would be as long as runs, and mean something else
        for at, below, above, many in zip(x, low, high, several, strict=True):
            if many or bands:
                axes.vlines(at, below, above, color=color, linewidth=0.6, alpha=0.6, zorder=2)


def draw_intervals(axes: Axes, x: Sequence[float], points: Sequence[Point], color: str) -> None:
    """The interval of the median where it is known: bars, or a band where one is long."""
    known = [
        (at, point) for at, point in zip(x, points, strict=True) if not isnan(point.interval[0])
    ]
    if not known:
        return
    where = [at for at, _ in known]
    low = [min(point.value, point.interval[0]) for _, point in known]
    high = [max(point.value, point.interval[1]) for _, point in known]
    if len(known) > 1 and any(is_long(point.interval) for _, point in known):
        axes.fill_between(where, low, high, color=color, alpha=0.3, linewidth=0, zorder=1)
        return
    values = [point.value for _, point in known]
    axes.errorbar(
        where,
        values,
        yerr=[
            [value - below for value, below in zip(values, low, strict=True)],
            [above - value for value, above in zip(values, high, strict=True)],
        ],
        fmt="none",
        ecolor=color,
        elinewidth=0.8,
        capsize=1.5,
        capthick=0.6,
        zorder=2,
    )

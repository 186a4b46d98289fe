"""A series as a figure: speed-up over ranks, and what the ranks' time is made of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MultipleLocator, NullFormatter

from omb_py.analysis.plots.axes import rank_axis
from omb_py.analysis.plots.style import (
    DASHES,
    HATCHES,
    Page,
    apply_style,
    color,
    empty_figure,
    finish,
    legend_above,
    muted,
    paper,
)
from omb_py.analysis.scaling.prediction import Fit, band, fits_of
from omb_py.analysis.scaling.series import PHASES, Point, Series
from omb_py.core.text.units import digits

STEPS = 60
"""Numbers of ranks at which a law is drawn."""

MAX_BARS = 12
"""Bars beside which the numbers of ranks find room."""


def names_of(every: Sequence[Series]) -> dict[str, Series]:
    """A name for the file of each series' figure."""
    found: dict[str, Series] = {}
    for series in every:
        name, count = f"{series.application}-scaling", 1
        while name in found:
            count += 1
            name = f"{series.application}-scaling-{count}"
        found[name] = series
    return found


def draw(series: Series, ranks: int, page: Page | None = None) -> Figure:
    """A figure of a series, with predictions up to so many ranks."""
    page = page or Page()
    with apply_style(page):
        figure = empty_figure(page, 0.55 * page.width + 5)
        above, below = figure.subplots(2, 1, height_ratios=[3, 2])
        fits = [one for one in fits_of(series) if one.describes]
        room = page.points - 60
        speedups(above, series, fits, ranks, room)
        bars(below, series, room)
        one = " of one rank" if series.scaling == "weak" else ""
        facts = [f"{series.problem}{one}", series.name]
        return finish(figure, series.application, [*facts, *marks(series, fits)])


def speedups(axes: Axes, series: Series, fits: Sequence[Fit], ranks: int, room: float) -> None:
    """Points with bars from the minimum to the maximum repeat, laws, and the band of all laws."""
    points = [point for point in series.points if point.speedup]
    shown = sorted({1, *(point.ranks for point in series.points), *([ranks] if fits else [])})
    line = np.geomspace(1, max(shown), STEPS) if len(shown) > 1 else np.array([1.0, 2.0])
    axes.plot(line, line, color=muted(), linewidth=0.9, linestyle=DASHES[2], label="ideal")
    lowest = [1.0, *(point.speedup.low for point in points if point.speedup)]
    if fits:
        low, high = band(fits, line.tolist())
        axes.fill_between(line, low, high, color=color(1), alpha=0.15, linewidth=0)
        lowest.append(float(low.min()))
        span, middle = f"{digits(low[-1])} to {digits(high[-1])}", (low[-1] * high[-1]) ** 0.5
        axes.annotate(span, (line[-1], middle), (5, 0), textcoords="offset points", va="center")
    for index, one in enumerate(fits):
        value = one.speedup(line.tolist())[0]
        axes.plot(line, value, color=color(index + 1), linestyle=DASHES[1], label=one.law.name)
    for oversubscribed in (False, True):
        draw_points(
            axes,
            [point for point in points if point.oversubscribed is oversubscribed],
            oversubscribed,
        )
    rank_axis(axes, shown, room)
    axes.set_yscale("log", base=2)
    powers = range(int(np.floor(np.log2(min(lowest)))), int(np.ceil(np.log2(max(shown)))) + 1)
    axes.yaxis.set_major_locator(FixedLocator([2.0**power for power in powers]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_ylabel("Speed-up, median")
    axes.grid(True, which="major")
    legend_above(axes, axes.get_legend_handles_labels()[0], room)


def draw_points(axes: Axes, points: Sequence[Point], oversubscribed: bool) -> None:
    """Points of one kind: hollow where ranks share cores."""
    known = [(point.ranks, point.speedup) for point in points if point.speedup]
    if not known:
        return
    axes.errorbar(
        [at for at, _ in known],
        [spread.value for _, spread in known],
        yerr=[
            [max(0.0, spread.value - spread.low) for _, spread in known],
            [max(0.0, spread.high - spread.value) for _, spread in known],
        ],
        fmt="o",
        color=color(0),
        markerfacecolor=paper() if oversubscribed else color(0),
        elinewidth=1.0,
        capsize=2,
        capthick=0.8,
        zorder=3,
        label="measured, ranks share cores" if oversubscribed else "measured",
    )


def bars(axes: Axes, series: Series, room: float) -> None:
    """What the time of each number of ranks is made of, as parts of the whole."""
    points = series.points
    places = range(len(points))
    bottom = np.zeros(len(points))
    for index in series.phases:
        parts = np.array([100 * point.shares[index] for point in points])
        axes.bar(
            places,
            parts,
            bottom=bottom,
            width=0.62,
            color=color(index + 1),
            hatch=HATCHES[index % len(HATCHES)],
            edgecolor=paper(),
            linewidth=0.4,
            label=PHASES[index],
        )
        bottom = bottom + parts
    step = 1 + (len(points) - 1) // MAX_BARS
    axes.set_xticks(places[::step], [str(point.ranks) for point in points[::step]])
    axes.set_xlabel("Ranks")
    axes.set_ylim(0, 100)
    axes.yaxis.set_major_locator(MultipleLocator(25))
    axes.set_ylabel("Time of a rank (%)")
    legend_above(axes, axes.get_legend_handles_labels()[0], room)


def marks(series: Series, fits: Sequence[Fit]) -> list[str]:
    """What bars, bands and hollow points mean."""
    found = ["Bars: the minimum and the maximum repeat"]
    if any(point.oversubscribed for point in series.points):
        found.append("Hollow: more threads than cores, which no law is fitted to")
    if fits:
        on = ", ".join(str(point.ranks) for point in series.telling)
        found.append(f"Band: all laws, by the repeats' extremes, from {on} ranks")
    return found

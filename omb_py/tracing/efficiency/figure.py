"""Efficiencies as a figure: over ranks, or as bars where there is one number of ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from omb_py.analysis.plots.axes import rank_axis
from omb_py.analysis.plots.lines import WIDE
from omb_py.analysis.plots.style import (
    DASHES,
    Page,
    apply_style,
    color,
    empty_figure,
    finish,
    legend_above,
    line_style,
    muted,
)
from omb_py.core.text.words import count
from omb_py.tracing.efficiency.series import Point, Series, loads

NAME = "efficiency"

Factor = tuple[str, int, Callable[[Point], float | None]]
"""Name, number of its style, value."""

PARALLEL: Factor = ("Parallel efficiency", 1, lambda at: at.run.efficiency.parallel)
WHOLE: tuple[Factor, ...] = (
    ("Global efficiency", 0, lambda at: at.scaling.whole if at.scaling else None),
    PARALLEL,
    ("Computation scaling", 2, lambda at: at.scaling.computation if at.scaling else None),
)
PARTS: tuple[Factor, ...] = (
    PARALLEL,
    ("Load balance", 3, lambda at: at.run.efficiency.load_balance),
    ("Communication efficiency", 4, lambda at: at.run.efficiency.communication),
    ("Serialisation efficiency", 5, lambda at: at.run.efficiency.serialisation),
    ("Transfer efficiency", 6, lambda at: at.run.efficiency.transfer),
    (
        "Data loading efficiency",
        7,
        lambda at: at.run.efficiency.loading if at.run.times.total_loading else None,
    ),
)


def draw(series: Series, page: Page | None = None) -> Figure:
    """A figure of all runs."""
    page = page or Page()
    with apply_style(page):
        if not series.several:
            return bars(series, page)
        figure = empty_figure(page, 0.45 * page.width + 6)
        above, below = figure.subplots(2, 1, sharex=True)
        lines(above, series, WHOLE, page.points - 60)
        lines(below, series, PARTS, page.points - 60)
        above.set_xlabel("")
        first = series.points[0].run
        return finish(
            figure,
            "Efficiency",
            [
                f"{series.kind.capitalize()} scaling",
                "Above: global efficiency = parallel efficiency x computation scaling, "
                f"relative to {count(first.times.ranks, 'rank')}",
                "Below: parallel efficiency = load balance x serialisation x transfer efficiency"
                + (" x data loading efficiency" if loads(series) else ""),
                *facts(series),
            ],
        )


def lines(axes: Axes, series: Series, factors: Sequence[Factor], room: float) -> None:
    """A line for each factor that some run has."""
    highest = 1.0
    for name, number, value in factors:
        known = [(at.run.times.ranks, value(at)) for at in series.points]
        shown = [(ranks, 100 * part) for ranks, part in known if part is not None]
        if not shown:
            continue
        style = line_style(number)
        axes.plot(
            [ranks for ranks, _ in shown],
            [part for _, part in shown],
            color=style.color,
            marker=style.marker,
            linestyle=style.dash,
            label=name,
        )
        highest = max(highest, *(part / 100 for _, part in shown))
    axes.axhline(100, color=muted(), linewidth=0.9, linestyle=DASHES[2])
    rank_axis(axes, [point.run.times.ranks for point in series.points], room)
    in_percent(axes, highest)
    legend_above(axes, axes.get_legend_handles_labels()[0], room)


def bars(series: Series, page: Page) -> Figure:
    """The factors of one run, or of several on the same number of ranks."""
    figure = empty_figure(page, 0.35 * page.width + 2.5)
    axes = figure.subplots()
    width = 0.8 / len(series.points)
    known = [one for one in PARTS if any(one[2](point) is not None for point in series.points)]
    for index, point in enumerate(series.points):
        places = [at + width * (index - (len(series.points) - 1) / 2) for at in range(len(known))]
        parts = [100 * (value(point) or 0.0) for _, _, value in known]
        drawn = axes.bar(places, parts, 0.9 * width, color=color(index + 1), label=point.label)
        if len(series.points) <= 2:
            axes.bar_label(drawn, [f"{part:.0f} %" for part in parts], fontsize=7.5, padding=1)
    axes.set_xticks(range(len(known)), [name.replace(" ", "\n") for name, *_ in known])
    if page.width < WIDE:
        axes.tick_params(axis="x", rotation=90)
    in_percent(axes, 1.0)
    if len(series.points) > 1:
        legend_above(axes, axes.get_legend_handles_labels()[0], page.points - 60)
    ranks = count(series.points[0].run.times.ranks, "rank")
    return finish(figure, "Efficiency", [ranks, *facts(series)])


def in_percent(axes: Axes, highest: float) -> None:
    """Make y an axis of percent from 0."""
    axes.set_ylim(0, 100 * highest * 1.06)
    if highest <= 1.5:
        axes.yaxis.set_major_locator(MultipleLocator(20))
    axes.set_ylabel("Efficiency (%)")
    axes.grid(True, axis="y")


def facts(series: Series) -> list[str]:
    """Facts for below the figure."""
    commands = dict.fromkeys(point.run.command for point in series.points if point.run.command)
    found = [next(iter(commands))] if len(commands) == 1 else []
    if any(point.run.times.ideal is None for point in series.points):
        found.append("Serialisation and transfer are not known of runs without a timeline")
    return found

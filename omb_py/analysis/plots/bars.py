"""Bars: numbers that do not come with a message size, and what the start is made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan, nan

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from omb_py.analysis.plots.axes import Measure, quantity_text, value_axis
from omb_py.analysis.plots.charts import (
    INTERVAL,
    Pair,
    by_kind_of_line,
    facts,
    measure,
    number_points,
    points,
)
from omb_py.analysis.plots.groups import Group
from omb_py.analysis.plots.style import (
    HATCHES,
    Page,
    color,
    empty_figure,
    finish,
    muted,
    paper,
    text_width,
    wrap,
)
from omb_py.analysis.points import by, line_name
from omb_py.core.text.units import size_text

TOTAL = "total"

APART = 10
"""How many times the smallest the largest value may be on an axis from 0."""

MAX_BARS = 30
"""Bars of one figure."""


@dataclass(frozen=True)
class Bar:
    """A number, the parts that it is the sum of, and an interval (nan where not known)."""

    name: str
    value: float
    parts: tuple[tuple[str, float], ...]
    interval: Pair


@dataclass(frozen=True)
class BarChart:
    """One figure of bars; ``caption`` and ``marks`` are as a `Chart` has them."""

    name: str
    title: str
    measure: Measure
    bars: tuple[Bar, ...]
    caption: tuple[str, ...]
    marks: tuple[str, ...]


def bar_charts(
    rows: pd.DataFrame,
    lines: Sequence[str] | None = None,
    value: str = "auto",
    statistic: str = "auto",
) -> Iterator[BarChart]:
    """A figure for each benchmark, or part of one, that has no message sizes or only one."""
    for _, benchmark in by(rows, ["benchmark"]):
        parts = set(benchmark["part"].dropna())
        if len(parts) > 1 and TOTAL in parts and value in ("auto", "latency"):
            for group in number_points(benchmark, ("part",), lines, value, statistic):
                yield from stack(group)
            continue
        for _, members in by(benchmark, ["part"]):
            if members["bytes"].nunique() < 2:
                for group in number_points(members, ("bytes",), lines, value, statistic):
                    yield from single(group)


def stack(group: Group) -> Iterator[BarChart]:
    """Bars of parts that add up to a total."""
    bars = []
    for values, members in by(group.rows, list(group.lines)):
        parts = [
            (str(part), float(rows["value"].median()))
            for part, rows in members.groupby("part", sort=False)
        ]
        total = dict(parts).get(TOTAL, sum(value for _, value in parts))
        bars.append(
            Bar(
                line_name(values, group.lines) if values else group.benchmark,
                total,
                tuple((name, value) for name, value in parts if name != TOTAL),
                extremes(members[members["part"] == TOTAL]),
            )
        )
    counts = [len(members) for _, members in by(group.rows, [*group.lines, "part"])]
    runs = max(counts)
    meaning = "Means over the ranks"
    if runs > 1:
        meaning += f", of which bars are medians of up to {runs} runs"
    ends = "Whiskers: " + by_kind_of_line(
        "the minimum and maximum of the runs" if runs > 1 else "",
        "the minimum and maximum of the ranks" if min(counts) == 1 else "",
    )
    yield from bar_charts_of(group, "parts", bars, [meaning], ends)


def extremes(rows: pd.DataFrame) -> Pair:
    """The minimum and maximum rank of one run, or run of several."""
    if len(rows) == 1:
        return (float(rows["latency_min_us"].iloc[0]), float(rows["latency_max_us"].iloc[0]))
    return (rows["value"].min(), rows["value"].max()) if len(rows) else (nan, nan)


def single(group: Group) -> Iterator[BarChart]:
    """A bar for each line."""
    bars = []
    counts = []
    for values, members in by(group.rows, list(group.lines)):
        point = next(points(members.assign(place=0), "place"))
        if not isnan(point.interval[0]) or point.runs > 1:
            counts.append(point.runs)
        bars.append(
            Bar(
                line_name(values, group.lines) if values else group.benchmark,
                point.value,
                (),
                point.interval if point.runs == 1 else point.spread,
            )
        )
    sizes = group.rows["bytes"].dropna().unique()
    notes = [size_text(sizes[0])] if len(sizes) else []
    most = max(counts, default=1)
    if most > 1:
        kind = measure(group.rows).statistic or "value"
        notes.append(f"Medians of up to {most} runs' {kind}s")
    ends = "Whiskers: " + by_kind_of_line(
        "the minimum and maximum of the runs" if most > 1 else "",
        INTERVAL if 1 in counts else "",
    )
    yield from bar_charts_of(group, "bars", bars, notes, ends)


def bar_charts_of(
    group: Group, kind: str, bars: Sequence[Bar], notes: Sequence[str], ends: str
) -> Iterator[BarChart]:
    """Figures of `MAX_BARS` bars with what they have in common.

    ``ends`` is said if any has an interval.
    """
    part = [name for name in group.rows["part"].dropna().unique() if kind == "bars"]
    marks = (ends,) if any(not isnan(bar.interval[0]) for bar in bars) else ()
    for first in range(0, len(bars), MAX_BARS):
        yield BarChart(
            "-".join([group.name(kind), *(str(name).lower().replace(" ", "-") for name in part)]),
            ": ".join([group.benchmark, *part]),
            measure(group.rows),
            tuple(bars[first : first + MAX_BARS]),
            (*facts(group, ("bytes", "part"), group.lines), *notes),
            marks,
        )


def draw(chart: BarChart, binary: bool = False, page: Page | None = None) -> Figure:
    """A figure of bars, the first on top.

    Bars are as long as their values; where one is more than `APART` times another, which no bar
    from 0 would show, they are dots on a logarithmic axis.
    """
    page = page or Page()
    names = [wrap(bar.name, 7.5, 0.3 * page.points) for bar in chart.bars]
    lines = [max(1, len(name)) for name in names]
    figure = empty_figure(page, 1.2 + sum(0.26 + 0.34 * count for count in lines))
    axes = figure.add_subplot()
    values = [bar.value for bar in chart.bars]
    ends = [bar.value if isnan(bar.interval[1]) else bar.interval[1] for bar in chart.bars]
    parts = list(dict.fromkeys(name for bar in chart.bars for name, _ in bar.parts))
    dots = not parts and min(values) > 0 and max(values) > APART * min(values)
    texts = [quantity_text(bar.value, chart.measure.unit, binary) for bar in chart.bars]
    numbers = [number for bar in chart.bars for number in (bar.value, *bar.interval)]
    value_axis(axes.xaxis, numbers if dots else [max(*values, *ends)], chart.measure, binary)
    handles: dict[str, Artist] = {}
    for row, bar in enumerate(chart.bars):
        if dots:
            axes.plot(bar.value, row, "o", color=color(1), markersize=4.5, zorder=3)
        else:
            draw_parts(axes, row, bar, parts, handles)
        if not isnan(bar.interval[0]):
            low, high = bar.interval
            axes.errorbar(
                bar.value,
                row,
                xerr=[[max(0.0, bar.value - low)], [max(0.0, high - bar.value)]],
                fmt="none",
                ecolor=color(1) if dots else muted(),
                elinewidth=1.0,
                capsize=2,
            )
        axes.annotate(
            texts[row],
            (max(bar.value, ends[row]), row),
            (4 + 2 * dots, 0),
            textcoords="offset points",
            va="center",
            fontsize=7.5,
        )
    axes.set_yticks(range(len(chart.bars)), ["\n".join(name) for name in names])
    axes.set_ylim(len(chart.bars) - 0.4, -0.6)
    make_room(axes, max(text_width(text, 7.5) for text in texts) + 8, 0.6 * page.points)
    axes.tick_params(axis="y", length=0)
    axes.grid(True, axis="x")
    return finish(figure, chart.title, [*chart.caption, *chart.marks], list(handles.values()))


def draw_parts(
    axes: Axes, row: int, bar: Bar, parts: Sequence[str], handles: dict[str, Artist]
) -> None:
    """A bar, or the parts that it is made of behind each other, each of which has a handle."""
    left = 0.0
    for name, value in bar.parts or (("", bar.value),):
        number = parts.index(name) if bar.parts else 1
        (drawn,) = axes.barh(
            row,
            value,
            left=left,
            height=0.62,
            color=color(number),
            hatch=HATCHES[number % len(HATCHES)] if bar.parts else None,
            edgecolor=paper(),
            linewidth=0.4,
        )
        if name:
            drawn.set_label(name)
            handles.setdefault(name, drawn)
        left += value


def make_room(axes: Axes, points: float, room: float) -> None:
    """Let an axis of ``room`` points end so far right of its data that a text has room."""
    share = 1 / (1 - min(0.6, points / room))
    low, high = axes.get_xlim()
    if axes.get_xscale() == "log":
        axes.set_xlim(low, low * (high / low) ** share)
    else:
        axes.set_xlim(low, low + (high - low) * share)

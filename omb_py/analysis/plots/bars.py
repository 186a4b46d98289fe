"""Bars: numbers that do not come with a message size, and what the start is made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan, nan

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from omb_py.analysis.plots.charts import (
    INTERVAL,
    Pair,
    by_kind_of_line,
    facts,
    number_points,
    points,
    statistics,
)
from omb_py.analysis.plots.groups import Group, by, line_name
from omb_py.analysis.plots.style import COLORS, caption, empty_figure, tick_text
from omb_py.core.text.units import size_text, value_text

HATCHES = ("", "///", "\\\\\\", "---", "|||", "xx", "++")
TOTAL = "total"


@dataclass(frozen=True)
class Bar:
    """A number, the parts that it is the sum of, and an interval (nan where not known)."""

    name: str
    value: float
    parts: tuple[tuple[str, float], ...]
    interval: Pair


@dataclass(frozen=True)
class BarChart:
    """One figure of bars, in ``unit``; ``caption`` and ``marks`` are as a `Chart` has them."""

    name: str
    title: str
    words: str
    unit: str
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
                yield stack(group)
            continue
        for _, members in by(benchmark, ["part"]):
            if members["bytes"].nunique() < 2:
                for group in number_points(members, ("bytes",), lines, value, statistic):
                    yield single(group)


def stack(group: Group) -> BarChart:
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
    meaning = "Means over the ranks" if runs == 1 else f"Medians of up to {runs} runs"
    ends = "Whiskers: " + by_kind_of_line(
        "the minimum and maximum of the runs" if runs > 1 else "",
        "the minimum and maximum of the ranks" if min(counts) == 1 else "",
    )
    return bar_chart(group, "parts", bars, [meaning], ends)


def extremes(rows: pd.DataFrame) -> Pair:
    """The minimum and maximum rank of one run, or run of several."""
    if len(rows) == 1:
        return (float(rows["latency_min_us"].iloc[0]), float(rows["latency_max_us"].iloc[0]))
    return (rows["value"].min(), rows["value"].max()) if len(rows) else (nan, nan)


def single(group: Group) -> BarChart:
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
    kind = statistics(group.rows)
    most = max(counts, default=1)
    notes.append(kind.capitalize() if most == 1 else f"Medians of the {kind} of up to {most} runs")
    ends = "Whiskers: " + by_kind_of_line(
        "the minimum and maximum of the runs" if most > 1 else "",
        INTERVAL if 1 in counts else "",
    )
    return bar_chart(group, "bars", bars, notes, ends)


def bar_chart(
    group: Group, kind: str, bars: Sequence[Bar], notes: Sequence[str], ends: str
) -> BarChart:
    """Bars with what their group has in common; ``ends`` is said if any has an interval."""
    part = [name for name in group.rows["part"].dropna().unique() if kind == "bars"]
    first = group.rows.iloc[0]
    return BarChart(
        "-".join([group.name(kind), *(str(name).lower().replace(" ", "-") for name in part)]),
        ": ".join([group.title, *part]),
        str(first["words"]),
        str(first["unit"]),
        tuple(bars),
        (*facts(group, ("bytes", "part"), group.lines), *notes),
        (ends,) if any(not isnan(bar.interval[0]) for bar in bars) else (),
    )


def draw(chart: BarChart, binary: bool = False) -> Figure:
    """A figure of bars, the first on top."""
    figure = empty_figure(6.4, 1.7 + 0.42 * len(chart.bars) + (0.3 if chart.bars[0].parts else 0))
    axes = figure.add_subplot()
    names = list(dict.fromkeys(name for bar in chart.bars for name, _ in bar.parts))
    most = max(
        max(bar.value, bar.interval[1]) if bar.interval[1] > 0 else bar.value for bar in chart.bars
    )
    for row, bar in enumerate(chart.bars):
        left = 0.0
        for name, value in bar.parts or (("", bar.value),):
            index = names.index(name) if bar.parts else 1
            axes.barh(
                row,
                value,
                left=left,
                height=0.62,
                color=COLORS[index % len(COLORS)],
                hatch=HATCHES[index % len(HATCHES)] if bar.parts else None,
                edgecolor="white",
                linewidth=0.5,
                label=name if name and row == first_with(chart.bars, name) else "_",
            )
            left += value
        end = bar.value
        if not isnan(bar.interval[0]):
            low, high = bar.interval
            end = max(end, high)
            axes.errorbar(
                bar.value,
                row,
                xerr=[[max(0.0, bar.value - low)], [max(0.0, high - bar.value)]],
                fmt="none",
                ecolor="#777777",
                elinewidth=1.2,
                capsize=3,
            )
        text = (
            f" {value_text(bar.value, chart.unit)}" if chart.unit != "%" else f" {bar.value:.0f} %"
        )
        axes.text(end + 0.005 * most, row, text, va="center", fontsize=9)
    axes.set_yticks(range(len(chart.bars)), [bar.name for bar in chart.bars])
    axes.set_ylim(len(chart.bars) - 0.4, -0.6)
    axes.set_xlim(0, most * 1.22)
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(
        FuncFormatter(lambda value, _: tick_text(value, chart.unit, binary))
    )
    axes.set_xlabel("Time" if names else chart.words)
    axes.set_title(chart.title, loc="left")
    axes.grid(True, axis="x")
    if names:
        figure.legend(loc="outside right upper", handlelength=1.6, handleheight=1.2)
    caption(figure, [*chart.caption, *chart.marks])
    return figure


def first_with(bars: Sequence[Bar], name: str) -> int:
    """The first bar that has a part of a name."""
    return next(row for row, bar in enumerate(bars) if name in dict(bar.parts))

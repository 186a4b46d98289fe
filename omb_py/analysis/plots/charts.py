"""Lines over message sizes or numbers of ranks: which numbers of rows they show, undrawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import isnan, nan
from typing import Literal

import numpy as np
import pandas as pd

from omb_py.analysis.bounds import Bounds, bound_of
from omb_py.analysis.plots.axes import Measure
from omb_py.analysis.plots.groups import (
    MAX_PANELS,
    OF_FILES,
    Group,
    benchmarks,
    group_rows,
    panel_columns,
)
from omb_py.analysis.plots.style import MAX_LINES, style_numbers
from omb_py.analysis.points import GROWING, along, by, caption_part, common, line_name
from omb_py.analysis.values import measured
from omb_py.core.errors import UsageError

NUMBERS = ("value", "low", "high", "spread_low", "spread_high")

Pair = tuple[float, float]

CHOSEN_SIZES = 5
"""Message sizes that a figure over ranks shows unless they are named."""


@dataclass(frozen=True)
class Point:
    """A value with the 95 % interval of the median, and how far samples or runs spread.

    Intervals are a pair of nan where they are not known. ``runs`` of more than one make ``value``
    their median and ``spread`` their minimum and maximum.
    """

    x: float
    value: float
    interval: Pair
    spread: Pair
    runs: int


@dataclass(frozen=True)
class Line:
    """Points in the order of x; ``style`` is the number of its colour, marker and dashes."""

    name: str
    points: tuple[Point, ...]
    style: int


@dataclass(frozen=True)
class Panel:
    """Lines that share axes, `MAX_LINES` at most; ``title`` is empty where there is one panel."""

    title: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class BoundLine:
    """A bound in words, and its value at each message size."""

    words: str
    points: tuple[Pair, ...]


@dataclass(frozen=True)
class Chart:
    """One figure of lines. ``x`` is ``bytes`` or ``ranks``; ``measure`` says what y is.

    ``caption`` are sentences about the data, ``marks`` about what bars and bands mean. ``bounds``
    are what the host can do at most.
    """

    name: str
    title: str
    x: Literal["bytes", "ranks"]
    measure: Measure
    panels: tuple[Panel, ...]
    caption: tuple[str, ...]
    marks: tuple[str, ...]
    bounds: tuple[BoundLine, ...] = ()

    @property
    def lines(self) -> tuple[Line, ...]:
        """The lines of all panels."""
        return tuple(line for panel in self.panels for line in panel.lines)


def size_charts(
    rows: pd.DataFrame,
    lines: Sequence[str] | None = None,
    value: str = "auto",
    statistic: str = "auto",
    bounds: Bounds | None = None,
) -> Iterator[Chart]:
    """A chart over message sizes for each benchmark that has at least two, with its ``bounds``."""
    sized = rows[rows["bytes"].notna() & rows["part"].isna()]
    for group in number_points(sized, ("bytes",), lines, value, statistic):
        if group.rows["bytes"].nunique() > 1:
            lines_of_bounds = () if bounds is None else bound_lines(group.rows, bounds)
            for chart in charts(group, group.name(), ("bytes",)):
                yield replace(chart, bounds=lines_of_bounds)


def bound_lines(rows: pd.DataFrame, bounds: Bounds) -> tuple[BoundLine, ...]:
    """The bounds of rows whose ``value`` they are of, by message size."""
    found: dict[str, dict[float, float]] = {}
    for row in rows.to_dict("records"):
        known = bound_of(bounds, row)
        if known is not None and row["unit"] == ("us" if known.is_time else "MB/s"):
            found.setdefault(known.words, {})[float(row["bytes"])] = known.value
    return tuple(
        BoundLine(f"bound of {bounds.host}: {words}", tuple(sorted(points.items())))
        for words, points in found.items()
    )


def rank_charts(
    rows: pd.DataFrame,
    lines: Sequence[str] | None = None,
    value: str = "auto",
    statistic: str = "auto",
    sizes: bool = False,
) -> Iterator[Chart]:
    """A chart over numbers of ranks for each benchmark that has at least two of them.

    Lines are those that `size_charts` has, each for a few message sizes, or for all with ``sizes``.
    """
    counted = rows[rows["ranks"].notna() & rows["part"].isna()]
    for _, part in benchmarks(counted, (), lines):
        axes = along(part, "ranks")
        if part["ranks"].nunique() < 2:
            continue
        sized = bool(part["bytes"].notna().any())
        if sized and not sizes:
            part = part[part["bytes"].isin(some_sizes(part))]
        wanted = lines if lines is None or not sized else [*lines, "bytes"]
        for group in number_points(part, axes, wanted, value, statistic):
            if group.rows["ranks"].nunique() > 1:
                yield from charts(group, group.name("ranks"), axes, ["bytes"] if sized else [])


def number_points(
    rows: pd.DataFrame,
    axes: Sequence[str],
    lines: Sequence[str] | None,
    value: str,
    statistic: str,
) -> Iterator[Group]:
    """Groups of rows with their numbers; benchmarks without such numbers are left out.

    Each benchmark by itself decides between medians and means.
    """
    for _, part in benchmarks(rows, axes, lines):
        try:
            found = measured(part, value, statistic)
        except UsageError:
            continue
        yield from group_rows(found, axes, lines)


def some_sizes(rows: pd.DataFrame) -> list[int]:
    """A few message sizes that all numbers of ranks have, the minimum and the maximum with them."""
    counts = rows.groupby("bytes")["ranks"].nunique()
    sizes = sorted(counts[counts == counts.max()].index)
    if len(sizes) <= CHOSEN_SIZES:
        return sizes
    last = len(sizes) - 1
    return [sizes[round(n * last / (CHOSEN_SIZES - 1))] for n in range(CHOSEN_SIZES)]


def charts(
    group: Group, name: str, axes: Sequence[str], also: Sequence[str] = ()
) -> Iterator[Chart]:
    """A group's lines along the first of ``axes``; ``also`` are columns that tell lines apart.

    A chart for each `MAX_PANELS` panels.
    """
    columns = [*(column for column in group.lines if column not in also), *also]
    found = panels(group, axes[0], columns)
    for first in range(0, len(found), MAX_PANELS):
        shown = found[first : first + MAX_PANELS]
        lines = [line for panel in shown for line in panel.lines]
        yield Chart(
            name,
            group.benchmark,
            "bytes" if axes[0] == "bytes" else "ranks",
            measure(group.rows),
            tuple(shown),
            (*facts(group, axes, columns), repetitions(group.rows, lines)),
            tuple(mark_points(shown)),
        )


def panels(group: Group, x: str, columns: Sequence[str]) -> list[Panel]:
    """The lines of a group, in panels that each have `MAX_LINES` of them at most.

    A line has the same style in all panels where there are styles enough.
    """
    apart = panel_columns(group.rows, columns)
    others = [name for name in columns if name not in apart]
    found: list[tuple[str, dict[str, tuple[Point, ...]]]] = []
    for values, members in by(group.rows, list(apart)):
        lines = {
            line_name(key, others) if others else group.benchmark: tuple(points(rows, x))
            for key, rows in by(members, others)
        }
        title = line_name(values, apart) if apart else ""
        parts = -(-len(lines) // MAX_LINES)
        names = np.array_split(np.array(list(lines), dtype=object), parts)
        found += [(title, {name: lines[name] for name in some}) for some in names]
    every = list(dict.fromkeys(name for _, lines in found for name in lines))
    shared = style_numbers(every) if len(every) <= MAX_LINES else None
    return [
        Panel(
            title,
            tuple(
                Line(name, line, (shared or style_numbers(list(lines)))[name])
                for name, line in lines.items()
            ),
        )
        for title, lines in found
    ]


def measure(rows: pd.DataFrame) -> Measure:
    """What the values of rows are."""
    first = rows.iloc[0]
    statistic = " or ".join(sorted(set(rows["statistic"]) - {""}))
    return Measure(str(first["words"]), str(first["unit"]), statistic)


def points(rows: pd.DataFrame, x: str) -> Iterator[Point]:
    """The points of one line; several rows of one x are runs of the same thing."""
    for where, members in rows.groupby(x, sort=True):
        if len(members) == 1:
            row = members.iloc[0]
            interval = (row["low"], row["high"])
            spread = (row["spread_low"], row["spread_high"])
            yield Point(float(where), float(row["value"]), interval, spread, 1)
        else:
            values = members["value"]
            spread = (values.min(), values.max())
            yield Point(float(where), float(values.median()), (nan, nan), spread, len(members))


def facts(group: Group, axes: Sequence[str], columns: Sequence[str]) -> Iterator[str]:
    """What does not vary within a figure, what grows along its axis, and what units mean."""
    yield " · ".join([*group.facts, *common(group.rows, {*axes, *columns, *group.values})])
    for name in (name for name in GROWING if name in axes):
        counts = group.rows[name].dropna()
        if counts.nunique() > 1:
            yield f"{counts.min()} to {caption_part(name, counts.max())}"
    for file in (name for name in ("file", "source") if name in columns):
        for name in OF_FILES:
            if name not in columns and group.rows[name].nunique() > 1:
                yield "; ".join(
                    f"{where}: {caption_part(name, value)}"
                    for (where, value), _ in by(group.rows, [file, name])
                )


def units_note(shown: Measure, binary: bool) -> Iterator[str]:
    """What a megabyte is."""
    if shown.unit == "MB/s":
        yield "MiB are 2²⁰ bytes" if binary else "MB are 10⁶ bytes"


def repetitions(rows: pd.DataFrame, lines: Sequence[Line]) -> str:
    """What points are of several runs; empty where no line has several."""
    most = max(point.runs for line in lines for point in line.points)
    kind = measure(rows).statistic
    return f"Points are medians of up to {most} runs' {kind or 'value'}s" if most > 1 else ""


def mark_points(panels: Sequence[Panel]) -> Iterator[str]:
    """What bars and bands are, where there are any."""
    every = [point for panel in panels for line in panel.lines for point in line.points]
    runs = any(point.runs > 1 for point in every)
    shaded = [
        point
        for panel in panels
        if shade(panel.lines)
        for line in panel.lines
        for point in line.points
        if point.runs == 1
    ]
    of_samples = any(not isnan(point.spread[0]) for point in shaded)
    if spans := by_kind_of_line(
        "span the minimum to the maximum of the runs" if runs else "",
        "from the smallest sample to the 95th percentile" if of_samples else "",
    ):
        bands = any(shade(panel.lines) for panel in panels)
        what = (
            "Bands"
            if bands
            else f"Thin bars{AS_BANDS if any(is_long(at.spread) for at in every) else ''}"
        )
        yield f"{what} {spans}" if runs else f"{what}: {spans}"
    if of_samples and any(isnan(point.spread[0]) for point in shaded):
        yield "No band where there are no samples, or a mean is outside it"
    if any(not isnan(point.interval[0]) for point in every):
        long = any(is_long(point.interval) for point in every)
        yield f"Bars{AS_BANDS if long else ''}: {INTERVAL}{' of a single run' if runs else ''}"


def is_long(interval: Pair) -> bool:
    """Whether an interval spans more than a decade, so that bars of it would hide other lines."""
    return interval[1] > 10 * interval[0]


AS_BANDS = ", or dark bands where they are longer than a decade"
INTERVAL = "95\N{NO-BREAK SPACE}% interval of the median"


def by_kind_of_line(of_runs: str, of_one: str) -> str:
    """What marks mean where there are several runs and where there is one; empty for what is not
    there.

    >>> by_kind_of_line("minimum to maximum of the runs", "minimum to maximum of the ranks")
    'minimum to maximum of the runs; of single runs, minimum to maximum of the ranks'
    """
    if of_runs and of_one:
        return f"{of_runs}; of single runs, {of_one}"
    return of_runs or of_one


def shade(lines: Sequence[Line]) -> bool:
    """Whether lines are few enough for bands that can be told apart."""
    return len(lines) <= 4

"""Lines over message sizes, over numbers of ranks, and of speed-ups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from omb_py.analysis.charts.groups import Group, Request, benchmarks, groups, run_facts
from omb_py.analysis.charts.spec import (
    GAP,
    MAX_LINES,
    MAX_PANELS,
    TITLE_ROOM,
    Chart,
    ChartLayout,
    Mark,
    Measure,
    Page,
    along_axis,
    heading,
    inline,
    layered,
    legend_view,
    own,
    style_numbers,
    styled,
    tips,
    together,
    value_axis,
)
from omb_py.analysis.points import along_ranks, by
from omb_py.analysis.values import ENDS

CHOSEN_SIZES = 5
"""Message sizes that a figure over ranks shows unless they are named."""

MAX_BANDS = 4
"""Lines of a panel whose spreads are bands; those of more would hide each other."""

MIN_JOINED = 4
"""Fewest message sizes that a line joins: fewer may be many octaves apart, and the values between
them are unknown."""

PANELS_FIRST = ("ranks", "mpi")
"""Columns whose values become panels before those of others, where lines are too many for one."""

INTERVAL = "95\N{NO-BREAK SPACE}% interval of the median"

NO_LINES = pd.DataFrame(columns=["panel", "line", "x", "value", "style"])
"""No ideal: the empty table of a chart without such lines."""


def size_charts(rows: pd.DataFrame, request: Request) -> Iterator[Chart]:
    """Yield a chart over message sizes for each benchmark that has at least two."""
    sized = rows[rows["bytes"].notna() & rows["part"].isna()]
    for group in groups(sized, ("bytes",), request):
        if group.rows["bytes"].nunique() > 1:
            yield from charts(group, group.name(), ("bytes",))


def rank_charts(rows: pd.DataFrame, request: Request) -> Iterator[Chart]:
    """Yield a chart over numbers of ranks for each benchmark that has at least two of them.

    Lines are those that `size_charts` has, each for a few message sizes unless sizes are named.
    """
    counted = rows[rows["ranks"].notna() & rows["part"].isna()]
    for _, part in benchmarks(counted, (), request.lines):
        axes = along_ranks(part)
        if part["ranks"].nunique() < 2:
            continue
        sized = ["bytes"] * bool(part["bytes"].notna().any())
        if sized and not request.sizes:  # a few that all numbers of ranks have, with the extremes
            counts = part.groupby("bytes")["ranks"].nunique()
            there = np.sort(counts.index[counts == counts.max()].to_numpy(float))
            places = np.linspace(0, len(there) - 1, min(CHOSEN_SIZES, len(there))).round()
            part = part[part["bytes"].isin(there[places.astype(int)])]
        wanted = None if request.lines is None else (*request.lines, *sized)
        for group in groups(part, axes, replace(request, lines=wanted)):
            if group.rows["ranks"].nunique() > 1:
                yield from charts(group, group.name("ranks"), axes, sized)


def charts(
    group: Group, name: str, axes: Sequence[str], also: Sequence[str] = ()
) -> Iterator[Chart]:
    """Yield charts of a group's lines along the first of ``axes``, one for each `MAX_PANELS`
    panels.

    ``also`` are more columns that distinguish lines.
    """
    columns = [*(column for column in group.lines if column not in also), *also]
    apart = panel_columns(group.rows, columns)
    x, others = axes[0], [column for column in columns if column not in apart]
    points = group.points(others, [x], apart)
    points = points.assign(
        x=points[x], order=points.groupby(["title", "line"], sort=False).ngroup()
    )
    every = in_pieces(in_panels(points.sort_values(["order", "x"])), x)
    for first in range(0, int(every["panel"].max()) + 1, MAX_PANELS):
        data = every[every["panel"].between(first, first + MAX_PANELS - 1)]
        facts = (*group.facts(axes, columns), *marks(data, group.measure.statistic))
        layout = partial(lines, data, x, group.measure, NO_LINES)
        along = (x, group.measure)
        yield Chart(name, group.benchmark, facts, data, layout, along, group.benchmark)


def panel_columns(rows: pd.DataFrame, columns: Sequence[str]) -> tuple[str, ...]:
    """Return the columns whose values become panels, so that these have `MAX_LINES` lines where
    they can.

    None if all lines go into one panel; `PANELS_FIRST`, then those of the fewest values.
    """
    rows = rows[list(columns)].drop_duplicates()
    places = {name: place for place, name in enumerate(PANELS_FIRST)}
    others = sorted(columns, key=lambda name: (places.get(name, 9), rows[name].nunique()))
    chosen: list[str] = []
    while len(others) > 1 and max(len(part) for _, part in by(rows, chosen)) > MAX_LINES:
        chosen.append(others.pop(0))
    return tuple(name for name in columns if name in chosen)


def in_panels(rows: pd.DataFrame) -> pd.DataFrame:
    """Return points of lines with the ``panel`` of their ``title`` and the ``style`` of their line.

    A panel has `MAX_LINES` lines at most. A line has the same style in all panels if there are
    enough styles. ``band`` is true if spreads are bands; else spreads of samples are left out,
    because they would be as long as bars of runs.
    """
    found: list[pd.DataFrame] = []
    for _, part in rows.groupby("title", sort=False):
        names = part["line"].drop_duplicates()
        for few in np.array_split(names.to_numpy(), -(-len(names) // MAX_LINES)):
            members = part[part["line"].isin(few)]
            styles = members["line"].map(style_numbers(few))
            band = len(few) <= MAX_BANDS
            found.append(members.assign(panel=len(found), style=styles, band=band))
    data = pd.concat(found, ignore_index=True)
    names = data["line"].drop_duplicates()
    if len(names) <= MAX_LINES:
        data["style"] = data["line"].map(style_numbers(names))
    hidden = ~data["band"] & (data["runs"] == 1)
    data[list(ENDS[2:])] = data[list(ENDS[2:])].mask(hidden)
    return data


def in_pieces(data: pd.DataFrame, x: str, known: pd.Series | None = None) -> pd.DataFrame:
    """Return points of lines, which follow each other along ``x``, with their pieces.

    A line joins the points of one ``piece``, a band those of one ``area``; ``spans`` is true in an
    area of several points. Both end where a point is not ``known``, an area also where a spread is
    missing. 0 bytes, and message sizes of a line that has fewer than `MIN_JOINED`, are pieces of
    their own.
    """
    line = [data["panel"], data["line"]]
    alone = pd.Series(False, data.index) if known is None else ~known
    if x == "bytes":
        sizes = data["x"].where(data["x"] > 0)
        alone |= sizes.isna() | (sizes.groupby(line).transform("nunique") < MIN_JOINED)
    piece = numbers(alone, *line)
    area = numbers(alone | data["spread_low"].isna(), piece)
    spans = data["band"] & (area.groupby(area).transform("size") > 1)
    return data.assign(piece=piece, area=area, spans=spans)


def numbers(alone: pd.Series, *columns: pd.Series) -> pd.Series:
    """Return a number for each row, the same as the row before if neither is alone and ``columns``
    are equal."""
    begins = alone | alone.shift(fill_value=True)
    for column in columns:
        begins |= column != column.shift()
    return begins.cumsum()


def marks(data: pd.DataFrame, statistic: str) -> list[str]:
    """Return sentences that explain points, bars and bands, as far as the chart has them."""
    alone = data["runs"] == 1
    samples = alone & data["spread_low"].notna()
    none = samples.any() and (alone & data["band"] & data["spread_low"].isna()).any()
    found = [
        *run_facts(
            data["runs"],
            statistic,
            "Bands" if data["spans"].any() else "Thin bars",
            "the smallest sample to the 95th percentile" * bool(samples.any()),
        ),
        "No band if there are no samples, or a mean is outside it" * bool(none),
    ]
    if data["low"].notna().any():
        found.append(f"Bars: {INTERVAL}" + " of a single run" * (not alone.all()))
    if data["crowded"].any():
        found.append("Hollow marks: ranks shared cores")
    return [fact for fact in found if fact]


def lines(
    data: pd.DataFrame,
    x: str,
    measure: Measure,
    beside: pd.DataFrame,
    page: Page,
    left: float = 0.0,
) -> ChartLayout:
    """Lay out panels of lines that share their axes, under one legend if all share their styles.

    Points have pieces (`in_pieces`); hollow ones are ``crowded``. ``beside`` are dotted lines, or
    dots if no line is joined; ``left`` is the width in points that other views need next to
    panels.
    """
    parts = [part for _, part in data.groupby("panel")]
    columns = page.columns(len(parts))
    axis = value_axis([*data[["value", *ENDS]].to_numpy(float).flat, *beside["value"]], measure)
    gap, left = GAP + max(5.0, left), max(left, axis.left)
    width = page.panel(columns, left, gap)
    height = max(100.0, width * (0.62 if len(parts) == 1 and not page.is_wide else 0.46))
    every = styles_of(data, beside)
    shared = len(data[["line", "style"]].drop_duplicates()) == len(set(every.values()) - {-1})
    joined = bool(data["piece"].duplicated().any())
    mark: Mark = "line" if joined else "point"
    views = []
    for place, part in enumerate(parts):
        below = {} if place + columns >= len(parts) else {"labels": False, "title": None}
        across = along_axis(x, [*data["x"], *beside["x"]], width, **below)
        side = axis.axis(left)
        if place % columns:
            side = axis.axis(TITLE_ROOM + 4, labels=False, title=None)
        up = partial(alt.Y, scale=axis.scale, axis=side)
        others = beside[beside["panel"] == part["panel"].iloc[0]]
        title = heading(str(part["title"].iloc[0]), width)
        layers = panel(part, across, up, others, page, joined)
        view = layered(layers, width=width, height=height, **title)
        if not shared:
            legend = legend_view(styles_of(part, others), page, room=width, mark=mark)
            view = together("vconcat", [legend, view], spacing=4)
        views.append(view)
    return ChartLayout(views, left, columns, every if shared and len(every) > 1 else None, mark)


def styles_of(*rows: pd.DataFrame) -> dict[str, int]:
    """Return styles of lines by their names."""
    return {
        str(line): int(style)
        for part in rows
        for line, style in part.drop_duplicates("line")[["line", "style"]].itertuples(index=False)
    }


def panel(
    data: pd.DataFrame, x: alt.X, y: Any, beside: pd.DataFrame, page: Page, joined: bool = True
) -> list[Any]:
    """Return layers of lines: bands of the spread or else bars, intervals, lines, and points.

    Lines ``beside`` are dots unless ``joined``.
    """
    shown = styled(data, page)
    color, dash = own(alt.Color, "color"), own(alt.StrokeDash, "dash")
    base = alt.Chart(inline(shown)).encode(x, y("value:Q"), color=color)
    spread = base.transform_filter("isValid(datum.spread_low)")
    spread = spread.encode(y("spread_low:Q"), y2=alt.Y2("spread_high:Q"))
    bars = spread.transform_filter("!datum.spans").mark_rule(strokeWidth=0.6, opacity=0.6)
    layers: list[Any] = [bars]
    if data["spans"].any():
        area = spread.transform_filter("datum.spans").encode(detail=alt.Detail("area:N"))
        layers.append(area.mark_area(opacity=0.15))
    known = base.transform_filter("isValid(datum.low)")
    layers.append(known.mark_rule(strokeWidth=0.8).encode(y("low:Q"), y2=alt.Y2("high:Q")))
    ends = known.mark_tick(size=3, thickness=0.6)
    layers += [ends.encode(y("low:Q")), ends.encode(y("high:Q"))]
    if joined:
        line = base.mark_line(strokeWidth=1.1)
        layers.append(line.encode(strokeDash=dash, detail=alt.Detail("piece:N")))
    if len(beside):
        others = alt.Chart(inline(styled(beside, page))).encode(x, y("value:Q"), color=color)
        dotted = others.mark_line(strokeWidth=0.9).encode(strokeDash=dash, detail="line:N")
        layers.append(dotted if joined else others.mark_point(filled=True, size=5, opacity=1))
    shape, about = own(alt.Shape, "shape"), tips("line", "text", "runs")
    points = base.mark_point(filled=True, size=12, opacity=1).encode(shape, tooltip=about)
    paper = page.tint("paper")
    full = points.transform_filter("!datum.crowded")
    layers.append(full.encode(alt.StrokeValue(paper), alt.StrokeWidthValue(0.3)))
    hollow = base.transform_filter("datum.crowded").mark_point(size=14, opacity=1, strokeWidth=1)
    layers.append(hollow.encode(shape, alt.FillValue(paper), tooltip=about))
    return layers

"""Lines over message sizes, over numbers of ranks, and of speed-ups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from omb_py.analysis.bounds import Bounds, bound_of
from omb_py.analysis.charts.axes import TITLE_ROOM, Measure, along_axis, value_axis
from omb_py.analysis.charts.groups import (
    MAX_PANELS,
    Choice,
    Group,
    benchmarks,
    groups,
    panel_columns,
)
from omb_py.analysis.charts.spec import (
    GAP,
    MAX_LINES,
    Chart,
    Layout,
    Page,
    dashes,
    heading,
    inline,
    legend_view,
    look,
    shades,
    style_numbers,
    together,
)
from omb_py.analysis.points import ENDS, along, by, line_name, points_of

CHOSEN_SIZES = 5
"""Message sizes that a figure over ranks shows unless they are named."""

INTERVAL = "95\N{NO-BREAK SPACE}% interval of the median"


def size_charts(
    rows: pd.DataFrame, choice: Choice, bounds: Bounds | None = None
) -> Iterator[Chart]:
    """A chart over message sizes for each benchmark that has at least two, with its ``bounds``."""
    sized = rows[rows["bytes"].notna() & rows["part"].isna()]
    for group in groups(sized, ("bytes",), choice):
        if group.rows["bytes"].nunique() > 1:
            known = None if bounds is None else bound_lines(group.rows, bounds)
            yield from charts(group, group.name(), ("bytes",), bounds=known)


def bound_lines(rows: pd.DataFrame, bounds: Bounds) -> pd.DataFrame:
    """The bounds of rows whose ``value`` they are of, by message size."""
    found = {}
    for row in rows.to_dict("records"):
        known = bound_of(bounds, row)
        if known is not None and row["unit"] == "MB/s":
            name = f"bound of {bounds.host}: {known.words}"
            found[name, float(row["bytes"])] = known.value
    rows_of = [(name, x, value) for (name, x), value in sorted(found.items())]
    return pd.DataFrame(rows_of, columns=["line", "x", "value"])


def rank_charts(rows: pd.DataFrame, choice: Choice, sizes: bool = False) -> Iterator[Chart]:
    """A chart over numbers of ranks for each benchmark that has at least two of them.

    Lines are those that `size_charts` has, each for a few message sizes, or for all with ``sizes``.
    """
    counted = rows[rows["ranks"].notna() & rows["part"].isna()]
    for _, part in benchmarks(counted, (), choice.lines):
        axes = along(part, "ranks")
        if part["ranks"].nunique() < 2:
            continue
        sized = ["bytes"] * bool(part["bytes"].notna().any())
        if sized and not sizes:
            part = part[part["bytes"].isin(some_sizes(part))]
        wanted = None if choice.lines is None else (*choice.lines, *sized)
        for group in groups(part, axes, replace(choice, lines=wanted)):
            if group.rows["ranks"].nunique() > 1:
                yield from charts(group, group.name("ranks"), axes, sized)


def some_sizes(rows: pd.DataFrame) -> list[int]:
    """A few message sizes that all numbers of ranks have, the minimum and the maximum with them."""
    counts = rows.groupby("bytes")["ranks"].nunique()
    sizes = sorted(counts[counts == counts.max()].index)
    places = np.linspace(0, len(sizes) - 1, min(CHOSEN_SIZES, len(sizes))).round().astype(int)
    return [sizes[place] for place in places]


def charts(
    group: Group,
    name: str,
    axes: Sequence[str],
    also: Sequence[str] = (),
    bounds: pd.DataFrame | None = None,
) -> Iterator[Chart]:
    """A group's lines along the first of ``axes``; ``also`` are columns that tell lines apart.

    A chart for each `MAX_PANELS` panels.
    """
    columns = [*(column for column in group.lines if column not in also), *also]
    every = panels(group, axes[0], columns)
    for first in range(0, int(every["panel"].max()) + 1, MAX_PANELS):
        data = every[every["panel"].between(first, first + MAX_PANELS - 1)]
        facts = (*group.facts(axes, columns), *marks(data, group.measure.statistic))
        beside = None
        if bounds is not None:
            beside = bounds.merge(data[["panel"]].drop_duplicates(), how="cross")
        layout = partial(lines, data, axes[0], group.measure, beside)
        yield Chart(name, group.benchmark, facts, data, layout, (axes[0], group.measure))


def panels(group: Group, x: str, columns: Sequence[str]) -> pd.DataFrame:
    """The points of a group's lines in panels."""
    apart = panel_columns(group.rows, columns)
    others = [name for name in columns if name not in apart]
    points = points_of(group.rows, [*columns, x]).assign(x=lambda points: points[x])
    found = []
    for key, line in by(points, [*apart, *others]):
        title = line_name(key[: len(apart)], apart) if apart else ""
        name = line_name(key[len(apart) :], others) if others else group.benchmark
        found.append(line.sort_values("x").assign(title=title, line=name))
    data = in_panels(pd.concat(found, ignore_index=True))
    return data.assign(text=[group.measure.text(value) for value in data["value"]])


def in_panels(rows: pd.DataFrame) -> pd.DataFrame:
    """Points of lines with the ``panel`` of their ``title``, and the ``style`` of their ``line``.

    A panel has `MAX_LINES` of them at most. A line has the same style in all panels where there
    are styles enough.
    """
    found: list[pd.DataFrame] = []
    for _, part in rows.groupby("title", sort=False):
        names = part["line"].drop_duplicates()
        for own in np.array_split(names.to_numpy(), -(-len(names) // MAX_LINES)):
            styles = part["line"].map(style_numbers(own))
            found.append(part.assign(panel=len(found), style=styles)[styles.notna()])
    data = pd.concat(found, ignore_index=True)
    names = data["line"].drop_duplicates()
    if len(names) <= MAX_LINES:
        data["style"] = data["line"].map(style_numbers(names))
    return data.astype({"style": int})


def marks(data: pd.DataFrame, statistic: str) -> list[str]:
    """What points, bars and bands are, where there are any."""
    several = data["runs"] > 1
    shaded = banded(data)
    samples = shaded & ~several & data["spread_low"].notna()
    spans = by_kind_of_line(
        "the minimum to the maximum of the runs" * bool(several.any()),
        "the smallest sample to the 95th percentile" * bool(samples.any()),
    )
    none = samples.any() and (shaded & ~several & data["spread_low"].isna()).any()
    most = int(data["runs"].max())
    found = [
        f"Points are medians of up to {most} runs' {statistic or 'value'}s" * (most > 1),
        f"{'Bands' if shaded.any() else 'Thin bars'}: {spans}" * bool(spans),
        "No band where there are no samples, or a mean is outside it" * bool(none),
        f"Bars: {INTERVAL}{' of a single run' * (most > 1)}" * bool(data["low"].notna().any()),
    ]
    return [fact for fact in found if fact]


def banded(data: pd.DataFrame) -> pd.Series:
    """Whether a point's panel has so few lines that spreads are bands."""
    return data["panel"].map(data.groupby("panel")["line"].nunique() <= 4)


def by_kind_of_line(of_runs: str, of_one: str) -> str:
    """What marks mean where there are several runs and where there is one; empty for what is not
    there.

    >>> by_kind_of_line("minimum to maximum of the runs", "minimum to maximum of the ranks")
    'minimum to maximum of the runs; of single runs, minimum to maximum of the ranks'
    """
    if of_runs and of_one:
        return f"{of_runs}; of single runs, {of_one}"
    return of_runs or of_one


def lines(
    data: pd.DataFrame,
    x: str,
    measure: Measure,
    beside: pd.DataFrame | None,
    page: Page,
    left: float = 0.0,
    gap: float = GAP + 5,
    bands: bool = False,
) -> Layout:
    """Panels of lines that share their axes, under one legend where all share their styles.

    ``beside`` are dotted lines, ``left`` and ``gap`` points that something else needs beside
    the panels and between them; ``bands`` are drawn however many lines there are.
    """
    if beside is None:
        beside = pd.DataFrame(columns=["panel", "line", "x", "value"])
    shaded = banded(data) | bands
    hidden = ~shaded & (data["runs"] == 1)  # of samples, which would be as long as bars of runs
    data = data.assign(**{end: data[end].mask(hidden) for end in ENDS[2:]})
    parts = list(data.groupby("panel"))
    columns = page.columns(len(parts))
    axis = value_axis([*data[["value", *ENDS]].to_numpy(float).flat, *beside["value"]], measure)
    left = max(left, axis.left)
    width = page.panel(columns, left, gap)
    height = max(100.0, width * (0.62 if len(parts) == 1 and not page.is_wide else 0.46))
    styles = data.drop_duplicates(["line", "style"]).set_index("line")["style"]
    shared = styles.index.is_unique and styles.is_unique
    views = []
    for place, (number, part) in enumerate(parts):
        below = {} if place + columns >= len(parts) else {"labels": False, "title": None}
        across = along_axis(x, [*data["x"], *beside["x"]], width, **below)
        side = axis.axis(left)
        if place % columns:
            side = axis.axis(TITLE_ROOM + 4, labels=False, title=None)
        up = partial(alt.Y, scale=axis.scale, axis=side)
        others = beside[beside["panel"] == number]
        own = named(part, others)
        layers = panel(part, own, across, up, others, page, bool(shaded[part.index].all()))
        title = heading(str(part["title"].iloc[0]), width)
        view = alt.layer(*layers).properties(width=width, height=height, **title)
        if not shared:
            view = together("vconcat", [legend_view(own, page, room=width), view], spacing=4)
        views.append(view)
    every = named(data, beside)
    return Layout(views, left, columns, every if shared and len(every) > 1 else None)


def named(data: pd.DataFrame, beside: pd.DataFrame) -> dict[str, int]:
    """Styles of lines, and of those beside them."""
    styles = data.drop_duplicates("line").set_index("line")["style"].to_dict()
    return {**styles, **dict.fromkeys(beside["line"], -1)}


def panel(
    data: pd.DataFrame,
    styles: Mapping[str, int],
    x: alt.X,
    y: Callable[[str], alt.Y],
    beside: pd.DataFrame,
    page: Page,
    bands: bool,
) -> list[Any]:
    """Layers of lines: ``bands`` of the spread or else bars, intervals, lines, and points.

    Altair takes long to make a channel of a mere text.
    """
    color = alt.Color("line:N", scale=shades(styles, page), legend=None)
    dash = alt.StrokeDash("line:N", scale=dashes(styles), legend=None)
    shown = data.assign(shape=[look("markers", at) for at in data["style"]])
    shown["zero"] = shown["x"] == 0  # 0 bytes are no smaller message, but none: no line leads there
    base = alt.Chart(inline(shown)).encode(
        x, y("value:Q"), color=color, detail=alt.Detail("zero:N")
    )
    spread = base.transform_filter("isValid(datum.spread_low)")
    spread = spread.encode(y("spread_low:Q"), y2=alt.Y2("spread_high:Q"))
    bars = spread.mark_rule(strokeWidth=0.6, opacity=0.6)
    layers: list[Any] = [bars]
    if bands:
        layers = [bars.transform_filter("datum.zero"), spread.mark_area(opacity=0.15)]
    known = base.transform_filter("isValid(datum.low)")
    layers.append(known.mark_rule(strokeWidth=0.8).encode(y("low:Q"), y2=alt.Y2("high:Q")))
    ends = known.mark_tick(size=3, thickness=0.6)
    layers += [ends.encode(y("low:Q")), ends.encode(y("high:Q"))]
    layers.append(base.mark_line(strokeWidth=1.1).encode(strokeDash=dash))
    if len(beside):
        dotted = alt.Chart(inline(beside)).mark_line(strokeWidth=0.9)
        layers.append(dotted.encode(x, y("value:Q"), color=color, strokeDash=dash))
    points = base.mark_point(filled=True, size=12, opacity=1)
    points = points.encode(stroke=alt.value(page.tint("paper")), strokeWidth=alt.value(0.3))
    tip = [alt.Tooltip(name) for name in ("line:N", "text:N", "runs:Q")]
    layers.append(points.encode(shape=alt.Shape("shape:N", scale=None), tooltip=tip))
    return layers

"""Bars: numbers without message sizes, phases that add up to a total, and layers of overhead.

It also draws the lines next to them: overheads over sizes, applications over ranks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import nan
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from omb_py.analysis.charts.groups import Group, Request, conditions, groups, run_facts, stem
from omb_py.analysis.charts.lines import INTERVAL, in_panels, in_pieces, lines
from omb_py.analysis.charts.spec import (
    GAP,
    LABEL,
    Chart,
    ChartLayout,
    Measure,
    Page,
    heading,
    inline,
    layered,
    names_axis,
    style_numbers,
    tips,
    value_axis,
    widest,
    wrap,
)
from omb_py.analysis.overhead import FEWEST, over_launches
from omb_py.analysis.points import (
    by,
    caption_part,
    common,
    distinctions,
    label,
    points_of,
)
from omb_py.analysis.select import no_column
from omb_py.analysis.speedup import PHASES, series_of
from omb_py.analysis.values import ENDS
from omb_py.core.errors import UsageError
from omb_py.core.text.units import size_text, value_text
from omb_py.core.text.words import count
from omb_py.results.columns import SOFTWARE

TOTAL = "total"

APART = 10
"""The largest ratio of the largest to the smallest value on an axis from 0."""

MAX_BARS = 30
"""Bars of one figure."""

DIFFER = (
    *("base", "ranks", "buffer", "placement", "staged", "mpi_type", "elements", "window"),
    *("thread_level", *SOFTWARE),
)
"""Columns of overheads in which rows of one figure do not differ."""

PICKLING = ("pickle", "pkl5")
"""Bindings so slow that the bars of others would be invisible next to theirs."""

BAR_SIZE = 8

TURNS = "More threads than cores, ranks took turns"

SPEEDUPS = {
    "speedup": Measure("Speed-up", "", "median"),
    "sequential_speedup": Measure("Speed-up over the sequential program", "", "median"),
}
"""Columns of speed-ups, and what their axes say."""

SHARE = Measure("Time of a rank", "%")

SEGMENT = ("line", "part", "start", "end", "style", "text", "low", "high")
"""Columns of a bar's segment: its line, start, end, colour, and for the last segment of each bar
the text after it and the ends of its whisker."""


def bar_charts(rows: pd.DataFrame, request: Request) -> Iterator[Chart]:
    """Yield a figure for each benchmark, or part of one, that has no message sizes or only one.

    Parts that add up to a total are one figure.
    """
    for _, benchmark in by(rows, ["benchmark"]):
        parts = set(benchmark["part"].dropna())
        whole = len(parts) > 1 and TOTAL in parts and request.value in ("auto", "latency")
        for _, members in by(benchmark, [] if whole else ["part"]):
            if whole or members["bytes"].nunique() < 2:
                for group in groups(members, ("bytes", "part"), request):
                    yield from charts(group, whole)


def charts(group: Group, whole: bool) -> Iterator[Chart]:
    """Draw figures of `MAX_BARS` bars, of parts of a ``whole`` or a bar for each line.

    Whiskers are the extremes of several runs; of one run those of its ranks, or an interval.
    """
    parts = [str(part) for part in group.rows["part"].dropna().unique() if part != TOTAL]
    facts = group.facts(("bytes", "part"), group.lines)
    facts += [size_text(size) for size in group.rows["bytes"].dropna().unique()]
    of_one, title = INTERVAL, ": ".join([group.benchmark, *parts])
    if whole:
        ranks = {"low": group.rows["latency_min_us"], "high": group.rows["latency_max_us"]}
        group = replace(group, rows=group.rows.assign(**ranks))
        facts.append("Means over the ranks")
        of_one, title = "the minimum and maximum of the ranks", group.benchmark
    points = group.points(group.lines or ["benchmark"], ["part"])
    for end in ("low", "high"):
        points[end] = points[end].fillna(points[f"spread_{end}"].where(points["runs"] > 1))
    totals = points[points["part"] == TOTAL] if whole else points
    every = points[points["part"] != TOTAL] if whole else points.assign(part="")
    every = every.assign(style=every["part"].map(parts.index) if whole else 1)
    every = every.assign(end=every.groupby("line")["value"].cumsum())
    every["start"] = every.groupby("line")["end"].shift(fill_value=0.0)
    last = ~every["line"].duplicated(keep="last")
    for name in ("text", "low", "high"):
        of_line = every["line"].map(totals.set_index("line")[name])
        every[name] = of_line.where(last, "" if name == "text" else nan)
    known = totals["runs"][totals["low"].notna()]
    facts += run_facts(known, group.measure.statistic, "Whiskers", of_one)
    name = group.name("parts") if whole else stem(group.name("bars"), *parts)
    names = every["line"].drop_duplicates()
    for first in range(0, len(names), MAX_BARS):
        data = every[every["line"].isin(names[first : first + MAX_BARS])][list(SEGMENT)]
        layout = partial(bars, data, group.measure)
        yield Chart(name, title, tuple(facts), data, layout, benchmark=group.benchmark)


def bars(data: pd.DataFrame, measure: Measure, page: Page) -> ChartLayout:
    """Draw bars, the first on top, each as long as its value."""
    parts = {name: style for name, style in zip(data["part"], data["style"], strict=True) if name}
    room = 0.32 * page.room
    labels = 5 + widest(line for name in data["line"] for line in wrap(name, LABEL, room))
    view = bars_view(data, measure, page.room - labels, labels, page)
    return ChartLayout([view], labels, legend=parts or None, mark="square")


def bars_view(
    data: pd.DataFrame,
    measure: Measure,
    width: float,
    labels: float,
    page: Page,
    title: str = "",
    every: pd.DataFrame | None = None,
) -> Any:
    """Return a row for each bar, in axes ``width`` points wide, to the right of ``labels`` points.

    If one value is more than `APART` times another, bars from 0 would hide the smaller one: dots on
    a logarithmic axis replace them. ``every`` are the bars of all views that share the axis.
    """
    every = data if every is None else every
    ends = every[["start", "end", "low", "high"]].astype(float)
    least, most = ends["end"].min(), ends["end"].max()
    dots = every["line"].is_unique and most > APART * least > 0
    numbers = [*ends.iloc[:, 1:].to_numpy().flat] if dots else [ends.max().max()]
    axis = value_axis(numbers, measure, False, (8 + widest(every["text"])) / width)
    names = ["\n".join(wrap(name, LABEL, max(labels, 40))) for name in dict.fromkeys(data["line"])]
    rows = data.assign(
        row=pd.factorize(data["line"])[0],
        fill=[page.color(style) for style in data["style"]],
        tip=data[["start", "end", "high"]].max(axis=1),
    )
    side = names_axis(dict(enumerate(names)), labels)
    y = alt.Y("row:O", scale=alt.Scale(paddingInner=0.35, paddingOuter=0.3), axis=side)
    x = partial(alt.X, scale=axis.scale, axis=axis.axis())
    base = alt.Chart(inline(rows)).encode(y=y)
    known = base.transform_filter("isValid(datum.low)")
    whisker = known.mark_tick(size=4, thickness=1, orient="vertical", color=page.color(-1))
    text = base.transform_filter("datum.text").encode(x("tip:Q"), alt.Text("text:N"))
    bar = base.mark_bar(stroke=page.tint("paper"), strokeWidth=0.4).encode(
        x("start:Q"), alt.X2("end:Q")
    )
    dot = base.mark_point(size=20, opacity=1, strokeWidth=0).encode(x("end:Q"))
    fill = alt.Fill("fill:N", scale=None)
    layers = [
        (dot if dots else bar).encode(fill, tooltip=tips("line", "part", "text")),
        known.mark_rule(strokeWidth=1, color=page.color(-1)).encode(x("low:Q"), alt.X2("high:Q")),
        *(whisker.encode(x(f"{end}:Q")) for end in ("low", "high")),
        text.mark_text(align="left", dx=5, fontSize=LABEL, color=page.tint("ink")),
    ]
    height = sum(8 + 9.5 * (1 + name.count("\n")) for name in names)
    return layered(layers, width=width, height=height, **heading(title, width))


def overheads(rows: pd.DataFrame, request: Request) -> Iterator[Chart]:
    """Yield a figure of each benchmark's overheads of bindings, with a panel for each MPI library.

    Bars are at the first size asked for, or at 8 bytes, or at the minimum size.
    """
    names = {"binding": "line", "bytes": "x", "mpi": "title", "base_us": "base_time"}
    names |= {"added_us": "value", "added_low_us": "low", "added_high_us": "high"}
    whole = over_launches(rows[rows["split"].isna()])
    several = whole["launches"] > 1
    for end, extreme in (("low", "min"), ("high", "max")):
        ends = (whole[f"added_{one}_us"] for one in (end, extreme))
        whole[f"spread_{end}"] = next(ends).fillna(next(ends).where(several))
    whole = whole.astype({"bytes": float})
    others = [name for name in DIFFER if whole[name].nunique(dropna=False) > 1]
    for (benchmark, *values), members in by(whole, ["benchmark", *others]):
        words = [caption_part(name, value) for name, value in zip(others, values, strict=True)]
        facts = [" · ".join([*words, *common(members, {"binding"})])]
        rounds = " or ".join(str(number) for number in sorted(members["rounds"].unique()))
        facts.append(f"Medians of {rounds} rounds")
        bands, launches = "95 % intervals of the difference", members["launches"]
        if launches.max() > 1:
            facts[-1] += f", and of {launches.max()} launches"
            bands += " over the launches"
        if launches.between(2, FEWEST - 1).any():
            bands += f", of fewer than {FEWEST} the minimum to the maximum"
        facts += conditions(members)
        name = stem(benchmark, "overhead", *words)
        members = members[[*names, "base", "ratio", *ENDS[2:]]].rename(columns=names)
        yield overhead(name, str(benchmark), facts, members, request.sizes, bands)


def overhead(
    name: str,
    title: str,
    facts: Sequence[str],
    rows: pd.DataFrame,
    sizes: Sequence[int],
    bands: str,
) -> Chart:
    """Return the figure of rows that differ only in MPI library, binding and size.

    ``bands`` is what the bands of a row show.
    """
    base = str(rows["base"].iloc[0])
    there = sorted(rows["x"].dropna().unique())
    shown = next((nbytes for nbytes in (*sizes[:1], BAR_SIZE, *there) if nbytes in there), nan)
    keys = ["title", "line", "x"]
    rows = rows.assign(title=rows["title"].fillna(""))
    data = points_of(rows, keys, ["base_time", "ratio"])
    data = data[data["line"] != base]
    for end in ("low", "high"):
        data[f"spread_{end}"] = data[f"spread_{end}"].fillna(data[end])
    data["panel"] = pd.factorize(data["title"])[0]
    order = style_numbers([base, *(str(line) for (line,), _ in by(rows, ["line"]))])
    data["style"] = data["line"].map(order)
    data["text"] = [
        f"{'+' if value >= 0 else '-'}{value_text(abs(value), 'us')} "
        f"({ratio:.2f}\N{MULTIPLICATION SIGN})"
        for value, ratio in zip(data["value"], data["ratio"], strict=True)
    ]
    here = data["x"].isna() if np.isnan(shown) else data["x"] == shown
    data["bar"] = here & ~(data["line"].isin(PICKLING) & (data["ratio"] >= 5))
    data = data.assign(low=nan, high=nan, band=True, crowded=False)
    data = data.sort_values(["panel", "style", "x"], kind="stable")
    data = in_pieces(data, "bytes", (data["spread_low"] > 0) | (data["spread_high"] < 0))
    caption = [f"What bindings add to {base}", *facts]
    marks = "Bands" if data["spans"].any() else "Thin bars"
    caption += run_facts(data["runs"], "difference", marks, bands)
    if len(there) > 1:
        caption.append(f"Grey: {base}")
        caption.append("Where a band holds 0 no difference is known, and none drawn")
    if barless := list(dict.fromkeys(data["line"][here & ~data["bar"]])):
        caption.append(f"No bars of {' and '.join(barless)}, which would be many times as long")
    layout = partial(overhead_layout, data, base, float(shown))
    return Chart(name, title, tuple(caption), data, layout, benchmark=title)


def overhead_layout(data: pd.DataFrame, base: str, size: float, page: Page) -> ChartLayout:
    """Lay out bars at one size for each library, and below them the overheads over all sizes."""
    columns = page.columns(data["panel"].nunique())
    labels = 5 + widest([base, *data["line"]])
    certain = data[(data["spread_low"] > 0) | (data["spread_high"] < 0)]
    below = ChartLayout([], labels, columns)
    if data["x"].nunique() > 1 and len(certain):
        itself = data.drop_duplicates(["panel", "x"])[["panel", "x", "base_time"]]
        itself = itself.rename(columns={"base_time": "value"})
        itself = itself.assign(line=f"{base} itself", style=-1)
        measure = Measure(f"Added to {base}", "us", "median")
        below = lines(certain, "bytes", measure, itself, page, labels)
    width = page.panel(columns, below.left, GAP + labels) + 8
    time = Measure("Time" if np.isnan(size) else f"Time of {size_text(size)}", "us", "median")
    panels = {
        str(part["title"].iloc[0]): pd.DataFrame(segments_of(part, base, size), columns=[*SEGMENT])
        for _, part in data.groupby("panel")
    }
    every = pd.concat(panels.values())
    above = [
        bars_view(segments, time, width, labels, page, title, every)
        for title, segments in panels.items()
    ]
    return ChartLayout([*above, *below.views], below.left, columns, below.legend, below.mark)


def segments_of(part: pd.DataFrame, base: str, size: float) -> Iterator[tuple[Any, ...]]:
    """Yield the base's bar, and for each binding the base's time and the time added or saved."""
    here = part["x"].isna() if np.isnan(size) else part["x"] == size
    time = float(part["base_time"][here].iloc[0])
    yield base, "", 0.0, time, style_numbers([base])[base], value_text(time, "us"), nan, nan
    for row in part[part["bar"]].to_dict("records"):
        end = time + row["value"]
        yield row["line"], "", 0.0, min(time, end), -1, "", nan, nan
        yield row["line"], "", time, end, row["style"], row["text"], nan, nan


def application_charts(
    found: pd.DataFrame,
    kind: str = "speedup",
    chosen: Sequence[str] | None = None,
    value: str = "speedup",
) -> Iterator[Chart]:
    """Yield a chart of each application of `omb_py.analysis.speedup.speedups`.

    ``kind`` is ``speedup`` or ``phases``. Lines differ in the ``chosen`` columns, and in the
    problem where an application has several; charts differ in the other columns of `series_of`. By
    default each application has a chart. ``value`` is a key of `SPEEDUPS`. Raises `UsageError` for
    a column that is not one of those and a value that is none of those.
    """
    if value not in SPEEDUPS:
        raise UsageError(f"a speed-up has no value {value!r}: choose from {', '.join(SPEEDUPS)}")
    series = series_of(found)
    if unknown := [name for name in chosen or () if name not in series]:
        raise no_column(unknown[0], series)
    for application, rows in charted(found, chosen):
        columns = chosen or series
        if rows.groupby("application")["problem"].nunique().max() > 1:
            columns = (*columns, "problem")
        apart = distinctions(rows, columns) or ["application"]
        rows = rows.assign(line=[label(key, apart) for key in rows[apart].itertuples(index=False)])
        problems, scaling = rows["problem"].unique(), " and ".join(rows["scaling"].unique())
        facts = [*problems[: len(problems) == 1], f"{scaling[0].upper()}{scaling[1:]} scaling"]
        if rows["oversubscribed"].any():
            facts.append(TURNS if kind == "phases" else f"Hollow marks: {TURNS.lower()}")
        name, title = stem(application, kind), application
        if kind == "phases":
            data = pd.DataFrame(phases(rows), columns=list(SEGMENT))
            yield Chart(name, title, tuple(facts), data, partial(bars, data, SHARE))
        elif scales(rows, value):
            ends = {"": "value", "_low": "low", "_high": "high"}
            names = {f"{value}{end}": name for end, name in ends.items()}
            names |= {"ranks": "x", "oversubscribed": "crowded"}
            data = rows[rows[value].notna()].rename(columns=names)[
                ["line", *names.values(), "runs"]
            ]
            data = data.assign(title="", spread_low=nan, spread_high=nan)
            data = in_panels(data.assign(text=data["value"].map("{:.3g}".format)))
            data = in_pieces(data, "ranks")
            ideal = pd.DataFrame({"x": sorted({1.0, *data["x"]})})
            ideal = ideal.assign(line="ideal", value=ideal["x"], style=-1)
            ideal = ideal.merge(data[["panel"]].drop_duplicates(), how="cross")
            layout = partial(lines, data, "ranks", SPEEDUPS[value], ideal)
            facts.append("Bars: the minimum and the maximum repeat")
            yield Chart(name, title, tuple(facts), data, layout, ("ranks", SPEEDUPS[value]))


def charted(
    found: pd.DataFrame, chosen: Sequence[str] | None
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the name and the rows of each chart of `application_charts`."""
    separate = ["application"]
    if chosen is not None:
        others = [name for name in series_of(found) if name not in (*chosen, "problem")]
        separate = distinctions(found, others)
    if not separate:
        yield "applications", found
        return
    for key, rows in found.groupby(separate, sort=False, dropna=False):
        yield label(key, separate) or "applications", rows


def scales(rows: pd.DataFrame, value: str) -> bool:
    """Return whether a speed-up is known on two numbers of ranks, which a chart needs."""
    return bool(rows[rows[value].notna()]["ranks"].nunique() > 1)


def phases(rows: pd.DataFrame) -> Iterator[tuple[object, ...]]:
    """Yield the segments (`SEGMENT`) of a bar for each line and number of ranks: its phases.

    Each begins where the one before it ends, in percent of the time; empty ones are left out.
    """
    several = rows["line"].nunique() > 1
    for row in rows.to_dict("records"):
        ranks = count(row["ranks"], "rank")
        name, start = f"{row['line']}, {ranks}" if several else ranks, 0.0
        for number, phase in enumerate(PHASES):
            share = 100 * row[phase]
            if share > 0:
                yield name, phase, start, start + share, number, "", nan, nan
            start += share

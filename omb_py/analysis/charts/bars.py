"""Bars: numbers without message sizes, phases that add up to a total, and layers of overhead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import isnan, nan
from typing import Any

import altair as alt
import pandas as pd

from omb_py.analysis.charts.axes import Measure, names_axis, value_axis
from omb_py.analysis.charts.groups import Choice, Group, groups, plain
from omb_py.analysis.charts.lines import INTERVAL, by_kind_of_line, lines
from omb_py.analysis.charts.spec import (
    GAP,
    LABEL,
    Chart,
    Layout,
    Page,
    heading,
    inline,
    style_numbers,
    widest,
    wrap,
)
from omb_py.analysis.points import by, caption_part, common, line_name, points_of
from omb_py.core.text.units import size_text, value_text

TOTAL = "total"

APART = 10
"""How many times the smallest the largest value may be on an axis from 0."""

MAX_BARS = 30
"""Bars of one figure."""

DIFFER = ("base", "ranks", "buffer", "placement", "staged", "mpi_type", "window", "thread_level")
"""Columns of overheads in which rows of one figure do not differ."""

PICKLING = ("pickle", "pkl5")
"""Bindings that take so much longer that beside theirs no other bar could be seen."""

BAR_SIZE = 8

SEGMENT = ("line", "part", "start", "end", "style", "text", "low", "high")
"""Of a bar: whose it is, from where to where, its colour, and of the last one of each bar the text
behind it and the ends of its whisker."""


def bar_charts(rows: pd.DataFrame, choice: Choice) -> Iterator[Chart]:
    """A figure for each benchmark, or part of one, that has no message sizes or only one."""
    for _, benchmark in by(rows, ["benchmark"]):
        parts = set(benchmark["part"].dropna())
        if len(parts) > 1 and TOTAL in parts and choice.value in ("auto", "latency"):
            for group in groups(benchmark, ("part",), choice):
                yield from phases(group)
            continue
        for _, members in by(benchmark, ["part"]):
            if members["bytes"].nunique() < 2:
                for group in groups(members, ("bytes",), choice):
                    yield from single(group)


def phases(group: Group) -> Iterator[Chart]:
    """Bars of parts that add up to a total, with the extremes of the runs, or ranks of one run."""
    found: list[tuple[Any, ...]] = []
    counts: list[int] = []
    names = [name for name in dict.fromkeys(group.rows["part"]) if name != TOTAL]
    for values, members in by(group.rows, list(group.lines)):
        name = line_name(values, group.lines) if values else group.benchmark
        medians = members.groupby("part", sort=False)["value"].median()
        total = members[members["part"] == TOTAL]
        counts.append(len(total))
        ends = (total["value"].min(), total["value"].max())
        if len(total) == 1:
            ends = (total["latency_min_us"].iloc[0], total["latency_max_us"].iloc[0])
        at, own = 0.0, [part for part in names if part in medians]
        for part in own:
            last = (group.measure.text(medians[TOTAL]), *ends)
            behind = last if part == own[-1] else ("", nan, nan)
            found.append((name, part, at, at + medians[part], names.index(part), *behind))
            at += medians[part]
    whiskers = by_kind_of_line(
        "the minimum and maximum of the runs" * (max(counts) > 1),
        "the minimum and maximum of the ranks" * (min(counts) == 1),
    )
    again = f", of which bars are medians of up to {max(counts)} runs" * (max(counts) > 1)
    yield from charts(group, "parts", found, [f"Means over the ranks{again}"], whiskers)


def single(group: Group) -> Iterator[Chart]:
    """A bar for each line."""
    found: list[tuple[Any, ...]] = []
    counts: list[int] = []
    points = points_of(group.rows, group.lines or ["benchmark"])
    for values, part in by(points, list(group.lines)):
        point = part.iloc[0]
        ends = ("low", "high") if point["runs"] == 1 else ("spread_low", "spread_high")
        low, high = (point[end] for end in ends)
        counts += [] if isnan(low) else [int(point["runs"])]
        name = line_name(values, group.lines) if values else group.benchmark
        value = point["value"]
        found.append((name, "", 0.0, value, 1, group.measure.text(value), low, high))
    most = max(counts, default=1)
    whiskers = by_kind_of_line(
        "the minimum and maximum of the runs" * (most > 1), INTERVAL * (1 in counts)
    )
    notes = [size_text(size) for size in group.rows["bytes"].dropna().unique()]
    if most > 1:
        notes.append(f"Medians of up to {most} runs' {group.measure.statistic or 'value'}s")
    yield from charts(group, "bars", found, notes, whiskers)


def charts(
    group: Group, kind: str, found: Sequence[tuple[Any, ...]], notes: Sequence[str], whiskers: str
) -> Iterator[Chart]:
    """Figures of `MAX_BARS` bars with what they have in common."""
    every = pd.DataFrame(found, columns=list(SEGMENT))
    part = [str(name) for name in group.rows["part"].dropna().unique() if kind == "bars"]
    stem = "-".join([group.name(kind), *(plain(name) for name in part)])
    facts = [*group.facts(("bytes", "part"), group.lines), *notes]
    facts += [f"Whiskers: {whiskers}"] * bool(whiskers)
    names = every["line"].drop_duplicates()
    for first in range(0, len(names), MAX_BARS):
        data = every[every["line"].isin(names[first : first + MAX_BARS])]
        layout = partial(bars, data, group.measure)
        yield Chart(stem, ": ".join([group.benchmark, *part]), tuple(facts), data, layout)


def bars(data: pd.DataFrame, measure: Measure, page: Page) -> Layout:
    """Bars, the first on top, each as long as its value.

    Where one is more than `APART` times another, which no bar from 0 would show, they are dots on
    a logarithmic axis.
    """
    parts = {name: style for name, style in zip(data["part"], data["style"], strict=True) if name}
    values, room = data["end"], 0.32 * page.room
    labels = 5 + widest(line for name in data["line"] for line in wrap(name, LABEL, room))
    dots = not parts and values.min() > 0 and values.max() > APART * values.min()
    view = rows_of(data, measure, page.room - labels, labels, page, dots)
    return Layout([view], labels, legend=parts or None, mark="square")


def rows_of(
    data: pd.DataFrame,
    measure: Measure,
    width: float,
    labels: float,
    page: Page,
    dots: bool = False,
) -> Any:
    """A row for each bar, in axes ``width`` points wide beside names that have ``labels``."""
    ends = data[["start", "end", "low", "high"]].astype(float)
    behind = (8 + widest(data["text"])) / width
    numbers = [*ends.iloc[:, 1:].to_numpy().flat] if dots else [ends.max().max()]
    axis = value_axis(numbers, measure, False, behind)
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
    text = base.transform_filter("datum.text").encode(x("tip:Q"), text="text:N")
    bar = base.mark_bar(stroke=page.tint("paper"), strokeWidth=0.4).encode(x("start:Q"), x2="end:Q")
    dot = base.mark_point(size=20, opacity=1, strokeWidth=0).encode(x("end:Q"))
    fill = alt.Fill("fill:N", scale=None)
    layers = [
        (dot if dots else bar).encode(fill=fill, tooltip=["line:N", "part:N", "text:N"]),
        known.mark_rule(strokeWidth=1, color=page.color(-1)).encode(x("low:Q"), x2="high:Q"),
        *(whisker.encode(x(f"{end}:Q")) for end in ("low", "high")),
        text.mark_text(align="left", dx=5, fontSize=LABEL, color=page.tint("ink")),
    ]
    height = sum(8 + 9.5 * (1 + name.count("\n")) for name in names)
    return alt.layer(*layers).properties(width=width, height=height)


def overheads(rows: pd.DataFrame, size: float | None = None) -> Iterator[Chart]:
    """What bindings add: a figure for each benchmark, with a panel for each MPI library.

    Bars are at ``size``, or at 8 bytes, or at the minimum size where there is no such row.
    """
    whole = rows[rows["split"].isna()].assign(bytes=lambda rows: rows["bytes"].astype(float))
    for (benchmark,), part in by(whole, ["benchmark"]):
        others = [name for name in DIFFER if part[name].nunique(dropna=False) > 1]
        for values, members in by(part, others):
            words = [caption_part(name, value) for name, value in zip(others, values, strict=True)]
            yield overhead(str(benchmark), words, members, size)


def overhead(benchmark: str, words: Sequence[str], rows: pd.DataFrame, size: float | None) -> Chart:
    """The figure of rows that differ in MPI library, binding, size and run alone."""
    base = str(rows["base"].iloc[0])
    sizes = sorted(rows["bytes"].dropna().unique())
    shown = next((nbytes for nbytes in (size, BAR_SIZE, *sizes) if nbytes in sizes), None)
    data = added(rows, base)
    here = data["x"].isna() if shown is None else data["x"] == shown
    data["bar"] = here & ~(data["line"].isin(PICKLING) & (data["ratio"] >= 5))
    most = int(data["runs"].max())
    band = by_kind_of_line(
        "minimum to maximum of the runs" * (most > 1),
        "95\N{NO-BREAK SPACE}% intervals of the difference" * bool((data["runs"] == 1).any()),
    )
    rounds = " or ".join(str(count) for count in sorted(rows["rounds"].unique()))
    facts = [
        f"What bindings add to {base}",
        " · ".join([*words, *common(rows, {"binding"})]),
        f"Medians of {rounds} rounds" + f", of up to {most} runs" * (most > 1),
    ]
    if len(sizes) > 1:
        facts += [f"Grey: {base}", f"Bands: {band}"]
        facts.append("Where one holds 0 no difference is known, and none drawn")
    if barless := list(dict.fromkeys(data["line"][here & ~data["bar"]])):
        facts.append(f"No bars of {' and '.join(barless)}, which would be many times as long")
    name = "-".join(plain(text) for text in (benchmark, "overhead", *words))
    return Chart(name, benchmark, tuple(facts), data, partial(layers_of, data, base, shown))


def added(rows: pd.DataFrame, base: str) -> pd.DataFrame:
    """What each binding adds by library and size: medians and extremes over runs, or of one run
    the interval of the difference."""
    names = {"binding": "line", "bytes": "x", "mpi": "title", "base_us": "base"}
    named = rows[[*names, "added_us", "added_low_us", "added_high_us", "ratio"]].rename(
        columns=names
    )
    at = named.groupby(["title", "line", "x"], dropna=False, sort=False)
    found = at[["base", "ratio"]].median()
    found = found.assign(value=at["added_us"].median(), runs=at.size(), low=nan, high=nan)
    for end, extreme in (("low", at["added_us"].min()), ("high", at["added_us"].max())):
        own = at[f"added_{end}_us"].first()
        found[f"spread_{end}"] = own.where(found["runs"] == 1, extreme)
    found = found.reset_index()
    found = found[found["line"] != base]
    found["title"] = found["title"].fillna("")
    found["panel"] = pd.factorize(found["title"])[0]
    order = style_numbers([base, *(str(name) for (name,), _ in by(rows, ["binding"]))])
    found["style"] = found["line"].map(order)
    found["text"] = [
        f"{'+' if value >= 0 else '-'}{value_text(abs(value), 'us')}  "
        f"\N{MULTIPLICATION SIGN} {ratio:.2f}"
        for value, ratio in zip(found["value"], found["ratio"], strict=True)
    ]
    return found.sort_values(["panel", "style", "x"], kind="stable")


def layers_of(data: pd.DataFrame, base: str, size: float | None, page: Page) -> Layout:
    """Bars at one size for each library, and below what is added over all sizes."""
    columns = page.columns(data["panel"].nunique())
    labels = 5 + widest([base, *data["line"]])
    certain = data[(data["spread_low"] > 0) | (data["spread_high"] < 0)]
    below = Layout([], labels, columns)
    if data["x"].nunique() > 1 and len(certain):
        itself = data.drop_duplicates(["panel", "x"])[["panel", "x", "base"]]
        itself = itself.rename(columns={"base": "value"}).assign(line=f"{base} itself")
        measure = Measure(f"Added to {base}", "us", "median")
        below = lines(certain, "bytes", measure, itself, page, labels, GAP + labels, bands=True)
    width = page.panel(columns, below.left, GAP + labels) + 8
    time = Measure("Time" if size is None else f"Time of {size_text(size)}", "us", "median")
    above = []
    for _, part in data.groupby("panel"):
        segments = pd.DataFrame(segments_of(part, base, size), columns=list(SEGMENT))
        view = rows_of(segments, time, width, labels, page)
        above.append(view.properties(**heading(part["title"].iloc[0], width)))
    return Layout([*above, *below.views], below.left, columns, below.legend)


def segments_of(part: pd.DataFrame, base: str, size: float | None) -> Iterator[tuple[Any, ...]]:
    """The bar of the base, and for each binding that and what it adds, or lacks of it."""
    here = part["x"].isna() if size is None else part["x"] == size
    time = float(part["base"][here].iloc[0])
    own = style_numbers([base])[base]
    yield base, "", 0.0, time, own, value_text(time, "us"), nan, nan
    for row in part[part["bar"]].to_dict("records"):
        end = time + row["value"]
        yield row["line"], "", 0.0, min(time, end), -1, "", nan, nan
        yield row["line"], "", time, end, row["style"], row["text"], nan, nan

"""Single iterations: every one by time, and their distribution."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import ceil

import altair as alt
import numpy as np
import pandas as pd

from omb_py.analysis.charts.axes import Measure, value_axis
from omb_py.analysis.charts.groups import stem
from omb_py.analysis.charts.spec import (
    GAP,
    MAX_LINES,
    MAX_PANELS,
    Chart,
    Layout,
    Page,
    heading,
    inline,
    own,
    styled,
)
from omb_py.analysis.points import common
from omb_py.analysis.samples import Series, measurements
from omb_py.core.errors import UsageError
from omb_py.core.text.units import size_text, value_text

TITLES = {"samples": "every iteration", "ecdf": "distribution of samples"}
SAMPLE_KINDS = tuple(TITLES)

TIMES = Measure("Sample", "us")

MOST_SAMPLES = 2000
"""Samples of one rank and size that are drawn as points; of more, evenly some and the extremes."""

TAIL = 99.0
"""Percentile at which the drawing of a distribution ends, where the tail is much longer."""


def sample_charts(
    series: Sequence[Series], kind: str, sizes: Sequence[int] = ()
) -> Iterator[Chart]:
    """A figure for each measurement, of these message sizes or of all.

    Raises `UsageError` for a message size that no series has.
    """
    if missing := [size for size in sizes if size not in {one.size for one in series}]:
        raise UsageError(f"no sample has a message size of {missing[0]} bytes")
    for by_size in measurements(series):
        chosen = [group for size, group in by_size.items() if not sizes or size in sizes]
        most = MAX_LINES if kind == "ecdf" else MAX_PANELS
        for first in range(0, len(chosen), most):
            yield sample_chart(kind, chosen[first : first + most])


def sample_chart(kind: str, panels: Sequence[Sequence[Series]]) -> Chart:
    """A figure of the series of some sizes."""
    every = [one for members in panels for one in members]
    shared = every[0].shared
    counts = {len(one.samples) for one in every}
    thinned = max(one.every for one in every)
    caption = [
        " · ".join(common(pd.DataFrame([shared]), ())),
        f"{min(counts)} samples" + f" to {max(counts)}" * (len(counts) > 1) + " a rank",
        f"One of up to {thinned} iterations was kept" * (thinned > 1),
    ]
    if kind == "ecdf":
        longest = max(float(one.samples.max()) for one in every)
        slowest = f"the slowest took {value_text(longest, 'us')}"
        caption.append(f"Samples up to the {TAIL:g}th percentile; {slowest}")
        tables = [cumulated(members) for members in panels]
    else:
        if max(counts) > MOST_SAMPLES:
            caption.append(f"Some {MOST_SAMPLES} of a rank are drawn, the extremes with them")
        error = max(one.start_error for one in every)
        caption.append(f"Starts are right to {1e3 * error:.2g} ms or better")
        tables = [pd.concat(some(one) for one in members) for members in panels]
    for style, (table, members) in enumerate(zip(tables, panels, strict=True)):
        size = members[0].size
        table[["style", "title"]] = style, "" if size is None else size_text(size)
    data = pd.concat(tables, ignore_index=True)
    title = f"{shared['benchmark']}: {TITLES[kind]}"
    layout = partial(distribution if kind == "ecdf" else iterations, data)
    return Chart(stem(shared["benchmark"], kind), title, tuple(caption), data, layout)


def some(series: Series) -> pd.DataFrame:
    """Starts and samples to draw: all, or evenly some, with the extremes of those between."""
    step = ceil(2 * len(series.samples) / MOST_SAMPLES)
    chosen: list[int] = list(range(len(series.samples)))
    if step > 2:
        parts = ((first, series.samples[first : first + step]) for first in chosen[::step])
        ends = ({at + int(part.argmin()), at + int(part.argmax())} for at, part in parts)
        chosen = sorted(set().union(*ends))
    found = {"x": series.starts[chosen], "y": series.samples[chosen]}
    return pd.DataFrame(found).assign(rank=series.rank)


def cumulated(members: Sequence[Series]) -> pd.DataFrame:
    """The samples of all ranks in order, and the percentage of them that are not above each.

    Without the slowest ones, beyond the percentile `TAIL`.
    """
    pooled = np.concatenate([one.samples for one in members])
    values, counts = np.unique(pooled, return_counts=True)
    shares = 100 * np.cumsum(counts) / counts.sum()
    shown = int(np.searchsorted(shares, TAIL)) + 1
    return pd.DataFrame({"x": values[:shown], "y": shares[:shown]})


def distribution(data: pd.DataFrame, page: Page) -> Layout:
    """The share of samples that are not above a time, a line for each message size."""
    across = value_axis(data["x"].tolist(), TIMES, vertical=False)
    up = value_axis([100.0], Measure("Samples not above", "%"))
    width = page.panel(1, up.left, 0)
    base = alt.Chart(inline(styled(data, page)), width=width, height=max(120.0, 0.45 * width))
    view = base.mark_line(interpolate="step-after", strokeWidth=1.1).encode(
        alt.X("x:Q", scale=across.scale, axis=across.axis()),
        alt.Y("y:Q", scale=up.scale, axis=up.axis(up.left)),
        own(alt.Color, "color"),
        own(alt.StrokeDash, "dash"),
        order="y:Q",
    )
    styles = dict(zip(data["title"], data["style"], strict=True))
    return Layout([view], up.left, legend=styles if len(styles) > 1 else None, mark="dash")


def iterations(data: pd.DataFrame, page: Page) -> Layout:
    """Samples over their starts, a panel for each size; beyond `MAX_LINES` ranks all alike."""
    parts = [part for _, part in data.groupby("style")]
    columns = page.columns(len(parts))
    axes = [value_axis(part["y"].tolist(), TIMES) for part in parts]
    left = max(axis.left for axis in axes)
    width = page.panel(columns, left, GAP + left)
    ranks = sorted(data["rank"].unique())
    many = len(ranks) > MAX_LINES
    styles = {f"rank {rank}": number for number, rank in enumerate(ranks)}
    time = alt.Axis(title="Start (s)", tickCount=width / 45, labelOverlap="greedy", format="~r")
    x = alt.X("x:Q", axis=time, scale=alt.Scale(zero=False, nice=False, padding=6))
    views = []
    for part, axis in zip(parts, axes, strict=True):
        rows = styled(part.assign(style=0 if many else part["rank"].map(ranks.index)), page)
        y = alt.Y("y:Q", scale=axis.scale, axis=axis.axis(left))
        points = alt.Chart(inline(rows[["x", "y", "color"]])).mark_circle(size=3, opacity=0.6)
        points = points.encode(x, y, own(alt.Color, "color"))
        size = {"width": width, "height": max(100.0, 0.5 * width)}
        views.append(points.properties(**size, **heading(str(part["title"].iloc[0]), width)))
    several = len(ranks) > 1 and not many
    return Layout(views, left, columns, styles if several else None, "square")

"""Single iterations: every one by its number, and their distribution."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import ceil

import altair as alt
import numpy as np
import pandas as pd

from omb_py.analysis.charts.groups import stem
from omb_py.analysis.charts.spec import (
    GAP,
    MAX_LINES,
    MAX_PANELS,
    Chart,
    ChartLayout,
    Measure,
    Page,
    heading,
    inline,
    own,
    styled,
    value_axis,
)
from omb_py.analysis.points import common
from omb_py.analysis.samples import MEASUREMENT
from omb_py.core.errors import UsageError
from omb_py.core.text.units import size_text, value_text

TITLES = {"samples": "every iteration", "ecdf": "distribution of samples"}
SAMPLE_KINDS = tuple(TITLES)

TIMES = Measure("Sample", "us")

MOST_SAMPLES = 2000
"""Samples of one rank and size that are drawn as points; of more, evenly some and the extremes."""

TAIL = 99.0
"""Percentile at which the drawing of a distribution ends, if the tail is much longer."""


def sample_charts(samples: pd.DataFrame, kind: str, sizes: Sequence[int] = ()) -> Iterator[Chart]:
    """Yield a figure for each measurement of `omb_py.analysis.samples.load`, of these message sizes
    or of all.

    Raises `UsageError` for a message size that no sample has.
    """
    if missing := [size for size in sizes if size not in set(samples["bytes"])]:
        raise UsageError(f"no sample has a message size of {missing[0]} bytes")
    shown = samples[samples["bytes"].isin(sizes)] if sizes else samples
    most = MAX_LINES if kind == "ecdf" else MAX_PANELS
    for _, members in shown.groupby(list(MEASUREMENT), sort=False, dropna=False):
        panels = [part for _, part in members.groupby("bytes", sort=False, dropna=False)]
        for first in range(0, len(panels), most):
            yield sample_chart(kind, panels[first : first + most])


def sample_chart(kind: str, panels: Sequence[pd.DataFrame]) -> Chart:
    """Return a figure of the samples of some sizes."""
    every = pd.concat(panels)
    benchmark = every["benchmark"].iloc[0]
    counts = every.groupby(["bytes", "rank"], dropna=False).size()
    thinned = every["every"].max()
    caption = [
        " · ".join(common(every[list(MEASUREMENT)], ())),
        f"{counts.min()} samples" + f" to {counts.max()}" * (counts.nunique() > 1) + " a rank",
        f"One of up to {thinned} iterations was kept" * bool(thinned > 1),
    ]
    if kind == "ecdf":
        slowest = f"the slowest took {value_text(every['sample_us'].max(), 'us')}"
        caption.append(f"Samples up to the {TAIL:g}th percentile; {slowest}")
        tables = [cumulated(part) for part in panels]
    else:
        if counts.max() > MOST_SAMPLES:
            caption.append(f"Some {MOST_SAMPLES} of a rank are drawn, the extremes with them")
        tables = [
            pd.concat(some(own) for _, own in part.groupby("rank", sort=False)) for part in panels
        ]
    for style, (table, part) in enumerate(zip(tables, panels, strict=True)):
        size = part["bytes"].iloc[0]
        table[["style", "title"]] = style, "" if pd.isna(size) else size_text(size)
    data = pd.concat(tables, ignore_index=True)
    layout = partial(distribution if kind == "ecdf" else iterations, data)
    title = f"{benchmark}: {TITLES[kind]}"
    return Chart(stem(benchmark, kind), title, tuple(caption), data, layout)


def some(samples: pd.DataFrame) -> pd.DataFrame:
    """Return the samples of a rank by iteration: all, or some with the extremes between."""
    found = pd.DataFrame(
        {"x": samples["iteration"], "y": samples["sample_us"], "rank": samples["rank"]}
    )
    step = ceil(2 * len(found) / MOST_SAMPLES)
    if step <= 2:
        return found
    stretches = found.reset_index(drop=True)["y"].groupby(np.arange(len(found)) // step)
    return found.iloc[sorted({*stretches.idxmin(), *stretches.idxmax()})]


def cumulated(samples: pd.DataFrame) -> pd.DataFrame:
    """Return the samples of all ranks in order, and the percentage of them that are not above each.

    Without the slowest ones, beyond the percentile `TAIL`.
    """
    values, counts = np.unique(samples["sample_us"], return_counts=True)
    shares = 100 * np.cumsum(counts) / counts.sum()
    shown = int(np.searchsorted(shares, TAIL)) + 1
    return pd.DataFrame({"x": values[:shown], "y": shares[:shown]})


def distribution(data: pd.DataFrame, page: Page) -> ChartLayout:
    """Return the share of samples that are not above a time, a line for each message size."""
    across = value_axis(data["x"].tolist(), TIMES, vertical=False)
    up = value_axis([100.0], Measure("Samples not above", "%"))
    width = page.panel(1, up.left, 0)
    base = alt.Chart(inline(styled(data, page)), width=width, height=max(120.0, 0.45 * width))
    view = base.mark_line(interpolate="step-after", strokeWidth=1.1).encode(
        alt.X("x:Q", scale=across.scale, axis=across.axis()),
        alt.Y("y:Q", scale=up.scale, axis=up.axis(up.left)),
        own(alt.Color, "color"),
        own(alt.StrokeDash, "dash"),
        alt.Order("y:Q"),
    )
    styles = dict(zip(data["title"], data["style"], strict=True))
    return ChartLayout([view], up.left, legend=styles if len(styles) > 1 else None, mark="dash")


def iterations(data: pd.DataFrame, page: Page) -> ChartLayout:
    """Draw samples over their iterations, a panel a size; beyond `MAX_LINES` ranks all alike."""
    parts = [part for _, part in data.groupby("style")]
    columns = page.columns(len(parts))
    axes = [value_axis(part["y"].tolist(), TIMES) for part in parts]
    left = max(axis.left for axis in axes)
    width = page.panel(columns, left, GAP + left)
    ranks = sorted(data["rank"].unique())
    many = len(ranks) > MAX_LINES
    styles = {f"rank {rank}": number for number, rank in enumerate(ranks)}
    number = alt.Axis(title="Iteration", tickCount=width / 45, labelOverlap="greedy", format="~r")
    x = alt.X("x:Q", axis=number, scale=alt.Scale(zero=False, nice=False, padding=6))
    views = []
    for part, axis in zip(parts, axes, strict=True):
        rows = styled(part.assign(style=0 if many else part["rank"].map(ranks.index)), page)
        y = alt.Y("y:Q", scale=axis.scale, axis=axis.axis(left))
        points = alt.Chart(inline(rows[["x", "y", "color"]])).mark_circle(size=3, opacity=0.6)
        points = points.encode(x, y, own(alt.Color, "color"))
        size = {"width": width, "height": max(100.0, 0.5 * width)}
        views.append(points.properties(**size, **heading(str(part["title"].iloc[0]), width)))
    several = len(ranks) > 1 and not many
    return ChartLayout(views, left, columns, styles if several else None, "square")

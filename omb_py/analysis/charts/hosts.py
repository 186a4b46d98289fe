"""The distribution of hosts at each point of a gate, the slow ones by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import altair as alt
import numpy as np
import pandas as pd

from omb_py.analysis.charts.spec import (
    LABEL,
    Chart,
    ChartLayout,
    Measure,
    Page,
    inline,
    layered,
    names_axis,
    tips,
    value_axis,
    widest,
)
from omb_py.analysis.gate.limits import LARGEST_LIMIT
from omb_py.analysis.gate.verdicts import gate
from omb_py.analysis.table import Results
from omb_py.core.text.words import count, first_of

MEASURE = Measure("Time over the median host's", "")


def host_charts(results: Results, rows: pd.DataFrame, statistic: str = "auto") -> Iterator[Chart]:
    """Yield a chart of all hosts of ``rows``, if some can be compared."""
    found = gate(replace(results, rows=rows), statistic=statistic)
    # halves are not compared with a median host
    halves = [one.point.name for one in found.judgement.costs if one.point.halves]
    data = found.table().dropna(subset="ratio")
    data = data[~data["point"].isin(halves)]
    if len(data):
        sensitivity = found.sensitivity
        facts = (
            f"{count(data['host'].nunique(), 'host')}, a circle each",
            f"Slow: {first_of(found.drained) or 'none'}",
            "A bar is the limit; points without one are too noisy",
            sensitivity[:1].upper() + sensitivity[1:],
        )
        data = data.assign(text=[f"{ratio:.2f}" for ratio in data["ratio"]])
        yield Chart("hosts", "Hosts against the median host", facts, data, partial(strips, data))


def strips(data: pd.DataFrame, page: Page) -> ChartLayout:
    """Draw a strip of hosts for each point, with the limit and the names of slow hosts."""
    names = dict(enumerate(dict.fromkeys(data["point"])))
    rows = data.assign(
        row=pd.factorize(data["point"])[0],
        fill=[page.color(1 if one else -1) for one in data["beyond"]],
    )
    slow = rows[rows["beyond"]].sort_values("ratio", ascending=False).groupby("row")
    named = [
        {"row": row, "ratio": one["ratio"].max(), "text": first_of(list(one["host"]), 2)}
        for row, one in slow
    ]
    typical = rows.groupby("row", as_index=False)["limit"].median()
    limits = typical[typical["limit"] <= np.exp(LARGEST_LIMIT)]
    labels = 5.0 + widest(names.values())
    width = page.room - labels
    behind = (12 + widest(one["text"] for one in named)) / width
    axis = value_axis([*rows["ratio"], *limits["limit"]], MEASURE, False, behind)
    y = alt.Y("row:O", axis=names_axis(names, labels))
    x = partial(alt.X, scale=axis.scale, axis=axis.axis())
    circles = alt.Chart(inline(rows)).mark_point(size=22, opacity=0.55, strokeWidth=0)
    bars = alt.Chart(inline(limits)).mark_tick(size=15, thickness=1.5, color=page.tint("ink"))
    texts = alt.Chart(inline(named)).mark_text(align="left", dx=6, fontSize=LABEL)
    layers = [
        bars.encode(x("limit:Q"), y),
        circles.encode(
            x("ratio:Q"),
            y,
            alt.Fill("fill:N", scale=None),
            tooltip=tips("host", "point", "text"),
        ),
        texts.encode(x("ratio:Q"), y, alt.Text("text:N"), alt.ColorValue(page.tint("ink"))),
    ]
    return ChartLayout([layered(layers, width=width, height=20.0 * len(names))], labels)

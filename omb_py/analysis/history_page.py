"""The page of a history: its changes, and a small chart of each series, the newest change first."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from omb_py.analysis import history_gate
from omb_py.analysis.charts.spec import (
    GAP,
    MAX_PANELS,
    SMALL,
    Chart,
    ChartLayout,
    Page,
    heading,
    inline,
    layered,
    tips,
)
from omb_py.analysis.conclusion import Conclusion
from omb_py.analysis.history import History, Series, sheets, summary
from omb_py.analysis.report.page import Section, rendered
from omb_py.analysis.report.runs import origin
from omb_py.analysis.table import Results
from omb_py.core.text.units import value_text

MAX_SERIES = 120
"""Series that are drawn; the table has the changes of all."""

MAX_RUNS = 300
"""Runs of a series that are drawn, the last ones."""

LEFT, HEIGHT = 40.0, 48.0
"""Points next to and along the axis of values."""


def page(found: History, results: Results, concluded: Conclusion | None = None) -> str:
    """Return the HTML page of the history of results, with what a limit on slowdowns found."""
    order = sorted(found.series, key=newest_change, reverse=True)[:MAX_SERIES]
    changes, outliers = sheets(found)
    drawn = []
    for first in range(0, len(order), MAX_PANELS):
        members = [(one.name, drawn_runs(one)) for one in order[first : first + MAX_PANELS]]
        caption = f"The last {MAX_RUNS} runs", "Lines are changes, triangles single outliers"
        title = f"Series {first + 1} to {first + len(members)}, newest change first"
        layout = partial(sparklines, members)
        drawn.append(
            Chart("history", title, caption, pd.concat(data for _, data in members), layout)
        )
    lead, judged = summary(found), []
    if concluded is not None:
        lead, judged = f"{concluded.sentence}. {lead}", [*history_gate.sheets(concluded)]
    return rendered(
        [
            Section("Findings", tables=[*judged, changes]),
            *[Section("Figures")] * bool(drawn),
            Section(outliers.title, tables=[outliers]),
        ],
        drawn,
        title="History of MPI performance",
        failed=0,
        wrong=0,
        lead=f"{lead}.",
        origin=origin(results.rows, results.runs),
    )


def newest_change(one: Series) -> tuple[bool, Any]:
    """Return the key that sorts series: whether one has a change, and the date of its last."""
    return len(one.starts) > 1, one.dates[one.starts[-1]]


def drawn_runs(one: Series) -> pd.DataFrame:
    """Return the runs of a series that are drawn, a row for each."""
    places, unit = np.arange(len(one.values)), str(one.point["unit"])
    frame = pd.DataFrame({"run": one.runs, "value": one.values, "unit": unit})
    frame["date"] = [date.isoformat() for date in one.dates]
    frame["text"] = [value_text(value, unit) for value in one.values]
    frame["change"] = np.isin(places, one.starts[1:])
    frame["outlier"] = np.isin(places, one.outliers)
    return frame.tail(MAX_RUNS)


def sparklines(members: Sequence[tuple[str, pd.DataFrame]], page: Page) -> ChartLayout:
    """Draw a small chart of each series by its name, with its changes and its outliers."""
    columns = page.columns(len(members))
    width = page.panel(columns, LEFT, GAP + LEFT)
    axis = alt.Axis(tickCount=2, minExtent=LEFT, maxExtent=LEFT, labelFontSize=SMALL)
    x = alt.X("date:T", title=None, axis=alt.Axis(grid=False, tickCount=3, labelFontSize=SMALL))
    views = []
    for name, data in members:
        base = alt.Chart(inline(data)).encode(x)
        y = alt.Y("value:Q", title=data["unit"].iloc[0], axis=axis, scale=alt.Scale(zero=False))
        rules = base.transform_filter("datum.change").mark_rule(color=page.color(1))
        odd = base.transform_filter("datum.outlier").mark_point(
            filled=True, shape="triangle-up", size=22, color=page.color(1)
        )
        layers = [
            rules,
            base.mark_line(strokeWidth=0.8, color=page.color(0)).encode(y),
            odd.encode(y),
            base.mark_point(opacity=0, size=40).encode(y, tooltip=tips("date", "text", "run")),
        ]
        views.append(layered(layers, width=width, height=HEIGHT, **heading(name, width)))
    return ChartLayout(views, LEFT, columns)

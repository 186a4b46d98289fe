"""What rules change: time over message size, and which algorithm is chosen where."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import altair as alt
import pandas as pd

from omb_py.analysis.charts.spec import (
    GAP,
    LABEL,
    TITLE_ROOM,
    Chart,
    ChartLayout,
    Measure,
    Page,
    along_axis,
    heading,
    inline,
    layered,
    own,
    styled,
    tips,
    value_axis,
)
from omb_py.analysis.tuning import KEPT
from omb_py.core.text.units import value_text

LINES = {"default_us": "default", "fastest_us": "fastest algorithm", "rules_us": "with the rules"}
"""The columns that are lines, and their names."""

MEASURE = Measure("Time", "us", "median")


def tuning_chart(table: pd.DataFrame) -> Iterator[Chart]:
    """Yield the chart of a table of `analysis.tuning.table`, if it has sizes."""
    rows = table[table["bytes"] > 0].copy()
    if rows["bytes"].nunique() < 2:
        return
    # ratios are of launches that took turns; the two sweeps are of different minutes
    rows["fastest_us"] = rows["default_us"] * rows["fastest_ratio"]
    rows["rules_us"] = rows["default_us"] * rows["rules_ratio"].astype(float)
    rows["panel"] = [f"{row.function}, {row.ranks} ranks" for row in rows.itertuples()]
    facts = (
        "Shaded: the sizes at which a rule names an algorithm",
        "Elsewhere the library takes its own choice",
    )
    yield Chart(
        "tuning", "The library's choice, and what rules change", facts, rows, partial(panels, rows)
    )


def panels(rows: pd.DataFrame, page: Page) -> ChartLayout:
    """Draw a panel for each function and number of ranks."""
    names = [name for name in LINES if rows[name].notna().any()]
    styles = {LINES[name]: number for number, name in enumerate(names)}
    parts = [part for _, part in rows.groupby("panel", sort=False)]
    columns = page.columns(len(parts))
    axis = value_axis(rows[names].to_numpy(float).ravel().tolist(), MEASURE)
    left = axis.left
    width = page.panel(columns, left, GAP + 5.0)
    height = max(100.0, 0.5 * width)
    views = []
    for place, part in enumerate(parts):
        across = along_axis("bytes", part["bytes"].tolist(), width)
        side = axis.axis(left)
        if place % columns:
            side = axis.axis(TITLE_ROOM + 4, labels=False, title=None)
        up = partial(alt.Y, scale=axis.scale, axis=side)
        shown = part.rename(columns={"bytes": "x"})
        lines = pd.concat(
            shown[["x", name]].rename(columns={name: "value"}).assign(line=LINES[name])
            for name in names
        ).dropna()
        lines["style"] = lines["line"].map(styles)
        lines["text"] = [value_text(value, "us") for value in lines["value"]]
        base = alt.Chart(inline(styled(lines, page))).encode(
            across, up("value:Q"), own(alt.Color, "color")
        )
        layers = [
            *bands(shown, across, up, (axis.low, axis.high), width, page),
            base.mark_line(strokeWidth=1.1).encode(
                own(alt.StrokeDash, "dash"), detail=alt.Detail("line:N")
            ),
            base.mark_point(filled=True, size=12, opacity=1).encode(
                own(alt.Shape, "shape"), tooltip=tips("line", "text")
            ),
        ]
        title = heading(str(part["panel"].iloc[0]), width)
        views.append(layered(layers, width=width, height=height, **title))
    return ChartLayout(views, left, columns, styles)


def bands(
    rows: pd.DataFrame,
    across: alt.X,
    up: partial[alt.Y],
    ends: tuple[float, float],
    width: float,
    page: Page,
) -> list[alt.Chart]:
    """Return a band for each size with a rule, and the algorithm's name where it begins."""
    chosen = rows[rows["choice"] != KEPT].sort_values("x")
    if not len(chosen):
        return []
    words = rows.sort_values("x")["choice"]
    begins = (words != words.shift()).reindex(chosen.index)
    data = pd.DataFrame(
        {
            "x": chosen["x"],
            "low": ends[0],
            "high": ends[1],
            "text": chosen["choice"].where(begins, ""),
        }
    )
    base = alt.Chart(inline(data)).encode(across)
    step = width / max(1, rows["x"].nunique())
    band = base.mark_bar(size=0.96 * step, opacity=0.14, color=page.tint("muted"))
    text = base.mark_text(align="left", baseline="top", angle=90, dx=3, dy=-5, fontSize=LABEL)
    return [
        band.encode(up("low:Q"), alt.Y2("high:Q")),
        text.encode(up("high:Q"), alt.Text("text:N"), alt.ColorValue(page.tint("ink"))),
    ]

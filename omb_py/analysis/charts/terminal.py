"""Lines as text, for a terminal or the log of a job."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from math import log2, log10

import click
import pandas as pd
import plotext

from omb_py.analysis.charts.spec import Chart, Measure, ticks_along, value_axis
from omb_py.core.errors import UsageError
from omb_py.core.text.words import printable

WIDTH, HEIGHT = 80, 24
"""Columns and lines of a figure that does not go to a terminal."""

COLORS = (None, 33, 208, 35, 175, 214, 117, 245)
"""Numbers of a terminal's 256 colours, near those of `omb_py.analysis.charts.spec`."""

MARKERS = ("●", "■", "▲", "◆", "▼", "x", "+", "◀")


def terminal_size() -> tuple[int, int]:
    """Return the columns and lines that a figure may take of the terminal."""
    if not sys.stdout.isatty():
        return WIDTH, HEIGHT
    columns, lines = shutil.get_terminal_size((WIDTH, HEIGHT))
    return max(40, columns), min(max(15, lines - 6), 40)


def uses_color() -> bool:
    """Return whether output may have colours: it is a terminal, and ``NO_COLOR`` is not set."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def text(chart: Chart, width: int, height: int, colored: bool = False) -> str:
    """Return a chart of lines as text of ``width`` columns, whose axes take ``height`` lines.

    Raises `UsageError` for a chart of another kind.
    """
    if chart.along is None:
        raise UsageError(f"a terminal shows lines, not {chart.name}: write a file")
    x, measure = chart.along
    over = "message size" if x == "bytes" else "ranks"
    head = ", ".join(filter(None, (measure.words, measure.statistic)))
    parts = [f"{click.style(printable(chart.title), bold=True)}: {head} over {over}"]
    for _, panel in chart.data.groupby("panel"):
        parts += [printable(str(panel["title"].iloc[0]))] * bool(panel["title"].iloc[0])
        for name, style in panel.drop_duplicates("line")[["line", "style"]].itertuples(index=False):
            parts.append(click.style(f"{MARKERS[style]} {printable(name)}", fg=COLORS[style]))
        parts.append(plot(panel, x, measure, (width, height)))
    found = "\n".join([*parts, *textwrap.wrap(printable(chart.words), width)])
    return found if colored else click.unstyle(found)


def plot(panel: pd.DataFrame, x: str, measure: Measure, size: tuple[int, int]) -> str:
    """Return axes with the lines of a ``panel``, in ``size`` columns and lines of text.

    ``x`` is ``bytes`` or ``ranks``. Values that are not above 0 are left out, but for percent: all
    other axes are logarithmic, as in figures.
    """
    shown = panel[(panel["value"] > 0) | (measure.unit == "%")]
    if shown.empty:
        return "(nothing above 0 to draw on a logarithmic axis)"
    axis = value_axis(shown["value"].tolist(), measure)
    every = sorted(shown["x"].unique())
    places = {at: float(place) if x == "bytes" else log2(at) for place, at in enumerate(every)}
    canvas = plotext.figure
    canvas.clear()
    canvas.theme("simple")
    canvas.plot_size(*size)
    canvas.legend(False)

    def height(value: float) -> float:
        return log10(value) if axis.logarithmic else value

    for (_, style, _), line in shown.groupby(["line", "style", "piece"], sort=False):
        color = COLORS[int(style)]
        marker = plotext.marker(MARKERS[int(style)], pixel="default" if color is None else color)
        at = [places[x] for x in line["x"]]
        signal = canvas.signal(at, [height(value) for value in line["value"]], marker=marker)
        if len(line) > 1:
            signal.lines()
        canvas.draw(signal)
    ticks = ticks_along(x, every, size[0] / 8)
    canvas.ruler("x").ticks([places[at] for at in ticks], list(ticks.values()))
    levels = [height(level) for level in axis.ticks]
    canvas.ruler("y").ticks(levels, [tick_text(level, measure) for level in axis.ticks])
    if not axis.logarithmic:
        canvas.ruler("y").lim(0, axis.high)
    return str(canvas.build().string()).rstrip("\n")


def tick_text(value: float, measure: Measure) -> str:
    """Return a tick's label with its unit.

    >>> tick_text(1500, Measure("", "us")), tick_text(0, Measure("", "us"))
    ('1.5 ms', '0')
    """
    if value == 0:
        return "0"
    number, _, name = measure.text(value).partition(" ")
    return f"{float(number):g} {name}".strip()

"""Efficiencies as a chart: over ranks, or as bars where there is one number of ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import nan

import pandas as pd

from omb_py.analysis.charts.bars import SEGMENT, bars
from omb_py.analysis.charts.lines import lines
from omb_py.analysis.charts.spec import Chart, Measure
from omb_py.analysis.values import ENDS
from omb_py.core.text.words import count
from omb_py.tracing.efficiency.series import Series
from omb_py.tracing.efficiency.table import LINES

NAME = "efficiency"

MEASURE = Measure("Efficiency", "%")

STYLES = {line.column: number for number, line in enumerate(LINES)}
WHOLE = ("global_efficiency", "parallel_efficiency", "computation_scaling")
PARTS = (
    "parallel_efficiency",
    "load_balance",
    "communication_efficiency",
    "serialisation_efficiency",
    "transfer_efficiency",
)
"""Columns of rows that are drawn."""


def values_of(series: Series, columns: Sequence[str]) -> Iterator[tuple[str, int, int, float]]:
    """Names, numbers of styles, indices of runs and values in percent."""
    for column in columns:
        line = LINES[STYLES[column]]
        for number, point in enumerate(series.points):
            if (part := line.of(point, series)) is not None:
                yield line.label.strip("- "), STYLES[column], number, 100 * part


def chart(series: Series) -> Chart:
    """Return the chart of all runs."""
    if not series.several:
        return of_one(series)
    rows = [
        {"panel": panel, "title": title, "line": name, "style": style}
        | {"x": series.points[number].run.times.ranks, "value": value}
        | {"text": MEASURE.text(value), "runs": 1}
        for panel, (title, columns) in enumerate((("Global", WHOLE), ("Parallel", PARTS)))
        for name, style, number, value in values_of(series, columns)
    ]
    data = pd.DataFrame(rows).assign(**dict.fromkeys(ENDS, nan), band=True)
    ideal = data[["panel", "x"]].drop_duplicates().assign(line="100 %", value=100.0, style=-1)
    first = series.points[0].run
    facts = (
        f"{series.kind.capitalize()} scaling",
        "Global efficiency = parallel efficiency x computation scaling, relative to "
        f"{count(first.times.ranks, 'rank')}",
        "Parallel efficiency = load balance x serialisation x transfer efficiency",
        *facts_of(series),
    )
    layout = partial(lines, data, "ranks", MEASURE, ideal)
    return Chart(NAME, "Efficiency", facts, data, layout)


def of_one(series: Series) -> Chart:
    """Return the factors of one run, or of several on the same number of ranks."""
    rows = []
    for name, _, number, value in values_of(series, PARTS):
        line = name if len(series.points) == 1 else f"{name}, {series.points[number].label}"
        rows.append((line, "", 0.0, value, number + 1, MEASURE.text(value), nan, nan))
    data = pd.DataFrame(rows, columns=list(SEGMENT))
    ranks = count(series.points[0].run.times.ranks, "rank")
    return Chart(NAME, "Efficiency", (ranks, *facts_of(series)), data, partial(bars, data, MEASURE))


def facts_of(series: Series) -> list[str]:
    """Facts for below the figure."""
    commands = dict.fromkeys(point.run.command for point in series.points if point.run.command)
    found = [next(iter(commands))] if len(commands) == 1 else []
    if any(point.run.times.ideal is None for point in series.points):
        found.append("Serialisation and transfer are not known of runs without a timeline")
    return found

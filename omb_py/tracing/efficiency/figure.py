"""Efficiencies as a chart: over ranks, or as bars where there is one number of ranks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import nan

import pandas as pd

from omb_py.analysis.charts.bars import SEGMENT, bars
from omb_py.analysis.charts.lines import lines
from omb_py.analysis.charts.spec import Chart, Measure
from omb_py.analysis.values import ENDS
from omb_py.core.text.words import count
from omb_py.tracing.efficiency.series import Series, SeriesPoint, loads

NAME = "efficiency"

MEASURE = Measure("Efficiency", "%")

Factor = tuple[str, int, Callable[[SeriesPoint], float | None]]
"""Name, number of its style, value."""

PARALLEL: Factor = ("Parallel efficiency", 1, lambda at: at.run.efficiency.parallel)
WHOLE: tuple[Factor, ...] = (
    ("Global efficiency", 0, lambda at: at.scaling.whole if at.scaling else None),
    PARALLEL,
    ("Computation scaling", 2, lambda at: at.scaling.computation if at.scaling else None),
)
PARTS: tuple[Factor, ...] = (
    PARALLEL,
    ("Load balance", 3, lambda at: at.run.efficiency.load_balance),
    ("Communication efficiency", 4, lambda at: at.run.efficiency.communication),
    ("Serialisation efficiency", 5, lambda at: at.run.efficiency.serialisation),
    ("Transfer efficiency", 6, lambda at: at.run.efficiency.transfer),
    (
        "Data loading efficiency",
        7,
        lambda at: at.run.efficiency.loading if at.run.times.total_loading else None,
    ),
)


def chart(series: Series) -> Chart:
    """The chart of all runs."""
    if not series.several:
        return of_one(series)
    rows = [
        {"panel": panel, "title": title, "line": name, "style": style, "x": at.run.times.ranks}
        | {"value": 100 * part, "text": MEASURE.text(100 * part), "runs": 1}
        for panel, (title, factors) in enumerate((("Global", WHOLE), ("Parallel", PARTS)))
        for name, style, value in factors
        for at in series.points
        if (part := value(at)) is not None
    ]
    data = pd.DataFrame(rows).assign(**dict.fromkeys(ENDS, nan), band=True)
    ideal = data[["panel", "x"]].drop_duplicates().assign(line="100 %", value=100.0, style=-1)
    first = series.points[0].run
    loading = " x data loading efficiency" * loads(series)
    facts = (
        f"{series.kind.capitalize()} scaling",
        "Global efficiency = parallel efficiency x computation scaling, relative to "
        f"{count(first.times.ranks, 'rank')}",
        f"Parallel efficiency = load balance x serialisation x transfer efficiency{loading}",
        *facts_of(series),
    )
    layout = partial(lines, data, "ranks", MEASURE, ideal)
    return Chart(NAME, "Efficiency", facts, data, layout)


def of_one(series: Series) -> Chart:
    """The factors of one run, or of several on the same number of ranks."""
    rows = []
    for name, _, value in PARTS:
        for number, at in enumerate(series.points):
            if (part := value(at)) is not None:
                line = name if len(series.points) == 1 else f"{name}, {at.label}"
                text = MEASURE.text(100 * part)
                rows.append((line, "", 0.0, 100 * part, number + 1, text, nan, nan))
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

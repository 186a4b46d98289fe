"""Applications over numbers of ranks: speed-ups beside the ideal, and phases."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import nan

import pandas as pd

from omb_py.analysis.charts.axes import Measure
from omb_py.analysis.charts.bars import SEGMENT, bars
from omb_py.analysis.charts.groups import stem
from omb_py.analysis.charts.lines import in_every_panel, in_panels, lines
from omb_py.analysis.charts.spec import Chart
from omb_py.analysis.points import distinctions, label
from omb_py.analysis.speedup import PHASES, SERIES
from omb_py.core.text.words import count

SPEEDUP = Measure("Speed-up", "", "median")
SHARE = Measure("Time of a rank", "%")


def application_charts(found: pd.DataFrame, kind: str = "speedup") -> Iterator[Chart]:
    """A chart of each application of `omb_py.analysis.speedup.speedups`.

    ``kind`` is ``speedup`` or ``phases``.
    """
    for application, rows in found.groupby("application", sort=False):
        apart = distinctions(rows, SERIES) or ["application"]
        rows = rows.assign(line=[label(key, apart) for key in rows[apart].itertuples(index=False)])
        problems, scaling = rows["problem"].unique(), " and ".join(rows["scaling"].unique())
        facts = [*problems[: len(problems) == 1], f"{scaling[0].upper()}{scaling[1:]} scaling"]
        if rows["oversubscribed"].any():
            facts.append("Where there are more threads than cores, ranks took turns")
        name, title = stem(application, kind), str(application)
        known = rows[rows["speedup"].notna()]
        if kind == "phases":
            data = pd.DataFrame(phases(rows), columns=list(SEGMENT))
            yield Chart(name, title, tuple(facts), data, partial(bars, data, SHARE))
        elif known["ranks"].nunique() > 1:
            names = {"ranks": "x", "speedup": "value", "speedup_low": "low", "speedup_high": "high"}
            data = known.rename(columns=names)[["line", *names.values(), "runs"]]
            data = data.assign(title="", spread_low=nan, spread_high=nan)
            data = in_panels(data.assign(text=data["value"].map("{:.3g}".format)))
            ideal = pd.DataFrame({"x": sorted({1.0, *data["x"]})})
            ideal = in_every_panel(ideal.assign(line="ideal", value=ideal["x"]), data)
            layout = partial(lines, data, "ranks", SPEEDUP, ideal)
            facts.append("Bars: the minimum and the maximum repeat")
            yield Chart(name, title, tuple(facts), data, layout, ("ranks", SPEEDUP))


def phases(rows: pd.DataFrame) -> Iterator[tuple[object, ...]]:
    """A bar for each line and number of ranks, made of the phases."""
    several = rows["line"].nunique() > 1
    for row in rows.to_dict("records"):
        ranks = count(row["ranks"], "rank")
        name, start = f"{row['line']}, {ranks}" if several else ranks, 0.0
        for number, phase in enumerate(PHASES):
            share = 100 * row[phase]
            if share > 0:
                yield name, phase, start, start + share, number, "", nan, nan
            start += share

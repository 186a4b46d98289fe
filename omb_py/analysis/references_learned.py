"""References of a site's own, learned from repeated launches, and what their limits find."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t as student

from omb_py.analysis.compare.side_by_side import launch_spreads
from omb_py.analysis.failures import RESULTS_OF
from omb_py.analysis.judging import rows_to_judge
from omb_py.analysis.points import distinctions, group_ids, label, points_of, sizes_of
from omb_py.analysis.references import POINT, READ
from omb_py.analysis.references_check import telling
from omb_py.analysis.values import value_column
from omb_py.analysis.verdict import MOST_LAUNCHES, Numbers, percent, prediction, variance_of_median
from omb_py.core.errors import UsageError
from omb_py.core.text.units import is_time
from omb_py.core.text.words import count
from omb_py.results.columns import CONFIGURATION, EXPERIMENT, IDENTITY

SMALLEST = 0.05
"""The smallest tolerance that `from_runs` gives."""

LARGEST = 99.0
"""The largest tolerance that `from_runs` gives: what takes 100 times as long always fails."""

FOUND = 0.9
"""The chance with which a slowdown must be found to be called so by `sensitivity`."""

BLIND = 0.5
"""The slowdown that limits must find; `sensitivity` calls others too wide."""


def from_runs(rows: pd.DataFrame, system: str, statistic: str = "auto") -> pd.DataFrame:
    """Return references of a site's own from repeated launches of benchmarks.

    A value is the median of a point's launches. Its tolerance, on the worse side, is as far as one
    more launch may be from it, at least `SMALLEST`: a healthy launch passes the check of all points
    with a chance of 95 % (`verdict.prediction`), or one launch of each host if rows are of several
    hosts. The deviation between launches, of logarithms, is pooled over the sizes of a class
    (`launch_spreads`). The tolerance is missing if no launch of a class was repeated.
    A reference states the experiment, buffer, binding and placement, and of the other columns
    those that differ. ``spread``, ``degrees`` of freedom and ``runs``, for `sensitivity`, are not
    columns of a file. Raises `UsageError` if no point was measured twice.
    """
    values = value_column(rows_to_judge(rows)[0], statistic, IDENTITY)
    apart = distinctions(values, CONFIGURATION)
    usual = {*EXPERIMENT, "bytes", "buffer", "binding", "placement"}
    keys = [name for name in POINT if name in usual or values[name].nunique(dropna=False) > 1]
    if "source" in apart:  # files that may be of different experiments
        keys.append("source")
    series = (values[name] for name in (*keys, "unit") if name != "bytes")
    values = values.assign(pair=group_ids(series))
    points = points_of(values, [*keys, "unit", "pair"])
    sized = [rows.assign(bytes=sizes_of(rows)) for rows in (points, values)]
    spread, degrees = launch_spreads(sized[0], sized[1:])
    if np.isnan(spread).all():
        raise UsageError(
            "--update needs repeated launches, and every point has one: measure 5 or more; if "
            "files lack MPI library, ranks or hosts, add --assume"
        )
    together = len(points) * max(1, rows["host_names"].nunique())  # a fleet is checked as a whole
    wide = prediction(spread, degrees, points["runs"].to_numpy(float), together)
    wide = np.minimum(wide, np.log1p(LARGEST))
    time = is_time(points["unit"])
    ends = np.where(time, np.expm1(wide), -np.expm1(-wide))
    ends = np.where(np.isnan(ends), np.nan, np.maximum(ends, SMALLEST)).round(4)
    found = points[[*(name for name in keys if name in POINT), "value", "unit"]]
    found = found.dropna(axis="columns", how="all").assign(
        system=system,
        software=values["mpi"].iloc[0] if values["mpi"].nunique(dropna=False) == 1 else None,
        low=np.where(time, np.nan, -ends),
        high=np.where(time, ends, np.nan),
        source=[f"median of {count(int(runs), 'run')}" for runs in points["runs"]],
        date=date.today().isoformat(),
    )
    found = found.reindex(columns=[name for name in READ if name in found])
    return found.assign(spread=spread, degrees=degrees, runs=points["runs"])


def sensitivity(made: pd.DataFrame) -> list[str]:
    """Return sentences about what references of `from_runs` find, and about too few launches."""
    known = made[made["spread"].notna()]
    ends = np.log1p(known["high"].fillna(1 / (1 + known["low"]) - 1))
    slowdowns = found_from(ends, known["spread"], known["degrees"], known["runs"].astype(float))
    names = [*telling(known.assign(**{RESULTS_OF: None})), "bytes"]
    places = dict.fromkeys([slowdowns.idxmin(), slowdowns.idxmax()])
    parts = [
        f"{percent(slowdowns[place])} slower at "
        f"{label([known.loc[place].get(name) for name in names], names)}"
        for place in places
    ]
    said = [f"A launch is found 9 times of 10 if it is {', '.join(parts)}"]
    blind = slowdowns > BLIND
    if blind.any():
        spread = float(np.sqrt((known["spread"][blind] ** 2).mean()))
        enough = launches_to_see(spread, len(made))
        said.append(
            f"{blind.sum()} of {count(len(made), 'reference')} cannot find a launch that is "
            f"{percent(BLIND)} slower, since launches differ by {percent(np.expm1(spread))}: "
            + (f"measure {enough}" if enough else f"not even {MOST_LAUNCHES} would do")
        )
    if (known["degrees"] == 1).any():
        two, five = (prediction(1.0, n - 1.0, n, len(made)) for n in (2, 5))
        said.append(f"Limits of 2 launches are {two / five:.0f} times as wide as those of 5")
    return said


def found_from(limit: Numbers, spread: Numbers, degrees: Numbers, runs: Numbers) -> Any:
    """Return the slowdown at which a launch of the usual noise exceeds a limit with chance `FOUND`.

    ``limit`` and ``spread`` are of logarithms. That of a rate is a longer time of each message.
    """
    once = spread * np.sqrt(1 + variance_of_median(runs))
    return np.expm1(limit + student.ppf(FOUND, degrees) * once)


def launches_to_see(spread: float, points: int) -> int | None:
    """Return the number of launches whose limits find `BLIND` at each of so many points.

    ``spread`` is the deviation of a launch's logarithm. None for more than `MOST_LAUNCHES`.
    """
    for n in range(2, MOST_LAUNCHES + 1):
        limit = prediction(spread, n - 1.0, n, points)
        if found_from(limit, spread, n - 1.0, n) <= BLIND:
            return n
    return None

"""Overheads of several launches: medians over the launches, their 95 % intervals and ranges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from omb_py.analysis.points import (
    at_size,
    by,
    caption_part,
    common,
    group_ids,
    without_implied,
)
from omb_py.core.errors import UsageError
from omb_py.core.statistics import median_interval
from omb_py.core.text.tables import Sheet
from omb_py.core.text.units import size_text
from omb_py.results.columns import IDENTITY, SOFTWARE

SAME = (*IDENTITY, "base", "thread_level")
"""Columns in which the launches of one point agree, as in the message size."""

FEWEST = 6
"""Launches from which the median over them has an interval (`median_ranks`).

It holds whatever the distribution is: where a library is in one of two states from launch to
launch, all six are in the same with a chance of 3 % at most. Student's interval would be narrow
after three launches in the same state, which happens with a chance of up to 25 %.
"""

COMBINED = {"added": "_us", "ratio": "", "median": "_us"}
"""Values that are combined, by the beginning and the end of their columns' names."""

ENDS = (("low", "high"), ("min", "max"))
"""Ends of the interval and of the range, in the columns' names."""


def over_launches(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each point of overheads, with the number of its ``launches``.

    Values are medians over the launches. ``added_low_us`` and ``added_high_us`` are the 95 %
    interval of that median, missing below `FEWEST` launches; of a single launch, its own interval.
    ``added_min_us`` and ``added_max_us`` are the range over the launches, and ``added_own_us`` is
    the median width of their own intervals. Ratio and median time have the same columns.
    """
    rows = rows.reset_index(drop=True)
    numbers = group_ids(rows[name] for name in (*SAME, "bytes") if name in rows)
    at = rows.groupby(numbers)
    points = rows.loc[at.head(1).index].reset_index(drop=True)
    points["launches"] = at["run"].nunique()
    points["base_us"] = at["base_us"].median()
    widths = rows["added_high_us"] - rows["added_low_us"]
    points["added_own_us"] = widths.groupby(numbers).median()
    for name, unit in COMBINED.items():
        values = at[f"{name}{unit}"]
        for place, end in enumerate(("low", "high")):
            column = f"{name}_{end}{unit}"
            own = points.get(column, np.nan)
            over = values.agg(partial(end_of_interval, place=place))
            points[column] = over.where(points["launches"] > 1, own)
        points[f"{name}_min{unit}"], points[f"{name}_max{unit}"] = values.min(), values.max()
        points[f"{name}{unit}"] = values.median()
    return points


def end_of_interval(values: pd.Series, place: int) -> float:
    """Return the low (0) or high (1) end of the interval of the median; NaN for too few values."""
    return (median_interval(sorted(values)) or (np.nan, np.nan))[place]


def sheets(rows: pd.DataFrame) -> Iterator[Sheet]:
    """Yield a table over launches for each benchmark and configuration that has several."""
    points = over_launches(rows) if len(rows) else rows
    if points.empty or points["launches"].max() < 2:
        return
    apart = differing(points)
    for (benchmark, *values), members in by(points, ["benchmark", *apart]):
        words = [f"thread level {members['thread_level'].iloc[0]}"]
        words += [caption_part(name, value) for name, value in zip(apart, values, strict=True)]
        words += common(members, {"binding", "split", *SOFTWARE})
        yield Sheet(
            f"Overhead of {benchmark} over {members['launches'].max()} launches",
            (
                *("size", "binding", "base", "added (us)", "95 %", "range"),
                *("ratio", "95 %", "range", "median (us)", "range", "part"),
            ),
            tuple(map(line, members.to_dict("records"))),
            tuple(remarks(members)),
            left=3,
            above="; ".join(dict.fromkeys(words)),
        )


def differing(points: pd.DataFrame) -> list[str]:
    """Return the columns that tell tables of a benchmark apart."""
    known = ("benchmark", "binding", "base", "split")
    names = [name for name in SAME if name in points and name not in known]
    return [name for name in names if points[name].nunique(dropna=False) > 1]


def across(rows: pd.DataFrame, base: str | None = None) -> Iterator[Sheet]:
    """Yield a table for each benchmark and configuration: a row for each size, and for each binding
    its median time and its ratio to ``base``.

    Raises `UsageError` unless the rows are compared with that base.
    """
    points = over_launches(rows[rows["split"].isna()].reset_index(drop=True))
    bases = list(points["base"].unique())
    if base not in (None, *bases):
        raise UsageError(f"--base {base}: omb-py overhead compared with {', '.join(bases)}")
    apart = without_implied(points, differing(points), ["benchmark", "binding", "bytes"])
    for (benchmark, first, *values), members in by(points, ["benchmark", "base", *apart]):
        others = [name for (name,), _ in by(members, ["binding"]) if name != first]
        lines = []
        for (size,), own in by(members, ["bytes"]):
            at = {point["binding"]: point for point in own.to_dict("records")}
            cells = [f"{at[first]['median_us']:.3f}" if first in at else "-"]
            for point in (at.get(name) for name in others):
                cells += [f"{point['median_us']:.3f}", f"{point['ratio']:.2f}"] if point else "--"
            lines.append(("-" if size is None else size_text(size), *cells))
        words = [caption_part(name, value) for name, value in zip(apart, values, strict=True)]
        yield Sheet(
            ", ".join([f"Overhead of {benchmark}", *words]),
            ("size", f"{first} (us)", *(n for one in others for n in (f"{one} (us)", "ratio"))),
            tuple(lines),
            (f"Ratios to {first}: medians of those of each round, in which bindings took turns.",),
        )


def line(point: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the cells of a point; the base adds nothing to itself."""
    size = "-" if pd.isna(point["bytes"]) else size_text(point["bytes"])
    found = [size, str(point["binding"]), str(point["base"])]
    for name, places in (("added", 3), ("ratio", 2)):
        value = point[f"{name}{COMBINED[name]}"]
        cells = [f"{value:.{places}f}", *(span(point, name, ends, places) for ends in ENDS)]
        found += ["-"] * 3 if point["binding"] == point["base"] else cells
    found += [f"{point['median_us']:.3f}", span(point, "median", ENDS[1], 3)]
    return (*found, "" if pd.isna(point["split"]) else str(point["split"]))


def span(point: Mapping[str, Any], name: str, ends: tuple[str, str], places: int) -> str:
    """Return an interval or a range of a point's value; a dash if it is missing."""
    low, high = (point[f"{name}_{end}{COMBINED[name]}"] for end in ends)
    return "-" if pd.isna(low) else f"{low:.{places}f} to {high:.{places}f}"


def remarks(points: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence for each binding at the smallest size, and one if launches are too few."""
    whole = points[points["split"].isna() & (points["binding"] != points["base"])]
    for point in whole.drop_duplicates("binding").to_dict("records"):
        own = point["added_own_us"]
        within = "" if pd.isna(own) else f" (one launch alone: {own:.3f} wide)"
        yield (
            f"Added by {point['binding']}{at_size(point['bytes'])}: {point['added_us']:.3f} us, "
            f"{span(point, 'added', ENDS[1], 3)} over {point['launches']} launches{within}; "
            f"{span(point, 'ratio', ENDS[1], 2)} times {point['base']}"
        )
    if points["launches"].min() < FEWEST:
        yield (
            f"{points['launches'].min()} launches are too few for a 95 % interval: choose "
            f"--launches {FEWEST} or more"
        )

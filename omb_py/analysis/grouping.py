"""Rows as points of lines: runs of the same thing become one point."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from omb_py.analysis.values import CONFIGURATION, EXPERIMENT, value_column

SERIES = (*EXPERIMENT, *CONFIGURATION, "base", "unit")
"""What one line has in common. ``base`` is of overheads only."""

MEDIANS = {
    "value": "value",
    "low": "low",
    "high": "high",
    "spread_low": "spread_low",
    "spread_high": "spread_high",
    "mean": "mean",
    "p99": "sample_p99_us",
    "slowest": "slowest_p50_us",
    "overall": "overall_p50_us",
    "overlap": "overlap_percent",
    "rate": "messages_per_s",
    "busbw": "busbw_GBps",
    "algbw": "algbw_GBps",
    "ratio": "ratio",
}
"""Columns of points that are medians over the runs, and the columns of rows they come from."""


NEEDED = (
    *(name for name in SERIES if name not in ("base", "unit")),
    *("bytes", "run", "file", "latency_us", "latency_min_us", "latency_max_us"),
    *("bandwidth_MBps", "messages_per_s", "iterations", "late_starts", "median_low_us"),
    *("median_high_us", "sample_mean_us", "sample_min_us", "sample_p50_us", "sample_p90_us"),
    *("sample_p95_us", "sample_p99_us", "sample_p999_us", "sample_max_us", "slowest_p50_us"),
    *("overall_p50_us", "overlap_percent", "busbw_GBps", "algbw_GBps"),
)
"""Columns of rows that a report looks at: a copy of all would be half of its memory."""


@dataclass(frozen=True)
class Points:
    """Lines and their points.

    ``series`` has a row for each line with the columns of `SERIES`. ``points`` has a row for each
    message size of each line, ordered by line and size: ``series`` (which line), ``bytes``, the
    columns of `MEDIANS` in the units of the rows, ``minimum`` and ``maximum`` value of a run, how
    many ``runs``, in how many ``files``, ``run`` and ``file`` of the first of them.
    """

    series: pd.DataFrame
    points: pd.DataFrame


def values_of(rows: pd.DataFrame, statistic: str = "auto") -> pd.DataFrame:
    """Rows with their values (`value_column`) and, whatever the statistic, their ``mean``.

    ``auto`` decides for each benchmark by itself: one without samples, such as the start of a
    job, must not make means of all others.
    """
    rows = rows.reindex(columns=list(NEEDED))
    values = (
        by_benchmark(rows) if statistic == "auto" and len(rows) else value_column(rows, statistic)
    )
    latency, bandwidth = values["unit"] == "us", values["unit"] == "MB/s"
    mean = values["bandwidth_MBps"].where(bandwidth, values["messages_per_s"])
    return values.assign(mean=values["latency_us"].where(latency, mean))


def by_benchmark(rows: pd.DataFrame) -> pd.DataFrame:
    """Medians of those benchmarks whose rows all have one, means of the others."""
    has_median = rows["sample_p50_us"].notna() & (
        rows["latency_us"].notna() | rows["sample_mean_us"].notna()
    )
    all_have = has_median.groupby(rows["benchmark"]).transform("all")
    parts = [value_column(rows[all_have], "median"), value_column(rows[~all_have], "mean")]
    return pd.concat([part for part in parts if not part.empty] or parts[:1]).sort_index()


def points_of(values: pd.DataFrame) -> Points:
    """Points of rows that have their values (`values_of`, `overhead_values`)."""
    frame = values.reset_index(drop=True)
    names = [name for name in SERIES if name in frame]
    line = group_ids(frame[name] for name in names)
    place = group_ids([pd.Series(line), frame["bytes"]])
    first = pd.Series(np.arange(len(frame))).groupby(place).first().to_numpy()
    present = {name: column for name, column in MEDIANS.items() if column in frame}
    numbers = frame[list(dict.fromkeys(present.values()))].astype("float64")
    by_place = numbers.groupby(place)
    medians = by_place.median()
    points = pd.DataFrame({name: medians[column] for name, column in present.items()})
    points = points.reindex(columns=list(MEDIANS))
    points["minimum"] = by_place["value"].min()
    points["maximum"] = by_place["value"].max()
    points["runs"] = by_place.size()
    points["files"] = frame.groupby(place)["file"].nunique()
    for name in ("bytes", "run", "file"):
        points[name] = frame[name].to_numpy()[first]
    points["series"] = line[first]
    order = points.assign(size=pd.to_numeric(points["bytes"]).fillna(-1))
    order = order.sort_values(["series", "size"], kind="stable").drop(columns="size")
    _, start = np.unique(line, return_index=True)
    series = frame.reindex(columns=list(SERIES)).iloc[start].reset_index(drop=True)
    return Points(series, order.reset_index(drop=True))


def group_ids(columns: Iterable[pd.Series]) -> np.ndarray:
    """A number from 0 for each row, the same where all columns are; a missing value is a value.

    Numbers are in the order in which rows first appear.
    """
    combined: np.ndarray | None = None
    for column in columns:
        numbers, names = pd.factorize(column, use_na_sentinel=False)
        if combined is None:
            combined = numbers.astype("int64")
        elif len(names) > 1:
            combined = pd.factorize(combined * len(names) + numbers)[0]
    if combined is None:
        raise ValueError("rows need at least one column to tell them apart")
    return combined


def overhead_values(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of ``omb-py overhead`` in the shape of other rows: the value is what is added, in us.

    Only comparisons with the first binding: the others, which have a ``split``, say the same of
    its parts.
    """
    frame = rows[rows["split"].isna()].copy()
    frame["benchmark"] = "overhead " + frame["benchmark"].astype(str)
    frame["value"] = frame["added_us"]
    frame["low"], frame["high"] = frame["added_low_us"], frame["added_high_us"]
    frame["unit"] = "us"
    frame["lower_is_better"] = True
    frame["mean"] = frame["median_us"]
    return frame[frame["value"].notna()]


TELLING = ("source", "binding", "buffer", "mpi", "ranks", "part", *EXPERIMENT[1:], *CONFIGURATION)
"""What tells lines of a benchmark apart, the words that people look for first in front."""


def distinguishing_columns(frame: pd.DataFrame, names: Sequence[str] = TELLING) -> list[str]:
    """The columns of ``names`` that tell a frame's rows apart, in their order.

    One that follows from another before it tells nothing more: what lies on a device does so
    because of its buffer.
    """
    found: dict[str, np.ndarray] = {}
    for name in dict.fromkeys(names):
        if name not in frame or frame[name].nunique(dropna=False) < 2:
            continue
        numbers = group_ids([frame[name]])
        if not any(is_determined_by(numbers, known) for known in found.values()):
            found[name] = numbers
    return list(found)


def is_determined_by(numbers: np.ndarray, known: np.ndarray) -> bool:
    """Whether rows that share a number in ``known`` share that in ``numbers``."""
    together = known * (int(numbers.max()) + 1) + numbers
    return len(np.unique(together)) == len(np.unique(known))

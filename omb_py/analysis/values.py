"""The number that a row is about, and how well it is known."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from omb_py.core.options import LIBRARY
from omb_py.core.text.units import size_text
from omb_py.core.text.words import count

CONFIGURATION = (
    "suite",
    "mpi",
    "buffer",
    "binding",
    "placement",
    "staged",
    "stream_sync",
    "send_mode",
    "sync",
    "cold",
    "library_algorithm",
    "algorithm",
    "segment",
    "group",
    "congestor",
    "variant",
    "source",
)
"""How it was measured: what lines of a figure tell apart, and what a comparison may be about."""

EXPERIMENT = (
    "benchmark",
    "part",
    "ranks",
    "hosts",
    "mpi_type",
    "window",
    "pairs",
    "root",
    "in_place",
    "layout",
    "topology",
    "window_kind",
    "window_sync",
    "test_calls",
    "compute_target",
    "partitions",
    "failed",
    "threads",
    "nodes",
    "split",
    "file_sync",
    "validated",
)
"""What was measured: rows that differ here are never compared. Message size comes on top."""

MEASURED = (
    *("latency_us", "latency_min_us", "latency_max_us", "bandwidth_MBps", "messages_per_s"),
    *("sample_mean_us", "sample_stddev_us", "sample_p50_us", "sample_p99_us"),
)
"""Some of what is measured: enough to tell whether a row was printed with two decimals."""

NUMBERS = (
    *("latency_us", "bandwidth_MBps", "messages_per_s", "sample_mean_us", "sample_p50_us"),
    *("median_low_us", "median_high_us", "sample_min_us", "sample_p95_us", "payload_bytes"),
    "percentiles",
)
"""The columns that a row's own number and its intervals come from."""

HALF_DIGIT = 0.005

MEDIAN = r"(?:^| )p50=(\S+)"
"""The median among printed percentiles."""

HOST = "H"
"""The placement of messages in host memory."""

PLACE = re.compile(r":\d+\Z")
"""What the name of a run ends with that is the place of a table in a text."""


def value_column(rows: pd.DataFrame, statistic: str = "auto") -> pd.DataFrame:
    """A copy of benchmark rows with columns about each row's own number.

    ``value`` in ``unit`` (``us``, ``MB/s`` or ``msg/s``), ``lower_is_better``; ``low`` and
    ``high``, the 95 % interval of the median, and ``spread_low`` and ``spread_high``, the minimum
    and 95th percentile (for a bandwidth the corresponding ones), each missing where there are no
    samples, the spread also where a mean is outside it; and ``statistic``, which of median and mean
    the value is. ``auto`` takes medians if every row has one, else means, so that like is compared
    with like. A bandwidth's median is its value times mean over median of its samples' times, for
    it is inversely proportional to them.
    Rows without a number, or with one that is not above 0, are left out.
    """
    frame = with_values(rows, statistic)
    return frame[frame["value"] > 0]


def with_values(rows: pd.DataFrame, statistic: str = "auto") -> pd.DataFrame:
    """`value_column` that keeps rows whose number is not above 0, with a missing ``value``."""
    frame = rows.copy()
    if "placement" in frame:
        frame["placement"] = with_host(frame["placement"])
    latency = frame["latency_us"].notna()
    bandwidth = ~latency & frame["bandwidth_MBps"].notna()
    rate = ~latency & ~bandwidth & frame["messages_per_s"].notna()
    mean = frame["latency_us"].where(latency, exact_bandwidth(frame))
    mean = mean.where(~rate, frame["messages_per_s"])
    frame["unit"] = "us"
    frame.loc[bandwidth, "unit"] = "MB/s"
    frame.loc[rate, "unit"] = "msg/s"
    frame["lower_is_better"] = latency
    usable = (latency | bandwidth | rate) & (mean > 0)
    sampled = frame["sample_p50_us"].notna() & (latency | frame["sample_mean_us"].notna())
    printed = printed_medians(frame).where(bandwidth & ~sampled)
    median = sampled | printed.notna()
    if statistic == "auto":
        statistic = "median" if bool(median[usable].all()) else "mean"
    use_median = median & (statistic == "median")

    def of_samples(name: str) -> pd.Series:
        return frame[name].where(latency, mean * frame["sample_mean_us"] / frame[name])

    medians = of_samples("sample_p50_us").where(sampled, printed)
    frame["value"] = mean.where(~use_median, medians).where(usable)
    frame["statistic"] = use_median.map({True: "median", False: "mean"})
    for column, fast, slow in (
        (("low", "high"), "median_low_us", "median_high_us"),
        (("spread_low", "spread_high"), "sample_min_us", "sample_p95_us"),
    ):
        first, second = of_samples(fast), of_samples(slow)
        frame[column[0]] = first.where(latency, second)
        frame[column[1]] = second.where(latency, first)
    frame.loc[~use_median, ["low", "high"]] = float("nan")
    outside = (frame["value"] < frame["spread_low"]) | (frame["value"] > frame["spread_high"])
    frame.loc[outside, ["spread_low", "spread_high"]] = float("nan")
    return frame[latency | bandwidth | rate]


def with_host(placement: pd.Series) -> pd.Series:
    """Placements, those that a file lacks being on the host where all others are.

    Else rows of a file without the column would be a line of their own.
    """
    return placement.fillna(HOST) if set(placement.dropna()) == {HOST} else placement


def printed_medians(rows: pd.DataFrame) -> pd.Series:
    """The median that ``-z50`` printed, in the unit of the benchmark's value; missing elsewhere."""
    if "percentiles" not in rows or rows["percentiles"].isna().all():
        return pd.Series(np.nan, rows.index)
    found = rows["percentiles"].astype("string").str.extract(MEDIAN, expand=False)
    return pd.to_numeric(found, errors="coerce").astype("float64")


def exact_bandwidth(rows: pd.DataFrame) -> pd.Series:
    """Bandwidths in MB/s, those printed with two decimals as bytes times messages per second.

    Only where that agrees with what was printed and is the more exact of the two: below 1 MB.
    """
    bandwidth = rows["bandwidth_MBps"]
    size = travelling(rows)
    product = size * rows["messages_per_s"] / 1e6
    agree = (bandwidth - product).abs() <= HALF_DIGIT * (1 + size / 1e6) + 1e-9
    return bandwidth.where(~(agree & (size < 1e6) & two_decimals(bandwidth)), product)


def travelling(rows: pd.DataFrame) -> pd.Series:
    """Bytes of each row's messages: fewer than its message size where its layout has gaps."""
    frame = rows.reindex(columns=["bytes", "payload_bytes"]).astype("Float64").astype("float64")
    return frame["payload_bytes"].where(frame["payload_bytes"] > 0, frame["bytes"])


def two_decimals(values: pd.Series) -> pd.Series:
    """Whether each number has no more than two decimals; a missing one has none."""
    hundredths = values.astype("float64") * 100
    return ~((hundredths - hundredths.round()).abs() > 1e-6)


def of_text(rows: pd.DataFrame) -> pd.Series:
    """Whether rows are of a program's text, whose readers name a run by the line it begins at."""
    runs = rows["run"].unique()
    texts = [run for run in runs if isinstance(run, str) and PLACE.search(run)]
    return rows["run"].isin(texts)


def rounding(rows: pd.DataFrame) -> pd.Series:
    """How far each row's own number may be off, in its unit, because it was printed rounded.

    Half of the last digit of text whose numbers have two decimals, as native OMB's and others';
    0 in tables with all digits.
    """
    names = [name for name in MEASURED if name in rows]
    printed = pd.concat([two_decimals(rows[name]) for name in names], axis=1).all(axis=1)
    printed &= of_text(rows)
    of_product = ~(exact_bandwidth(rows) == rows["bandwidth_MBps"]) & rows["latency_us"].isna()
    digit = (HALF_DIGIT * travelling(rows) / 1e6).where(
        of_product & rows["bandwidth_MBps"].notna() & printed_medians(rows).isna(), HALF_DIGIT
    )
    return digit.where(printed, 0.0)


def differing_columns(
    rows: pd.DataFrame, columns: Sequence[str] = (*CONFIGURATION, "ranks")
) -> list[str]:
    """The columns of ``columns`` in which rows differ."""
    return [name for name in columns if name in rows and rows[name].nunique(dropna=False) > 1]


def label(values: Iterable[object], columns: Sequence[str]) -> str:
    """A line's name in a legend: its values, with the column where a value alone says nothing.

    >>> label(("numpy", 8, False), ("buffer", "ranks", "in_place"))
    'numpy, 8 ranks, not in place'
    """
    parts = []
    for value, name in zip(values, columns, strict=True):
        if value is None or pd.isna(value):
            continue
        if name in ("ranks", "hosts", "pairs", "nodes", "partitions"):
            parts.append(count(int(str(value)), name.removesuffix("s")))
        elif isinstance(value, bool | np.bool_):
            parts.append(f"{'' if value else 'not '}{name.replace('_', ' ')}")
        elif name in (
            "window",
            "sync",
            "threads",
            "root",
            "send_mode",
            "split",
            "group",
            "congestor",
        ):
            parts.append(f"{name.replace('_', ' ')} {value}")
        elif name == "library_algorithm":
            parts.append(f"{str(value).replace('_', ' ')} algorithm")
        elif name == "algorithm":
            words = str(value).replace("_", " ")
            parts.append(words if value == LIBRARY else f"own {words}")
        elif name == "segment":
            parts.append(f"segments of {size_text(float(str(value)))}")
        else:
            parts.append(str(value))
    return ", ".join(parts)

"""The number that a row is about, and how well it is known."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from omb_py.benchmarks.startup import BENCHMARKS as START_UP
from omb_py.core.errors import UsageError
from omb_py.core.text.units import is_time, value_text

MEASURED = (
    *("latency_us", "latency_min_us", "latency_max_us", "bandwidth_MBps", "messages_per_s"),
    *("sample_mean_us", "sample_stddev_us", "sample_p50_us", "sample_p99_us"),
)
"""Some of the measured columns: enough to detect rows printed with two decimals."""

NUMBERS = (
    *("latency_us", "bandwidth_MBps", "messages_per_s", "sample_mean_us", "sample_p50_us"),
    *("median_low_us", "median_high_us", "sample_min_us", "sample_p95_us", "payload_bytes"),
    *("percentiles", "validation", "stopped_s"),
)
"""The columns that a row's own number and its intervals come from."""

SAMPLES = (
    *("sample_mean_us", "sample_p50_us", "median_low_us", "median_high_us"),
    *("sample_min_us", "sample_p95_us"),
)

TAIL = "p99"
TAIL_COLUMNS = ("sample_p99_us", "iterations")
TAIL_ITERATIONS = 1000
"""Iterations from which a 99th percentile is compared: ten of them are then above it."""

ENDS = ("low", "high", "spread_low", "spread_high")
"""Ends of the interval and of the spread of a value or a point."""

BUS = "GB/s busbw"
"""The unit of references that are bus bandwidths, column ``busbw_GBps`` of results."""

HALF_DIGIT = 0.005

MEDIAN = r"(?:^| )p50=(\S+)"
"""The median among printed percentiles."""

HOST = "H"
"""The placement of messages in host memory."""

PLACE = re.compile(r":\d+\Z")
"""The end of a run's name that is the place of a table in a text."""


BENCHMARK = ("benchmark",)
"""The columns of what stands side by side in a figure or a table, in one statistic."""


def value_column(
    rows: pd.DataFrame, statistic: str = "auto", alike: Sequence[str] = BENCHMARK
) -> pd.DataFrame:
    """Return a copy of benchmark rows with columns about each row's own number.

    ``value`` in ``unit`` (``us``, ``MB/s`` or ``msg/s``); ``low`` and ``high``, the 95 % interval
    of the median, and ``spread_low`` and ``spread_high``, the minimum and 95th percentile (for a
    bandwidth the corresponding ones), each missing without samples, the spread also if a mean is
    outside it; and ``statistic`` (`chosen_medians`), median or mean. A bandwidth's median is its
    value times mean over median of its samples' times, for it is inversely proportional to them.
    Rows without a number, with one that is not above 0, or `spoilt` ones are left out.
    """
    frame = with_values(rows, statistic, alike)
    return frame[frame["value"] > 0]


WRONG = "the data was wrong (validation Fail)"
STOPPED = "the job was stopped meanwhile (stopped_s)"
FAULTS = {"validation": WRONG, "stopped_s": STOPPED}
"""Why a row's number is not used, by the column that says so."""


def faults(rows: pd.DataFrame) -> pd.Series:
    """Return why the number of each row is not used, `WRONG` or `STOPPED`; missing for others."""
    found = pd.Series(None, rows.index, dtype=object)
    if "stopped_s" in rows:
        found[pd.to_numeric(rows["stopped_s"]).gt(0).fillna(False).astype(bool)] = STOPPED
    if "validation" in rows:
        found[rows["validation"].eq("Fail").fillna(False).astype(bool)] = WRONG
    return found


def spoilt(rows: pd.DataFrame) -> pd.Series:
    """Return whether the number of each row is not used (`faults`)."""
    return faults(rows).notna()


def check_statistic(statistic: str) -> None:
    """Raise `UsageError` for a statistic that no row has."""
    if statistic not in ("auto", "median", "mean"):
        raise UsageError(f"there is no statistic {statistic!r}: choose from auto, median, mean")


def with_values(
    rows: pd.DataFrame, statistic: str = "auto", alike: Sequence[str] = BENCHMARK
) -> pd.DataFrame:
    """Return all rows as `value_column`'s.

    ``value`` is missing for a number that is not above 0, and in `spoilt` rows.
    """
    check_statistic(statistic)
    frame = rows.copy()
    if "placement" in frame:
        known = frame["placement"].groupby(frame["benchmark"], dropna=False)
        frame["placement"] = known.transform(with_host)
    latency = frame["latency_us"].notna()
    bandwidth = ~latency & frame["bandwidth_MBps"].notna()
    rate = ~latency & ~bandwidth & frame["messages_per_s"].notna()
    mean = frame["latency_us"].where(latency, exact_bandwidth(frame))
    mean = mean.where(~rate, frame["messages_per_s"])
    frame["unit"] = "us"
    frame.loc[bandwidth, "unit"] = "MB/s"
    frame.loc[rate, "unit"] = "msg/s"
    usable = (latency | bandwidth | rate) & (mean > 0) & ~spoilt(frame)
    sampled = frame["sample_p50_us"].notna() & (latency | frame["sample_mean_us"].notna())
    printed = printed_medians(frame).where(bandwidth & ~sampled)
    median = sampled | printed.notna()
    use_median = median & chosen_medians(frame, median | ~usable, statistic, alike)

    def of_samples(name: str) -> pd.Series:
        return frame[name].where(latency, mean * frame["sample_mean_us"] / frame[name])

    medians = of_samples("sample_p50_us").where(sampled, printed)
    frame["value"] = mean.where(~use_median, medians).where(usable)
    frame["statistic"] = use_median.map({True: "median", False: "mean"})
    ends = [*map(of_samples, ("median_low_us", "median_high_us", "sample_min_us", "sample_p95_us"))]
    for place, name in enumerate(ENDS):
        frame[name] = ends[place].where(latency, ends[place ^ 1])  # a long time is a low bandwidth
    frame.loc[~use_median, ["low", "high"]] = float("nan")
    outside = (frame["value"] < frame["spread_low"]) | (frame["value"] > frame["spread_high"])
    frame.loc[outside, ["spread_low", "spread_high"]] = float("nan")
    return frame[latency | bandwidth | rate]


def chosen_medians(
    rows: pd.DataFrame, have: pd.Series, statistic: str, alike: Sequence[str]
) -> pd.Series:
    """Return for each row whether its number is a median, if it has one; else it is a mean.

    ``auto`` takes medians if all rows that agree in the columns ``alike`` ``have`` one, so that
    like is compared with like: all rows of a benchmark if they are laid side by side (`BENCHMARK`),
    those of a series where each is judged by itself (`columns.IDENTITY`).
    """
    if statistic != "auto":
        return pd.Series(statistic == "median", rows.index)
    keys = [rows[name] for name in alike if name in rows]
    return have.groupby(keys, dropna=False).transform("all").astype(bool)


def tails(means: pd.DataFrame) -> pd.Series:
    """99th percentiles of the times of `TAIL_ITERATIONS` or more, in the unit of the value."""
    tail = means["sample_p99_us"].where(means["iterations"] >= TAIL_ITERATIONS)
    rates = means["value"] * means["sample_mean_us"] / tail
    return tail.where(is_time(means["unit"]), rates).where(tail > 0)


def with_unit(value: float, unit: str) -> str:
    """Return a value with its unit, a bus bandwidth in GB/s as other bandwidths."""
    return f"{value_text(1000 * value, 'MB/s')} bus" if unit == BUS else value_text(value, unit)


def own_number(rows: pd.DataFrame) -> pd.Series:
    """Return each row's number as its file has it: a latency, else a bandwidth, else a message
    rate."""
    return rows["latency_us"].fillna(rows["bandwidth_MBps"]).fillna(rows["messages_per_s"])


def with_host(placement: pd.Series) -> pd.Series:
    """Return placements of a benchmark; a missing one is the host if all others are there.

    Else rows of a file without the column would be a line of their own.
    """
    return placement.fillna(HOST) if set(placement.dropna()) == {HOST} else placement


def same_ends(placement: str) -> str:
    """Return the placement of both ends as one if they are alike.

    >>> same_ends("D D"), same_ends("D H")
    ('D', 'D H')
    """
    ends = placement.split()
    return ends[0] if len(set(ends)) == 1 else placement


def printed_medians(rows: pd.DataFrame) -> pd.Series:
    """Return the median that ``-z50`` printed, in the unit of the benchmark's value; missing
    elsewhere."""
    if "percentiles" not in rows or rows["percentiles"].isna().all():
        return pd.Series(np.nan, rows.index)
    found = rows["percentiles"].astype("string").str.extract(MEDIAN, expand=False)
    return pd.to_numeric(found, errors="coerce").astype("float64")


def exact_bandwidth(rows: pd.DataFrame) -> pd.Series:
    """Return bandwidths in MB/s, those printed with two decimals as bytes times messages per
    second.

    The product is used only if it agrees with the printed number and is more exact: below 1 MB.
    """
    bandwidth = rows["bandwidth_MBps"]
    size = travelling(rows)
    product = size * rows["messages_per_s"] / 1e6
    agree = (bandwidth - product).abs() <= HALF_DIGIT * (1 + size / 1e6) + 1e-9
    return bandwidth.where(~(agree & (size < 1e6) & two_decimals(bandwidth)), product)


def travelling(rows: pd.DataFrame) -> pd.Series:
    """Return bytes of each row's messages: fewer than its message size where its layout has
    gaps."""
    frame = rows.reindex(columns=["bytes", "payload_bytes"]).astype("Float64").astype("float64")
    return frame["payload_bytes"].where(frame["payload_bytes"] > 0, frame["bytes"])


def two_decimals(values: pd.Series) -> pd.Series:
    """Return whether each number has two decimals at most; true for a missing number."""
    hundredths = values.astype("float64") * 100
    return ~((hundredths - hundredths.round()).abs() > 1e-6)


def of_text(rows: pd.DataFrame) -> pd.Series:
    """Return whether rows are of a program's text, whose runs are named by their first line."""
    runs = rows["run"].unique()
    texts = [run for run in runs if isinstance(run, str) and PLACE.search(run)]
    return rows["run"].isin(texts)


def rounding(rows: pd.DataFrame) -> pd.Series:
    """Return the largest rounding error of each row's own number, in its unit.

    It is half of the last digit of text with two decimals, as native OMB's and others'; 0 in tables
    with all digits.
    """
    names = [name for name in MEASURED if name in rows]
    printed = pd.concat([two_decimals(rows[name]) for name in names], axis=1).all(axis=1)
    printed &= of_text(rows)
    of_product = ~(exact_bandwidth(rows) == rows["bandwidth_MBps"]) & rows["latency_us"].isna()
    digit = (HALF_DIGIT * travelling(rows) / 1e6).where(
        of_product & rows["bandwidth_MBps"].notna() & printed_medians(rows).isna(), HALF_DIGIT
    )
    return digit.where(printed, 0.0)


@dataclass(frozen=True)
class Quantity:
    """A choice of ``--value``: words for an axis, and its column.

    A time stands in the latency's place, with its own ``median``; a bandwidth or a rate has the
    row's samples; the only statistic of a ``plain`` one is itself.
    """

    words: str
    column: str = ""
    median: str = ""
    plain: bool = False


QUANTITIES = {
    "auto": Quantity(""),
    "latency": Quantity("Latency", "latency_us", "sample_p50_us"),
    "bandwidth": Quantity("Bandwidth", "bandwidth_MBps"),
    "rate": Quantity("Message rate", "messages_per_s"),
    "algbw": Quantity("Algorithm bandwidth", "algbw_GBps"),
    "busbw": Quantity("Bus bandwidth", "busbw_GBps"),
    "slowest": Quantity("Latency of the slowest rank", "slowest_mean_us", "slowest_p50_us"),
    "event": Quantity("Latency by device events", "event_mean_us", "event_p50_us"),
    "queued": Quantity("Time to start", "queued_mean_us", "queued_p50_us"),
    "overall": Quantity("Communication and computing together", "overall_us", "overall_p50_us"),
    "p99": Quantity("99th percentile of latency", "sample_p99_us", plain=True),
    "p999": Quantity("99.9th percentile of latency", "sample_p999_us", plain=True),
    "overlap": Quantity("Overlap with computing", "overlap_percent", plain=True),
}

WORDS = {"us": "Latency", "MB/s": "Bandwidth", "msg/s": "Message rate"}


TIMES = tuple(benchmark.name for benchmark in START_UP)
"""Benchmarks whose number is a time in which no message is sent."""


def measured(rows: pd.DataFrame, value: str = "auto", statistic: str = "auto") -> pd.DataFrame:
    """Return rows with the columns of `value_column` and the axis's ``words``.

    ``value`` is a name of `QUANTITIES`. Rows without that number are left out. Raises `UsageError`
    if no row has it, or for an unknown name.
    """
    if value not in QUANTITIES:
        raise UsageError(f"there is no value {value!r}: choose from {', '.join(QUANTITIES)}")
    quantity = QUANTITIES[value]
    rows = rows[~spoilt(rows)]
    if not quantity.column:
        found = value_column(rows, statistic)
        found["words"] = found["unit"].map(WORDS)
        found.loc[found["benchmark"].isin(TIMES) | found["part"].notna(), "words"] = "Time"
    else:
        found = select(rows[rows[quantity.column].notna()], quantity, statistic)
        found["words"] = quantity.words
    if found.empty:
        what = "a number" if value == "auto" else quantity.words[0].lower() + quantity.words[1:]
        raise UsageError(f"no row has {what} ({quantity.column or 'latency_us or bandwidth_MBps'})")
    return found


def select(rows: pd.DataFrame, quantity: Quantity, statistic: str) -> pd.DataFrame:
    """Return rows with another quantity as their ``value``, which `value_column` takes for their
    own."""
    name = quantity.column
    is_time = name.endswith("_us")
    frame = rows[rows["latency_us"].notna() | (not is_time)].copy()
    if quantity.plain:
        unit = "us" if is_time else "%"
        return frame.assign(
            value=frame[name], unit=unit, statistic="", **dict.fromkeys(ENDS, np.nan)
        )
    if not is_time:
        rate = np.nan if name == "messages_per_s" else frame[name]
        factor = 1e3 if name.endswith("GBps") else 1.0
        frame = frame.assign(latency_us=np.nan, bandwidth_MBps=rate * factor)
    elif name != "latency_us":
        own = {"latency_us": frame[name], "sample_p50_us": frame[quantity.median]}
        frame = frame.assign(**dict.fromkeys(SAMPLES, np.nan) | own)
    return value_column(frame, statistic)

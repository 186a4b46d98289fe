"""Which number of a row a figure shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from omb_py.analysis.values import value_column
from omb_py.core.errors import UsageError

NUMBERS = ("value", "low", "high", "spread_low", "spread_high")

SAMPLES = ("sample_mean_us", "sample_p50_us", "median_low_us", "median_high_us")
EXTREMES = ("sample_min_us", "sample_p95_us")


@dataclass(frozen=True)
class Quantity:
    """What ``--value`` names: words for an axis, and the column it comes from.

    ``kind`` tells how: ``own`` is the row's own number, ``latency`` a column of times that stands
    in the latency's place, ``bandwidth`` one of bandwidths in 10^9 bytes/s with the row's samples,
    ``rate`` messages per second, ``plain`` a column as it is, whose only statistic it is.
    """

    words: str
    kind: str
    column: str = ""
    median: str = ""


QUANTITIES = {
    "auto": Quantity("", "own"),
    "latency": Quantity("Latency", "latency", "latency_us", "sample_p50_us"),
    "bandwidth": Quantity("Bandwidth", "bandwidth", "bandwidth_MBps"),
    "rate": Quantity("Message rate", "rate", "messages_per_s"),
    "algbw": Quantity("Algorithm bandwidth", "bandwidth", "algbw_GBps"),
    "busbw": Quantity("Bus bandwidth", "bandwidth", "busbw_GBps"),
    "slowest": Quantity(
        "Latency of the slowest rank", "latency", "slowest_mean_us", "slowest_p50_us"
    ),
    "event": Quantity("Latency by device events", "latency", "event_mean_us", "event_p50_us"),
    "overall": Quantity(
        "Communication and computing together", "latency", "overall_us", "overall_p50_us"
    ),
    "p99": Quantity("99th percentile of latency", "plain", "sample_p99_us"),
    "p999": Quantity("99.9th percentile of latency", "plain", "sample_p999_us"),
    "overlap": Quantity("Overlap with computing", "plain", "overlap_percent"),
}

WORDS = {"us": "Latency", "MB/s": "Bandwidth", "msg/s": "Message rate"}


def is_measured(rows: pd.DataFrame, value: str = "auto", statistic: str = "auto") -> pd.DataFrame:
    """Rows with the columns of `omb_py.analysis.values.value_column` and the axis's ``words``.

    ``value`` is a name of `QUANTITIES`. Rows that have no such number are left out. Raises
    `UsageError` when none has it, or for a name that there is not.
    """
    if value not in QUANTITIES:
        raise UsageError(f"there is no value {value!r}: choose from {', '.join(QUANTITIES)}")
    quantity = QUANTITIES[value]
    if quantity.kind == "own":
        found = value_column(rows, statistic)
        found["words"] = found["unit"].map(WORDS)
    else:
        found = select(rows[rows[quantity.column].notna()], quantity, statistic)
        found["words"] = quantity.words
    if found.empty:
        what = "a number" if value == "auto" else quantity.words[0].lower() + quantity.words[1:]
        raise UsageError(f"no row has {what} ({quantity.column or 'latency_us or bandwidth_MBps'})")
    return found


def select(rows: pd.DataFrame, quantity: Quantity, statistic: str) -> pd.DataFrame:
    """Rows with another quantity as their ``value``, which `value_column` takes for their own."""
    frame = rows.copy()
    if quantity.kind == "plain":
        if quantity.column != "overlap_percent":
            frame = frame[frame["latency_us"].notna()].copy()
        frame["value"] = frame[quantity.column]
        frame["unit"] = "%" if quantity.column == "overlap_percent" else "us"
        frame["statistic"] = ""
        frame[["low", "high", "spread_low", "spread_high"]] = np.nan
        return frame
    if quantity.kind == "latency":
        if quantity.column == "latency_us":
            return value_column(frame, statistic)
        frame = frame[frame["latency_us"].notna()].copy()
        frame["latency_us"] = frame[quantity.column]
        samples = frame[quantity.median].copy()
        frame[[*SAMPLES, *EXTREMES]] = np.nan
        frame["sample_p50_us"] = samples
    else:
        factor = 1e3 if quantity.column.endswith("GBps") else 1.0
        numbers = frame[quantity.column] * factor
        frame[["latency_us", "bandwidth_MBps"]] = np.nan
        if quantity.kind == "bandwidth":
            frame["bandwidth_MBps"] = numbers
    return value_column(frame, statistic)

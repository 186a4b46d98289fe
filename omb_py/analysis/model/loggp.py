"""Parameters of LogGP that benchmarks can tell, and none that they cannot.

LogP: D. Culler et al., *LogP: towards a realistic model of parallel computation*, PPoPP 1993;
LogGP: A. Alexandrov et al., *LogGP: incorporating long messages into the LogP model*, SPAA 1995.
A message of k bytes takes L + 2o + (k - 1) G: so half a round trip tells L + 2o and, over sizes, G.
A window of W messages takes W times the greater of g and o, and besides between nothing and two
messages' times, the last one's and the answer's; so it encloses g, if g is greater than o.
L and o apart would need the time that a processor is busy with one message. What comes nearest is
the start of a non-blocking collective, which does more than send, or less: it is shown beside the
parameters and not as one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from omb_py.analysis.model.fit import Curve, Model

COLUMNS = (
    "benchmark",
    "curve",
    "first_bytes",
    "last_bytes",
    "L_plus_2o_us",
    "G_us_per_byte",
    "gap_bytes",
    "gap_low_us",
    "gap_high_us",
    "gap_from",
    "start_us",
    "start_from",
)

LATENCIES = {"latency": ("bw", "mbw_mr"), "latency_persistent": ("bw_persistent",)}
"""Half round trips, and the windows of the same messages."""


def loggp(model: Model) -> pd.DataFrame:
    """LogGP's parameters for each range of sizes of every latency between two ranks.

    ``gap_low_us`` and ``gap_high_us`` enclose g for messages of ``gap_bytes``, the smallest of the
    range that benchmark ``gap_from`` measured in the same configuration; empty where none did.
    ``start_us`` is the mean time of the call that starts ``start_from`` on two ranks.
    """
    return pd.DataFrame(
        [
            row
            for curve in model.curves
            if curve.benchmark in LATENCIES
            for row in of_curve(model, curve)
        ],
        columns=list(COLUMNS),
    )


def of_curve(model: Model, curve: Curve) -> list[dict[str, Any]]:
    """One latency's part of `loggp`."""
    rows = []
    for fitted in curve.lines.values():
        alike = same_configuration(model.rows, curve)
        for index, first in enumerate(fitted.first.tolist()):
            last = float(fitted.last[index])
            alpha, beta = float(fitted.fits.alpha[index]), float(fitted.fits.beta[index])
            told = fitted.degrees > 0 or alpha <= beta * last
            rows.append(
                {
                    "benchmark": curve.benchmark,
                    "curve": curve.label,
                    "first_bytes": int(first),
                    "last_bytes": int(last),
                    "L_plus_2o_us": alpha,
                    "G_us_per_byte": beta if told else None,
                    **gap_of(alike, curve, first, last),
                    **start(alike),
                }
            )
    return rows


def same_configuration(rows: pd.DataFrame, curve: Curve) -> pd.DataFrame:
    """Rows of two ranks that were measured as the curve was."""
    alike = rows["ranks"] == 2
    for name, value in curve.configuration.items():
        if name != "sync":
            alike &= rows[name].isna() if pd.isna(value) else rows[name].eq(value)
    return rows[alike.fillna(False)]


def gap_of(rows: pd.DataFrame, curve: Curve, first: float, last: float) -> dict[str, Any]:
    """Bounds of g from a window of the smallest messages between two sizes."""
    sizes, times = curve.points.sizes, curve.points.times
    for benchmark in LATENCIES[curve.benchmark]:
        windows = rows[
            (rows["benchmark"] == benchmark)
            & rows["window"].gt(0)
            & rows["bytes"].between(max(first, 1), last)
            & rows["pairs"].fillna(1).eq(1)
        ].sort_values(["bytes", "window"])
        if windows.empty:
            continue
        row = windows[windows["bytes"] == windows["bytes"].iloc[0]].iloc[-1]
        if not (sizes == row["bytes"]).any():
            continue
        message = float(times[sizes == row["bytes"]].mean())
        answer = float(times[sizes == sizes.min()].mean())
        window = int(row["window"])
        return {
            "gap_bytes": int(row["bytes"]),
            "gap_low_us": max(0.0, float(row["time_us"]) - (message + answer) / window),
            "gap_high_us": float(row["time_us"]),
            "gap_from": f"{benchmark}, window {window}",
        }
    return {}


def start(rows: pd.DataFrame) -> dict[str, Any]:
    """What starting the smallest non-blocking collective took."""
    started = rows[rows["start_us"].gt(0)].sort_values("bytes", na_position="first")
    for benchmark in ("ibcast", "igather", "iscatter"):
        row = started[started["benchmark"] == benchmark]
        if not row.empty:
            return {"start_us": float(np.float64(row["start_us"].iloc[0])), "start_from": benchmark}
    return {}

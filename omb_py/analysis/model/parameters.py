"""The parameters of a model as a table: of Hockney's model, LogGP, and the formulas over ranks.

LogP: D. Culler et al., *LogP: towards a realistic model of parallel computation*, PPoPP 1993;
LogGP: A. Alexandrov et al., *LogGP: incorporating long messages into the LogP model*, SPAA 1995. A
message of k bytes takes L + 2o + (k - 1) G: so half a round trip gives L + 2o and, over sizes, G. A
window of W messages takes W times the greater of g and o, plus up to two messages' times, the last
one's and the answer's; so it encloses g, if g is greater than o. L and o apart would need the time
that a processor is busy with one message.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from omb_py.analysis.model.fit import Curve, Model
from omb_py.analysis.model.lines import Fit

COLUMNS = (
    *("benchmark", "curve", "ranks", "first_bytes", "last_bytes", "algorithm", "formula"),
    *("place", "alpha_us", "alpha_low_us", "alpha_high_us", "beta_us_per_byte"),
    *("beta_low_us_per_byte", "beta_high_us_per_byte", "gamma_in_beta", "bandwidth_MBps"),
    *("bandwidth_low_MBps", "bandwidth_high_MBps", "half_bytes", "points", "rms_error"),
    *("worst_error", "gap_bytes", "gap_low_us", "gap_high_us", "gap_from"),
)
INTEGERS = ("first_bytes", "last_bytes", "place", "points", "gap_bytes")

LATENCIES = {"latency": ("bw", "mbw_mr"), "latency_persistent": ("bw_persistent",)}
"""Half round trips, and the windows of the same messages."""

AS_WELL = 1.5
"""Times the error of the best formula, up to which others fit as well."""


def parameters(model: Model) -> pd.DataFrame:
    """Return a row for each range of sizes of each fit.

    Fits over sizes have the formula ``alpha + n beta``, one row for each number of ranks and range
    of sizes. Fits over ranks have a row for each formula too: ``place`` 1 is the one that fits
    best, 2 and so on those that fit as well, and it is empty for the rest. Intervals (``low``,
    ``high``) are of 95 %. ``gamma_in_beta`` is how much of gamma is in beta. ``bandwidth_MBps`` is
    1 / beta, ``half_bytes`` alpha / beta, the size that reaches half of it. Errors are relative.
    Of latencies, alpha is LogGP's L + 2o and beta its G; ``gap_low_us`` and ``gap_high_us`` enclose
    g for messages of ``gap_bytes``, the smallest of the range that benchmark ``gap_from`` measured
    in the same configuration.
    """
    rows = [
        {"benchmark": curve.benchmark, "curve": curve.label, **row}
        for curve in model.curves
        for row in of_curve(curve, model.rows)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(dict.fromkeys(INTEGERS, "Int64"))


def of_curve(curve: Curve, rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield one curve's part of `parameters`, ``rows`` being all that were fitted."""
    for fits in curve.lines.values():
        for fitted in fits:
            gap = gap_of(rows, curve, fitted)
            yield {"formula": "alpha + n beta", "place": 1, **of_fit(fitted, True), **gap}
    for fits in curve.formulas:
        for place, fitted in enumerate(fits, start=1):
            if (algorithm := fitted.algorithm) is not None:
                yield {
                    "algorithm": algorithm.name,
                    "formula": algorithm.formula,
                    "gamma_in_beta": algorithm.gamma,
                    "place": place if fitted.rms <= AS_WELL * fits[0].rms else None,
                    **of_fit(fitted, curve.sized),
                }


def of_fit(fitted: Fit, sized: bool) -> dict[str, Any]:
    """Return costs of a fit with their intervals, and the quantities derived from them.

    The bandwidth is missing if beta is zero. It is also missing if it has no interval and half of
    it is reached only beyond the range: two small messages then differ only by noise. Errors need
    degrees of freedom.
    """
    alpha, beta = fitted.alpha, fitted.beta
    (alpha_low, alpha_high), (low, high) = fitted.intervals()
    first, last = fitted.first, fitted.last
    found = {
        "ranks": " ".join(map(str, fitted.ranks)),
        "alpha_us": alpha,
        "alpha_low_us": alpha_low,
        "alpha_high_us": alpha_high,
        "beta_us_per_byte": beta,
        "beta_low_us_per_byte": low,
        "beta_high_us_per_byte": high,
        "bandwidth_low_MBps": 1 / high if high > 0 else None,
        "bandwidth_high_MBps": 1 / low if low > 0 else None,
        "points": fitted.points,
    }
    if sized:
        found |= {"first_bytes": int(first), "last_bytes": int(last)}
    if beta > 0 and (low == low or alpha / beta <= last):
        found |= {"bandwidth_MBps": 1 / beta, "half_bytes": alpha / beta}
    if fitted.degrees > 0:
        found |= {"rms_error": fitted.rms, "worst_error": fitted.worst}
    return found


def gap_of(rows: pd.DataFrame, curve: Curve, fitted: Fit) -> dict[str, Any]:
    """Return bounds of g from a window of the smallest messages of a latency's range.

    The window has to be of two ranks and measured as the curve was.
    """
    sizes, times = curve.points.sizes, curve.points.times
    alike = rows["ranks"].eq(2) & rows["window"].gt(0) & rows["pairs"].fillna(1).eq(1)
    alike &= rows["bytes"].between(max(fitted.first, 1), fitted.last)
    for name, value in curve.configuration.items():
        if name != "sync":
            alike &= rows[name].isna() if pd.isna(value) else rows[name].eq(value)
    alike = rows[alike.fillna(False)].sort_values(["bytes", "window"])
    for benchmark in LATENCIES.get(curve.benchmark, ()):
        windows = alike[alike["benchmark"] == benchmark]
        if windows.empty:
            continue
        row = windows[windows["bytes"] == windows["bytes"].iloc[0]].iloc[-1]
        if not (sizes == row["bytes"]).any():
            continue
        message = float(times[sizes == row["bytes"]].mean())
        answer = float(times[sizes == sizes.min()].mean())
        each, window = float(row["time_us"]), int(row["window"])
        return {
            "gap_bytes": int(row["bytes"]),
            "gap_low_us": max(0.0, each - (message + answer) / window),
            "gap_high_us": each,
            "gap_from": f"{benchmark}, window {window}",
        }
    return {}

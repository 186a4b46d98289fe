"""The parameters of a model as a table for programs, and as one for people."""

from __future__ import annotations

from typing import Any

import pandas as pd

from omb_py.analysis.model import fit
from omb_py.analysis.model.fit import Model
from omb_py.analysis.model.lines import Fit
from omb_py.analysis.table import Source, results_of
from omb_py.core.text import tables
from omb_py.core.text.tables import Sheet, Target
from omb_py.core.text.units import amount, digits, size_text, value_text
from omb_py.core.text.words import first_of

COLUMNS = (
    *("benchmark", "curve", "ranks", "first_bytes", "last_bytes", "alpha_us", "alpha_low_us"),
    *("alpha_high_us", "beta_us_per_byte", "beta_low_us_per_byte", "beta_high_us_per_byte"),
    *("bandwidth_MBps", "bandwidth_low_MBps", "bandwidth_high_MBps", "half_bytes", "points"),
    *("rms_error", "worst_error"),
)
INTEGERS = ("ranks", "first_bytes", "last_bytes", "points")


def model(source: Source, statistic: str = "auto") -> pd.DataFrame:
    """Fit costs of communication to results: see `parameters`, with notes in ``attrs["notes"]``.

    ``source`` are files or folders, results of `load` or `run`, or a table of their rows;
    ``statistic`` is ``auto``, ``median`` or ``mean``. Raises `OmbError` if no curve has two sizes.
    """
    results = results_of(source)
    fitted = fit.model(results.rows, results.runs, statistic)
    table = parameters(fitted)
    table.attrs["notes"] = list(fitted.notes)
    return table


def parameters(model: Model) -> pd.DataFrame:
    """Return a row of alpha + n beta for each range of sizes of each curve.

    Intervals (``low``, ``high``) are of 95 %. ``bandwidth_MBps`` is 1 / beta, ``half_bytes``
    alpha / beta, the size that reaches half of it. Errors are relative.
    """
    rows = [
        {
            "benchmark": curve.benchmark,
            "curve": curve.label,
            "ranks": curve.ranks,
            **of_fit(fitted),
        }
        for curve in model.curves
        for fitted in curve.fits
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(dict.fromkeys(INTEGERS, "Int64"))


def of_fit(fitted: Fit) -> dict[str, Any]:
    """Return costs of a fit with their intervals, and the quantities derived from them.

    The bandwidth is missing if beta is zero. It is also missing if it has no interval and half of
    it is reached only beyond the range: two small messages then differ only by noise. Errors need
    degrees of freedom.
    """
    alpha, beta = fitted.alpha, fitted.beta
    (alpha_low, alpha_high), (low, high) = fitted.intervals()
    first, last = fitted.first, fitted.last
    found = {
        "first_bytes": int(first),
        "last_bytes": int(last),
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
    if beta > 0 and (low == low or alpha / beta <= last):
        found |= {"bandwidth_MBps": 1 / beta, "half_bytes": alpha / beta}
    if fitted.degrees > 0:
        found |= {"rms_error": fitted.rms, "worst_error": fitted.worst}
    return found


def write(model: Model, to: Target) -> None:
    """Write the parameters of curves, and the notes."""
    table = parameters(model)
    notes = [*model.notes]
    if model.skipped:
        notes.append(f"Not fitted, for there is one message size: {first_of(model.skipped)}.")
    facts = {"notes": list(model.notes), "not_fitted": list(model.skipped)}
    tables.write(to, [sheet(table)], table, notes, facts)


def sheet(table: pd.DataFrame) -> Sheet:
    """Return alpha and beta of each range of sizes."""
    rows = []
    for row in table.to_dict("records"):
        sizes, alpha, rate, error = costs(row)
        half = "-" if pd.isna(row["half_bytes"]) else amount(row["half_bytes"])
        rows.append((name_with_ranks(row), sizes, alpha, rate, half, error))
    return Sheet(
        "Costs over message sizes: T(n) = alpha + n beta (Hockney)",
        ("curve", "sizes", "alpha (95 %)", "1 / beta (95 %)", "n1/2", "error rms / worst"),
        tuple(rows),
        (
            "n1/2 = alpha / beta: the size that reaches half of 1 / beta. Errors are relative.",
            "Of bandwidths, T is the time of one message: bytes over bandwidth.",
        ),
    )


def costs(row: dict[str, Any]) -> tuple[str, str, str, str]:
    """Return sizes, alpha, 1 / beta and errors of a fit; a lower bound of 1 / beta if beta may be
    0."""
    rate, low, high = (row[f"bandwidth_{name}MBps"] for name in ("", "low_", "high_"))
    text = "-" if pd.isna(low) else f"over {value_text(low, 'MB/s')}"
    if not pd.isna(rate) and (pd.isna(low) or not pd.isna(high)):
        text = with_interval(rate, low, high, "MB/s")
    return (
        between(row["first_bytes"], row["last_bytes"]),
        with_interval(row["alpha_us"], row["alpha_low_us"], row["alpha_high_us"], "us"),
        text,
        f"{percent(row['rms_error'])} / {percent(row['worst_error'])}",
    )


def between(first: float, last: float) -> str:
    """Return a range of sizes as text.

    >>> between(64, 65536), between(64, 64)
    ('64 B to 64 KiB', '64 B')
    """
    return size_text(first) if first == last else f"{size_text(first)} to {size_text(last)}"


def with_interval(value: float, low: float, high: float, unit: str) -> str:
    """Return a value with its limits, the unit once if it is the same."""
    if pd.isna(low) or pd.isna(high):
        return value_text(value, unit)
    texts = [value_text(each, unit) for each in (value, low, high)]
    numbers, names = zip(*(text.split(" ", 1) for text in texts), strict=True)
    if len({*names}) == 1:
        return f"{numbers[0]} ({numbers[1]} to {numbers[2]}) {names[0]}"
    return f"{texts[0]} ({texts[1]} to {texts[2]})"


def name_with_ranks(row: dict[str, Any]) -> str:
    """Return a curve's name: the benchmark, the values that distinguish it, its number of ranks."""
    ranks, name = f"{row['ranks']} ranks", f"{row['benchmark']} {row['curve']}".strip()
    return name if ranks in row["curve"] else f"{name}, {ranks}"


def percent(part: float) -> str:
    """Write a ratio as a percentage of two digits; a dash if it is missing."""
    return "-" if pd.isna(part) else f"{digits(100 * part, 2)} %"

"""A model as tables: for people, and as rows for programs."""

from __future__ import annotations

from typing import Any

import pandas as pd

from omb_py.analysis.model.fit import Model
from omb_py.analysis.model.parameters import LATENCIES, parameters
from omb_py.core.text import tables
from omb_py.core.text.tables import Sheet, Target
from omb_py.core.text.units import amount, digits, size_text, value_text
from omb_py.core.text.words import first_of


def write(model: Model, to: Target) -> None:
    """Write the parameters of curves over sizes and of formulas over ranks, and the notes."""
    table = parameters(model)
    is_formula = table["algorithm"].notna()
    made = [over_sizes(table[~is_formula]), over_ranks(table[is_formula])]
    notes = [*model.notes]
    if model.skipped:
        notes.append(
            "Not fitted, for there is one message size and one number of ranks: "
            f"{first_of(model.skipped)}."
        )
    facts = {"notes": list(model.notes), "not_fitted": list(model.skipped)}
    tables.write(to, [one for one in made if one.rows], table, notes, facts)


def over_sizes(table: pd.DataFrame) -> Sheet:
    """Return alpha and beta of each range of sizes, and below them LogGP's gaps."""
    rows, gaps = [], []
    for row in table.to_dict("records"):
        sizes, alpha, rate, error = costs(row)
        half = "-" if pd.isna(row["half_bytes"]) else amount(row["half_bytes"])
        rows.append((name_with_ranks(row), sizes, alpha, rate, half, error))
        if not pd.isna(row["gap_high_us"]):
            low, high = (value_text(row[f"gap_{end}_us"], "us") for end in ("low", "high"))
            at = f"{size_text(row['gap_bytes'])} ({row['gap_from']})"
            gaps.append(f"g of {name_of(row)}, {sizes}: {low} to {high} at {at}")
    remarks = [
        "n1/2 = alpha / beta: the size that reaches half of 1 / beta. Errors are relative.",
        "Of bandwidths, T is the time of one message: bytes over bandwidth.",
    ]
    if table["benchmark"].isin(LATENCIES).any():
        remarks.append(
            "LogGP: of a latency, alpha is L + 2o, beta G; windows enclose g, or o if it is more."
        )
    return Sheet(
        "Costs over message sizes: T(n) = alpha + n beta (Hockney)",
        ("curve", "sizes", "alpha (95 %)", "1 / beta (95 %)", "n1/2", "error rms / worst"),
        tuple(rows),
        (*remarks, *gaps),
    )


def over_ranks(table: pd.DataFrame) -> Sheet:
    """Return the formula that fits best in each range, with those that fit as well."""
    rows = []
    keys = ["benchmark", "curve", "ranks", "first_bytes"]
    for _, group in table.groupby(keys, sort=False, dropna=False):
        best = group.iloc[0].to_dict()
        sizes, alpha, rate, error = costs(best)
        rate += " *" if best["gamma_in_beta"] else ""
        alike = ", ".join(group[group["place"].gt(1)]["algorithm"]) or "-"
        words = (name_of(best), best["algorithm"], best["formula"], best["ranks"])
        rows.append((*words, sizes, alpha, rate, error, alike))
    remarks = [
        "The formula that fits best is no proof that this algorithm ran; lg p is rounded up."
    ]
    if any(row[6].endswith("*") for row in rows):
        remarks.insert(0, "* beta holds gamma's part, which times cannot tell from it.")
    return Sheet(
        "Costs over ranks p and sizes n",
        (
            *("curve", "formula of", "T(p, n)", "ranks", "sizes", "alpha (95 %)"),
            *("1 / beta (95 %)", "error rms / worst", "fits as well"),
        ),
        tuple(rows),
        tuple(remarks),
        3,
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
    """Return a range of sizes as text; a dash for a missing range."""
    if pd.isna(first):
        return "-"
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


def name_of(row: dict[str, Any]) -> str:
    """Return a curve's name: the benchmark and the values that distinguish it from others."""
    return f"{row['benchmark']} {row['curve']}".strip()


def name_with_ranks(row: dict[str, Any]) -> str:
    """Return a curve's name with its number of ranks."""
    ranks = f"{row['ranks']} ranks"
    return name_of(row) if ranks in row["curve"] else f"{name_of(row)}, {ranks}"


def percent(part: float) -> str:
    """Write a ratio as a percentage of two digits; a dash if it is missing."""
    return "-" if pd.isna(part) else f"{digits(100 * part, 2)} %"

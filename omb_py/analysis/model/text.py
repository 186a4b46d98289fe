"""A model as tables: on a terminal, as Markdown, as CSV, as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from omb_py.analysis.model.fit import Model
from omb_py.analysis.model.loggp import loggp
from omb_py.analysis.model.parameters import parameters
from omb_py.core.text.tables import Sheet, Target
from omb_py.core.text.tables import write as write_tables
from omb_py.core.text.units import amount, digits, size_text, value_text
from omb_py.core.text.words import first_of

WIDEST_BAND = 1000.0
"""Quotient of a band's limits beyond which no prediction is shown."""


FAR = "no prediction"
FAR_IN_WORDS = (
    "No value where one number of ranks was measured, nor more than a doubling outside the "
    "measured sizes where they leave no band: measure more."
)


def sheets(model: Model, ranks: Sequence[int], sizes: Sequence[int]) -> Iterator[Sheet]:
    """All tables of a text."""
    table = parameters(model)
    yield over_sizes(table[table["algorithm"].isna()])
    yield of_loggp(loggp(model))
    yield of_formulas(table[table["algorithm"].notna()])
    yield of_predictions(model.predict(ranks, sizes))


def over_sizes(table: pd.DataFrame) -> Sheet:
    """Alpha and beta of each range of sizes."""
    rows = []
    for row in table.to_dict("records"):
        rows.append(
            (
                on_ranks(row),
                between(row["first_bytes"], row["last_bytes"]),
                time_with_interval(row),
                rate_with_interval(row),
                "-" if pd.isna(row["half_bytes"]) else amount(row["half_bytes"]),
                f"{percent(row['rms_error'])} / {percent(row['worst_error'])}",
                switch_text(row),
            )
        )
    return Sheet(
        "Costs over message sizes: T(n) = alpha + n beta (Hockney)",
        (
            "curve",
            "sizes",
            "alpha (95 %)",
            "1 / beta (95 %)",
            "n1/2",
            "error rms / worst",
            "next range begins (95 %)",
        ),
        tuple(rows),
        (
            "n1/2 = alpha / beta: the size that reaches half of 1 / beta. Errors are relative.",
            "Of bandwidths, T is the time of one message: bytes over bandwidth.",
        ),
    )


def of_loggp(table: pd.DataFrame) -> Sheet:
    """LogGP's parameters."""
    rows: list[tuple[str, ...]] = []
    starts: set[str] = set()
    for row in table.to_dict("records"):
        gap, per_byte = "-", row["G_us_per_byte"]
        if not pd.isna(row["gap_high_us"]):
            gap = (
                f"{value_text(row['gap_low_us'], 'us')} to {value_text(row['gap_high_us'], 'us')} "
                f"at {size_text(row['gap_bytes'])} ({row['gap_from']})"
            )
        rows.append(
            (
                name_of(row),
                between(row["first_bytes"], row["last_bytes"]),
                value_text(row["L_plus_2o_us"], "us"),
                "-" if pd.isna(per_byte) else f"{digits(per_byte * 1e3)} ns",
                gap,
            )
        )
        if not pd.isna(row["start_us"]):
            start = value_text(row["start_us"], "us")
            starts.add(f"{row['start_from']} took {start} to start ({row['curve'] or 'all'})")
    if not rows:
        return Sheet("LogGP", (), ())
    return Sheet(
        "LogGP",
        ("curve", "sizes", "L + 2o", "G per byte", "g per message"),
        tuple(rows),
        (
            "L and o cannot be told apart: a half round trip has one L and two o.",
            "g is enclosed by a window's time with and without its last message and answer; where "
            "o is greater than g, this is o.",
            *(
                f"{text}: an indication of o, no measurement, for it does more than send."
                for text in sorted(starts)
            ),
        ),
    )


def of_formulas(table: pd.DataFrame) -> Sheet:
    """The formula that fits best in each range, with those that fit as well."""
    rows, remarks = [], []
    untold: list[str] = []
    keys = ["benchmark", "curve", "ranks", "first_bytes"]
    for _, group in table.groupby(keys, sort=False, dropna=False):
        best = group.iloc[0].to_dict()
        alike = group[group["place"].gt(1)]["algorithm"].tolist()
        if " " not in best["ranks"]:
            untold += [name_of(best)] if name_of(best) not in untold else []
            continue
        gamma = best["gamma_in_beta"]
        name = best["algorithm"]
        if best["same_formula"]:
            name += f" (or {best['same_formula']})"
        rows.append(
            (
                name_of(best),
                name,
                best["formula"],
                best["ranks"],
                between(best["first_bytes"], best["last_bytes"]),
                time_with_interval(best),
                rate_with_interval(best) + (" *" if gamma else ""),
                f"{percent(best['rms_error'])} / {percent(best['worst_error'])}",
                ", ".join(alike) or "-",
            )
        )
    if any(row[6].endswith("*") for row in rows):
        remarks.append("* beta holds gamma's part, which times cannot tell from it.")
    if rows:
        remarks.append(
            "The formula that fits best is no proof that this algorithm ran; lg p is rounded up."
        )
    if untold:
        remarks.append(
            "Measured on one number of ranks, where all formulas fit alike and say nothing of "
            "others: " + ", ".join(untold) + "."
        )
    return Sheet(
        "Costs over ranks p and sizes n",
        (
            "curve",
            "formula of",
            "T(p, n)",
            "ranks",
            "sizes",
            "alpha (95 %)",
            "1 / beta (95 %)",
            "error rms / worst",
            "fits as well",
        ),
        tuple(rows),
        tuple(remarks),
        3,
    )


def of_predictions(table: pd.DataFrame) -> Sheet:
    """Predicted values with their bands."""
    rows = []
    for row in table.to_dict("records"):
        low, high = row["low"], row["high"]
        told = pd.isna(low) or high / low <= WIDEST_BAND
        rows.append(
            (
                name_of(row),
                str(row["ranks"]),
                "-" if pd.isna(row["bytes"]) else size_text(row["bytes"]),
                value_text(row["value"], row["unit"]) if told and row["value"] > 0 else "-",
                FAR if pd.isna(row["value"]) else band_text(low, high, row["unit"]),
                row["basis"],
            )
        )
    return Sheet(
        "Prediction",
        ("curve", "ranks", "size", "value", "95 % band", "from"),
        tuple(rows),
        (FAR_IN_WORDS,) if table["value"].isna().any() else (),
    )


def band_text(low: float, high: float, unit: str) -> str:
    """A band's limits, or why there are none."""
    if pd.isna(low):
        return "-"
    if high / low > WIDEST_BAND:
        return "no prediction: its limits differ by more than a factor of 1000"
    return f"{value_text(low, unit)} to {value_text(high, unit)}"


def between(first: float, last: float) -> str:
    """A range of sizes; a dash where there are none."""
    if pd.isna(first):
        return "-"
    return size_text(first) if first == last else f"{size_text(first)} to {size_text(last)}"


def time_with_interval(row: dict[str, Any]) -> str:
    """Alpha with its 95 % interval."""
    return with_interval(row["alpha_us"], row["alpha_low_us"], row["alpha_high_us"], "us")


def rate_with_interval(row: dict[str, Any]) -> str:
    """One over beta as a bandwidth; where beta may be zero, only what it is over."""
    rate, low, high = (row[f"bandwidth_{name}MBps"] for name in ("", "low_", "high_"))
    if pd.isna(rate) or (pd.isna(high) and not pd.isna(low)):
        return "-" if pd.isna(low) else f"over {value_text(low, 'MB/s')}"
    return with_interval(rate, low, high, "MB/s")


def on_ranks(row: dict[str, Any]) -> str:
    """A curve's name with its number of ranks."""
    ranks = f"{row['ranks']} ranks"
    return name_of(row) if ranks in row["curve"] else f"{name_of(row)}, {ranks}"


def with_interval(value: float, low: float, high: float, unit: str) -> str:
    """A value with its limits, the unit once where it is the same."""
    text = value_text(value, unit)
    if pd.isna(low) or pd.isna(high):
        return text
    limits = [value_text(low, unit), value_text(high, unit)]
    number, _, name = text.partition(" ")
    if all(limit.endswith(f" {name}") for limit in limits):
        short = [limit.partition(" ")[0] for limit in limits]
        return f"{number} ({short[0]} to {short[1]}) {name}"
    return f"{text} ({limits[0]} to {limits[1]})"


def name_of(row: dict[str, Any]) -> str:
    """A curve's name."""
    return f"{row['benchmark']} {row['curve']}".strip()


def switch_text(row: dict[str, Any]) -> str:
    """Where the next range begins, and between which sizes with 95 % confidence."""
    if pd.isna(row["next_after_bytes"]):
        return "-"
    text = between(row["next_after_bytes"], row["next_before_bytes"])
    wider = between(row["next_low_bytes"], row["next_high_bytes"])
    return text if wider == text else f"{text} ({wider})"


def percent(part: float) -> str:
    """A relative number in percent."""
    return "-" if pd.isna(part) else f"{digits(100 * part, 2)} %"


def write(model: Model, ranks: Sequence[int], sizes: Sequence[int], to: Target) -> None:
    """Write parameters and predictions.

    For programs they are one table, whose column ``table`` tells parameters, LogGP's and
    predictions apart.
    """
    tables = {
        "parameters": parameters(model),
        "loggp": loggp(model),
        "predictions": model.predict(ranks, sizes),
    }
    parts = [frame.assign(table=name) for name, frame in tables.items() if len(frame)]
    whole = pd.concat([part.astype(object) for part in parts], ignore_index=True)
    whole.insert(0, "table", whole.pop("table"))
    made = [sheet for sheet in sheets(model, ranks, sizes) if sheet.rows or sheet.remarks]
    facts = {"notes": list(model.notes), "not_fitted": list(model.skipped)}
    write_tables(to, made, whole, warnings_of(model), facts)


def warnings_of(model: Model) -> Iterator[str]:
    """What to bear in mind, and what is not in the tables."""
    yield from model.notes
    if model.skipped:
        yield (
            "Not fitted, for there is one message size and one number of ranks: "
            f"{first_of(model.skipped)}."
        )

"""Results beside their base: verdicts on points, and the words and numbers of the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from omb_py.analysis.points import distinctions, label
from omb_py.analysis.verdict import EQUAL, MARGIN, WITHIN, factor, percent
from omb_py.core.text.tables import Sheet
from omb_py.core.text.units import digits, size_text, value_text
from omb_py.results.columns import CONFIGURATION

VERDICTS = ("slower", "faster", WITHIN, EQUAL, "unclear")
"""Verdicts of points that both sides have."""

MAX_CHANGES = 60
"""Changes of one verdict that the page lists."""


@dataclass(frozen=True)
class Comparison:
    """The verdict on all points in a ``sentence``, how many points have which verdict, those that
    are not compared in words, and tables of those that changed, the maximum change first."""

    sentence: str
    counts: dict[str, int]
    not_compared: str
    changes: tuple[Sheet, ...]


def comparison(compared: pd.DataFrame) -> Comparison:
    """The page's words about a comparison."""
    found = Counter(compared["verdict"])
    counts = {verdict: found[verdict] for verdict in VERDICTS}
    others = {
        "only in the base": found["only in base"],
        "only here": found["only in other"],
        "with no number above 0": found["no value in base"] + found["no value in other"],
    }
    tables = tuple(changes(compared, verdict) for verdict in VERDICTS[:2] if counts[verdict])
    not_compared = ", ".join(f"{number:,} {why}" for why, number in others.items() if number)
    return Comparison(sentence(counts, tables), counts, not_compared, tables)


def sentence(counts: dict[str, int], tables: Sequence[Sheet]) -> str:
    """The verdict on all points, with the maximum change."""
    of = f"of {sum(counts.values()):,} points"
    if tables:
        verdict = tables[0].title.lower()
        benchmark, how, size, *_, slowdown, _ = tables[0].rows[0]
        at = ", ".join(filter(None, (benchmark, size, how)))
        rest = {name: number for name, number in counts.items() if number and name != verdict}
        others = ", ".join(f"{number:,} {name}" for name, number in rest.items()) or "no others"
        return (
            f"{tables[0].title} than the base at {counts[verdict]:,} {of}, slowdown "
            f"{'up' if verdict == 'slower' else 'down'} to {slowdown} ({at}); {others}."
        )
    equal = f"within {percent(MARGIN)} at {counts[EQUAL]:,}"
    if counts[WITHIN]:
        none = f"No difference from the base beyond the noise at {counts[WITHIN]:,} {of}"
        return none + f"; equal {equal}" * bool(counts[EQUAL]) + "."
    if counts[EQUAL]:
        return f"Equal to the base {equal} {of}."
    if sum(counts.values()):
        why = "too few runs to know what launches differ by"
        return f"Whether any {of} differs from the base is unclear: {why}."
    return "Nothing can be compared with the base: it has no point that is here, too."


def ratio(number: float, rounding: float) -> str:
    """A ratio of three digits, or of those that rounded numbers leave."""
    return factor(number, rounding).rstrip("x") if rounding else digits(number)


def column(name: str) -> str:
    """Where a comparison keeps what is a column of results."""
    return f"other_{name}" if name in CONFIGURATION else name


def changes(compared: pd.DataFrame, verdict: str) -> Sheet:
    """The maximum changes of a verdict as a table."""
    rows = compared[compared["verdict"] == verdict]
    rows = rows.sort_values("slowdown", ascending=verdict == "faster", kind="stable")
    listed = rows.head(MAX_CHANGES)
    own = compared[compared["benchmark"].isin(listed["benchmark"])].rename(
        columns={column(name): name for name in CONFIGURATION}
    )
    names = {name: distinctions(members) for name, members in own.groupby("benchmark")}
    more = f"and {len(rows) - MAX_CHANGES:,} more: omb-py compare lists all"
    return Sheet(
        verdict.capitalize(),
        ("Benchmark", "Measured with", "Size", "Base", "Now", "Slowdown", "95 % interval"),
        tuple(change(row, names[row["benchmark"]]) for row in listed.to_dict("records")),
        (more,) * (len(rows) > MAX_CHANGES),
        left=2,
    )


def change(row: dict[Any, Any], names: Sequence[str]) -> tuple[str, ...]:
    """The cells of one point that changed."""
    ends = [row["slowdown_low"], row["slowdown_high"]]
    return (
        str(row["benchmark"]),
        label([row[column(name)] for name in names], names),
        "" if pd.isna(row["bytes"]) else size_text(row["bytes"]),
        value_text(row["base"], row["unit"]),
        value_text(row["value"], row["unit"]),
        f"{ratio(row['slowdown'], row['rounding'])}\u00d7",
        "" if pd.isna(ends[0]) else " to ".join(ratio(end, row["rounding"]) for end in ends),
    )

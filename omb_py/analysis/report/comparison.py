"""Results beside their base: verdicts on points, and the words and numbers of the page."""

from __future__ import annotations

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
    """How many points have which verdict, and those that changed, the maximum change first.

    ``numberless`` are points of both sides of which one has no number above 0.
    """

    counts: dict[str, int]
    only_base: int
    only_other: int
    numberless: int
    slower: Sheet
    faster: Sheet

    @property
    def compared(self) -> int:
        """Points that both sides have."""
        return sum(self.counts.values())

    @property
    def sentence(self) -> str:
        """The verdict on all points, with the maximum change."""
        of = f"of {self.compared:,} points"
        for verdict, listed, word in (
            ("slower", self.slower, "up"),
            ("faster", self.faster, "down"),
        ):
            if not listed.rows:
                continue
            benchmark, how, size, *_, slowdown, _ = listed.rows[0]
            at = ", ".join(filter(None, (benchmark, size, how)))
            others = [
                f"{number:,} {name}"
                for name, number in self.counts.items()
                if number and name != verdict
            ]
            return (
                f"{verdict.capitalize()} than the base at {self.counts[verdict]:,} {of}, slowdown "
                f"{word} to {slowdown} ({at}); {', '.join(others) or 'no others'}."
            )
        equal = f"within {percent(MARGIN)} at {self.counts[EQUAL]:,}"
        if self.counts[WITHIN]:
            none = f"No difference from the base beyond the noise at {self.counts[WITHIN]:,} {of}"
            return f"{none}{f'; equal {equal}' if self.counts[EQUAL] else ''}."
        if self.counts[EQUAL]:
            return f"Equal to the base {equal} {of}."
        if self.compared:
            return (
                f"Whether any {of} differs from the base is unclear: too few runs to know what "
                "launches differ by."
            )
        return "Nothing can be compared with the base: it has no point that is here, too."


def comparison(compared: pd.DataFrame) -> Comparison:
    """The page's words about a comparison."""
    counts = compared["verdict"].value_counts()
    return Comparison(
        counts={verdict: int(counts.get(verdict, 0)) for verdict in VERDICTS},
        only_base=int(counts.get("only in base", 0)),
        only_other=int(counts.get("only in other", 0)),
        numberless=int(counts.get("no value in base", 0) + counts.get("no value in other", 0)),
        slower=changes(compared, "slower"),
        faster=changes(compared, "faster"),
    )


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

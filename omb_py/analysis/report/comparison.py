"""Results beside their base: verdicts on points, and the words and numbers of the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from omb_py.analysis.points import Points, distinctions, group_ids, label
from omb_py.analysis.verdict import EQUAL, MARGIN, WITHIN, factor, percent
from omb_py.core.text.units import digits, size_text, value_text
from omb_py.results.columns import CONFIGURATION, EXPERIMENT

VERDICTS = ("slower", "faster", WITHIN, EQUAL, "unclear")
"""Verdicts of points that both sides have."""

MAX_CHANGES = 60
"""Changes of one verdict that the page lists; the table below the plot has all."""

COLUMNS = {
    "base": "base_value",
    "slowdown": "slowdown",
    "slowdown_low": "slowdown_low",
    "slowdown_high": "slowdown_high",
    "verdict": "verdict",
}
"""Columns of a comparison that points get, and what they are called there."""


@dataclass(frozen=True)
class Change:
    """One point that is slower or faster: what, how measured, and both values as texts.

    ``where`` has the columns that name it, for the page to find it.
    """

    benchmark: str
    how: str
    size: str
    bytes: int
    base: str
    base_number: float
    value: str
    number: float
    slowdown: float
    slowdown_text: str
    interval: str
    where: dict[str, Any]


@dataclass(frozen=True)
class Comparison:
    """How many points have which verdict, and those that changed, the maximum change first.

    ``numberless`` are points of both sides of which one has no number above 0.
    """

    counts: dict[str, int]
    only_base: int
    only_other: int
    numberless: int
    slower: tuple[Change, ...]
    faster: tuple[Change, ...]

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
            if not listed:
                continue
            at = ", ".join(filter(None, (listed[0].benchmark, listed[0].size, listed[0].how)))
            others = [
                f"{number:,} {name}"
                for name, number in self.counts.items()
                if number and name != verdict
            ]
            return (
                f"{verdict.capitalize()} than the base at {self.counts[verdict]:,} {of}, slowdown "
                f"{word} to {listed[0].slowdown_text} ({at}); {', '.join(others) or 'no others'}."
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

    def changes(self) -> tuple[tuple[str, tuple[Change, ...], int], ...]:
        """Each verdict of change with what is listed, and how many are not."""
        return tuple(
            (verdict, listed, self.counts[verdict] - len(listed))
            for verdict, listed in (("slower", self.slower), ("faster", self.faster))
        )


def join(points: Points, compared: pd.DataFrame) -> Points:
    """Points with the columns of `COLUMNS`, each missing where nothing is compared."""
    both = compared[compared["verdict"].isin(VERDICTS)]
    renamed = {f"other_{name}": name for name in CONFIGURATION}
    both = both.drop(columns=list(CONFIGURATION), errors="ignore").rename(columns=renamed)
    names = [*EXPERIMENT, *CONFIGURATION, "unit"]
    own = points.series.loc[points.points["series"], names].reset_index(drop=True)
    own = own.assign(bytes=points.points["bytes"].to_numpy())
    keys = pd.concat([own, both[list(own.columns)]], ignore_index=True)
    key = group_ids(keys[name] for name in keys)
    found = both.assign(key=key[len(own) :]).drop_duplicates("key").set_index("key")
    frame = points.points.copy()
    for name, called in COLUMNS.items():
        frame[called] = found[name].reindex(key[: len(own)]).to_numpy()
    return Points(points.series, frame)


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


def changes(compared: pd.DataFrame, verdict: str) -> tuple[Change, ...]:
    """The maximum changes of a verdict."""
    rows = compared[compared["verdict"] == verdict]
    rows = rows.sort_values("slowdown", ascending=verdict == "faster", kind="stable")
    listed = rows.head(MAX_CHANGES)
    own = compared[compared["benchmark"].isin(listed["benchmark"])].rename(
        columns={column(name): name for name in CONFIGURATION}
    )
    names = {name: distinctions(members) for name, members in own.groupby("benchmark")}
    return tuple(change(row, names[row["benchmark"]]) for row in listed.to_dict("records"))


def change(row: dict[Any, Any], names: Sequence[str]) -> Change:
    """One point that changed."""
    every = dict.fromkeys([*EXPERIMENT, *CONFIGURATION])
    where = {name: row[column(name)] for name in every if not pd.isna(row[column(name)])}
    sized = not pd.isna(row["bytes"])
    known = not pd.isna(row["slowdown_low"])
    return Change(
        benchmark=str(row["benchmark"]),
        how=label([row[column(name)] for name in names], names),
        size=size_text(row["bytes"]) if sized else "",
        bytes=int(row["bytes"]) if sized else -1,
        base=value_text(row["base"], row["unit"]),
        base_number=float(row["base"]),
        value=value_text(row["value"], row["unit"]),
        number=float(row["value"]),
        slowdown=float(row["slowdown"]),
        slowdown_text=f"{ratio(row['slowdown'], row['rounding'])}\u00d7",
        interval=f"{ratio(row['slowdown_low'], row['rounding'])} to "
        f"{ratio(row['slowdown_high'], row['rounding'])}"
        if known
        else "",
        where={**where, "bytes": int(row["bytes"]) if sized else None},
    )

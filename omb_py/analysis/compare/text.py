"""A comparison for people, as one table of all points, and as annotations on GitHub."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from omb_py.analysis.compare.side_by_side import NO_BASE, NO_OTHER, ONLY_OTHER, TAIL
from omb_py.analysis.compare.summary import (
    VERDICTS,
    Guard,
    counted,
    direction,
    margin_of,
    point_text,
    sentences,
    shared_columns,
    sizes_text,
    summary,
    titles,
    whole,
    words_of,
)
from omb_py.analysis.points import label
from omb_py.analysis.verdict import FASTER, SLOWER, UNCLEAR, WITHIN, factor
from omb_py.benchmarks import Metric, all_benchmarks
from omb_py.core.text.tables import Sheet
from omb_py.core.text.units import digits, size_text, value_text

CLOCK_INSIDE = (
    "native OMB's one-sided latencies include two clock readings in each iteration (some 40 ns "
    "together), omb-py's do not"
)

STATISTICS = {"median": "medians", "mean": "means", TAIL: "99th percentiles"}


def sheets(points: pd.DataFrame, base: str) -> Iterator[Sheet]:
    """A table of each other and statistic: a row for each point that both have, means below.

    With points' column ``of_bound`` there is one more column for the parts of their bounds.
    """
    there = points[points["ratio"].notna()]
    shared = shared_columns(there)
    named = titles(there, shared)
    bounded = "of_bound" in there and bool(there["of_bound"].any())
    for (other, statistic), members in there.groupby(["other", "statistic"], sort=False):
        means = summary(members).set_index("pair")
        lines = []
        for pair, rows in members.groupby("pair", sort=False):
            lines += [line(row, named[pair], bounded) for row in rows.to_dict("records")]
            if len(rows) > 1:
                mean = means.loc[pair]
                lines.append(mean_line(mean, named[pair], bounded))
        remarks = [
            f"Ratio: {other} / {base}; a latency's is above 1 where it is slower, a bandwidth's "
            "below 1. A mean is that of slowdowns, above 1 where the sizes are slower. Intervals: "
            "95 %."
        ]
        if any(clock_inside(rows) for _, rows in members.groupby("benchmark")):
            remarks.append(CLOCK_INSIDE)
        yield Sheet(
            f"{other} against {base}, {STATISTICS[statistic]}",
            ("", "size", base, other, "ratio", "95 % interval", "verdict")
            + (("of its bound",) if bounded else ()),
            tuple(lines),
            tuple(remarks),
            above=shared_text(there.iloc[0].to_dict(), shared),
        )


def shared_text(row: dict[Any, Any], shared: Sequence[str]) -> str:
    """What all pairs have in common: ranks, and how both sides were measured."""
    ways = direction(row, [name for name in shared if name != "ranks"])
    ranks = label([row["ranks"]], ["ranks"]) if "ranks" in shared else ""
    return ", ".join(filter(None, [ranks, ways]))


def mean_line(mean: pd.Series, title: str, bounded: bool) -> tuple[str, ...]:
    """The cells of a pair's mean, whose verdict is that of its interval."""
    low, high, rounding = mean["slowdown_low"], mean["slowdown_high"], mean["rounding"]
    verdict = UNCLEAR if pd.isna(low) else SLOWER if low > 1 else FASTER if high < 1 else WITHIN
    slowdown = number(mean["slowdown"], rounding)
    cells = (title, "mean", "", "", slowdown, interval(low, high, rounding), verdict)
    return (*cells, "") if bounded else cells


def line(row: dict[Any, Any], title: str, bounded: bool) -> tuple[str, ...]:
    """The cells of a point."""
    rounding = row["rounding"]
    cells = (
        title,
        "-" if pd.isna(row["bytes"]) else size_text(row["bytes"]),
        value_text(row["base"], row["unit"]),
        value_text(row["value"], row["unit"]),
        number(row["ratio"], rounding),
        interval(row["ratio_low"], row["ratio_high"], rounding),
        words_of(row["verdict"], row["equal_within"]),
    )
    return (*cells, str(row["of_bound"])) if bounded else cells


def interval(low: float, high: float, rounding: float) -> str:
    """An interval of a ratio; a dash where it is not known."""
    return "-" if pd.isna(low) else f"{number(low, rounding)} to {number(high, rounding)}"


def clock_inside(points: pd.DataFrame) -> bool:
    """Whether one side alone is native OMB, which reads the clock within its one-sided latencies.

    It times all iterations together, and each of them besides, for its percentiles.
    """
    known = {item.name: item for item in all_benchmarks() if item.family == "one-sided"}
    benchmark = known.get(str(points["benchmark"].iloc[0]))
    if benchmark is None or benchmark.metric is not Metric.LATENCY:
        return False
    sides = [points[f"{side}_suite"].dropna().str.startswith("OSU") for side in ("base", "other")]
    return any(sides[0]) != any(sides[1])


def number(ratio: float, rounding: float = 0.0) -> str:
    """A ratio with as many digits as tell a tenth of a percent, or as its rounding leaves.

    >>> number(1.0321), number(0.00123), number(0.05, rounding=0.5)
    ('1.032', '0.00123', '0.05')
    """
    if ratio >= 0.1 or ratio * rounding > 0.001:
        return factor(max(ratio, 0.0), rounding).rstrip("x")
    return digits(ratio)


def endings(points: pd.DataFrame, base: str) -> Iterator[str]:
    """A line for the points of each pair of which one side has no number: no table shows them."""
    alone = points[points["ratio"].isna()]
    names = titles(points)
    for (pair, verdict), rows in alone.groupby(["pair", "verdict"], sort=False):
        other = rows["other"].iloc[0]
        where = f"Only in {other if verdict == ONLY_OTHER else f'the base, not in {other}'}"
        if verdict in (NO_BASE, NO_OTHER):
            where = f"Without a number above 0 in {base if verdict == NO_BASE else other}"
        count = f"{len(rows)} point{'s' if len(rows) > 1 else ''}"
        yield f"{where}: {names[pair]}: {count}{sizes_text(rows['bytes'])}"


def pair_lines(points: pd.DataFrame) -> Iterator[str]:
    """A line about each pair that has points of both sides."""
    for row in summary(points).to_dict("records"):
        if row["slowdown"] == row["slowdown"]:
            margin = margin_of(points)
            counts = ", ".join(counted(row, margin, VERDICTS[:5]))
            yield f"{row['other']}: {row['title']}: {whole(row, margin)}; {counts}"


def github(points: pd.DataFrame, guard: Guard | None) -> str:
    """Workflow commands that GitHub Actions shows as annotations.

    A notice with the verdict on each other, an error for each reason to fail, a warning where that
    cannot be told; without a guard a warning for each point that is slower.
    """
    found = [("notice", text) for text in sentences(points).values()]
    if guard is None:
        named = titles(points)
        slower = points[points["verdict"] == SLOWER]
        found += [("warning", point_text(row, named[row.pair])) for row in slower.itertuples()]
    else:
        found += [("error", reason) for reason in guard.reasons]
        found += [("warning", f"cannot tell: {guard.cannot_tell}")] if guard.undecided else []
    return "".join(f"::{kind} title=omb-py compare::{escaped(text)}\n" for kind, text in found)


def escaped(text: str) -> str:
    """The text of a workflow command, which ends with its line."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")

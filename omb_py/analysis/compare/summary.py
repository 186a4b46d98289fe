"""A comparison for people: its points, slower or faster on the whole, and whether too much so."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterator, Mapping, Sequence
from math import isnan, nan
from typing import Any

import numpy as np
import pandas as pd

from omb_py.analysis.compare.side_by_side import NO_BASE, NO_OTHER, ONLY_BASE, ONLY_OTHER
from omb_py.analysis.conclusion import Conclusion, conclude, within
from omb_py.analysis.failures import Beyond, Failure
from omb_py.analysis.points import Cells, at_size, at_sizes, cells, label
from omb_py.analysis.values import TAIL
from omb_py.analysis.verdict import (
    EQUAL,
    FASTER,
    MOST_LAUNCHES,
    SLOWER,
    UNCLEAR,
    WIDEST,
    WITHIN,
    factor,
    launches_to_find,
    launches_to_pass,
    percent,
    times,
)
from omb_py.benchmarks import Metric, all_benchmarks
from omb_py.core.statistics import BUSY
from omb_py.core.text.tables import Sheet
from omb_py.core.text.units import size_text, slowdown, value_text
from omb_py.core.text.words import count
from omb_py.results.columns import CONFIGURATION, EXPERIMENT, SOFTWARE

TOO_FEW = {
    "one run a side": "one run a side says nothing about launches: repeat 5 or more (10 for many "
    "sizes), alternately, or state what launches differ by, as with --launch-spread 3%",
    "too few runs": "too few runs to tell what launches differ by: repeat 5 or more (10 for many "
    "sizes), alternately, or state it, as with --launch-spread 3%",
}
"""The advice for unclear points, by their ``noise``."""

ALONE = (ONLY_BASE, ONLY_OTHER, NO_BASE, NO_OTHER)
"""Verdicts of points with a number on one side only."""

MISSING = (ONLY_BASE, NO_OTHER)
"""Verdicts of points of the base that have no counterpart."""

CLOCK_INSIDE = (
    "native OMB's one-sided latencies include two clock readings in each iteration (some 40 ns "
    "together), omb-py's do not"
)

STATISTICS = {"median": "medians", "mean": "means", TAIL: "99th percentiles"}

VERDICTS = (SLOWER, FASTER, WITHIN, EQUAL, UNCLEAR, *ALONE)
SAID = ("benchmark", "part", "ranks")
"""Columns of the experiment that are always said."""


def summary(points: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each pair (see `compare`): its `totals`, and a ``title`` that names it."""
    found = totals(points, points["pair"])
    found.insert(0, "other", points.drop_duplicates("pair").set_index("pair")["other"])
    found.insert(1, "title", titles(points))
    return found.rename_axis("pair").reset_index()


def totals(points: pd.DataFrame, groups: pd.Series) -> pd.DataFrame:
    """Return how many points of each group have each verdict, and the group's slowdown.

    ``slowdown`` is the geometric mean over the points that both sides have, ``minimum`` and
    ``maximum`` the range over the points, ``rounding`` that of the mean. ``slowdown_low`` and
    ``slowdown_high``, its 95 % interval, are the geometric means of the points' ends: sizes of one
    launch share its noise, and this holds however much. It is missing if a point has none.
    """
    found = pd.DataFrame({name: points["verdict"] == name for name in VERDICTS})
    found = found.groupby(groups, sort=False).sum()
    both = points[points["slowdown"].notna()]
    names = ["slowdown", "slowdown_low", "slowdown_high"]
    logs = np.log(both[names]).groupby(groups[both.index], sort=False)
    found["slowdown"] = np.exp(logs["slowdown"].mean())
    found["minimum"], found["maximum"] = (
        np.exp(logs["slowdown"].min()),
        np.exp(logs["slowdown"].max()),
    )
    complete = logs.count().eq(logs.size(), axis=0)
    found[names[1:]] = np.exp(logs.mean().where(complete))[names[1:]]
    squares = (both["rounding"] ** 2).groupby(groups[both.index]).agg(["sum", "size"])
    found["rounding"] = np.sqrt(squares["sum"]) / squares["size"]
    return found


def titles(points: pd.DataFrame, besides: Container[str] = ()) -> pd.Series:
    """Return for each pair the columns of its experiment and configurations that differ among
    pairs.

    Columns ``besides`` are left out.
    """
    of_both_first = points.sort_values("ratio", kind="stable", na_position="last")
    first = of_both_first.drop_duplicates("pair").set_index("pair").sort_index()
    sides = [first[[f"{side}_{name}" for name in CONFIGURATION]] for side in ("base", "other")]
    configurations = pd.concat([side.set_axis(list(CONFIGURATION), axis=1) for side in sides])
    what, how = (
        rows.astype(object).groupby(pd.concat([first["benchmark"]] * copies)).nunique() > 1
        for rows, copies in ((first[list(EXPERIMENT)], 1), (configurations, 2))
    )
    texts = []
    for row in first.to_dict("records"):
        name = row["benchmark"]
        said = [column for column in EXPERIMENT if column in SAID or what.loc[name, column]]
        columns = [column for column in said if column not in besides]
        differ = [column for column in CONFIGURATION if how.loc[name, column]]
        ways = direction(row, [column for column in differ if column not in besides])
        texts.append(
            label([row[column] for column in columns], columns)
            + (", 99th percentile" if row["statistic"] == TAIL else "")
            + (f" ({ways})" if ways else "")
        )
    return pd.Series(texts, index=first.index)


def shared_columns(points: pd.DataFrame) -> list[str]:
    """Return the columns of `titles` that all pairs have in common: ranks, and configurations."""
    names = [["ranks"], *([f"base_{name}", f"other_{name}"] for name in CONFIGURATION)]
    same = [n for n in names if not any(points[one].nunique(dropna=False) > 1 for one in n)]
    return [name[0].removeprefix("base_") for name in same]


def direction(row: Mapping[Hashable, Any], columns: list[str]) -> str:
    """Return the configuration of both sides of a point: shared columns once, then the others."""
    sides = ("base", "other")
    columns = [n for n in columns if n not in SOFTWARE or differs(row, n)]
    if row["verdict"] in ALONE:
        side = sides[row["verdict"] in (ONLY_OTHER, NO_BASE)]
        return label([row[f"{side}_{name}"] for name in columns], columns)
    same = [name for name in columns if str(row[f"base_{name}"]) == str(row[f"other_{name}"])]
    differ = [name for name in columns if name not in same]
    each = [label([row[f"{side}_{name}"] for name in differ], differ) for side in sides]
    shared = label([row[f"base_{name}"] for name in same], same)
    return ", ".join(text for text in (shared, " against ".join(filter(None, each))) if text)


def differs(row: Mapping[Hashable, Any], name: str) -> bool:
    """Return whether both sides of a point have a value of a configuration column, two in all."""
    values = {row[f"{side}_{name}"] for side in ("base", "other")}
    return len(values) == 2 and not any(map(pd.isna, values))


def sheets(points: pd.DataFrame, base: str) -> Iterator[Sheet]:
    """Yield a table of each other and statistic: a row for each point of both, means below."""
    there = points[points["ratio"].notna()]
    shared = shared_columns(there)
    named = titles(there, shared)
    for (other, statistic), members in there.groupby(["other", "statistic"], sort=False):
        means = summary(members).set_index("pair")
        lines = []
        for pair, rows in members.groupby("pair", sort=False):
            lines += [line(row, named[pair]) for row in rows.to_dict("records")]
            if len(rows) > 1:
                lines.append(mean_line(means.loc[pair], named[pair]))
        first = members.iloc[0].to_dict()
        ranks = label([first["ranks"]], ["ranks"]) if "ranks" in shared else ""
        ways = direction(first, [name for name in shared if name != "ranks"])
        yield Sheet(
            f"{other} against {base}, {STATISTICS[statistic]}",
            ("", "size", base, other, "ratio", "95 % interval", "verdict"),
            tuple(lines),
            (
                f"Ratio: {other} / {base}; a latency's is above 1 where it is slower, a "
                "bandwidth's below 1. A mean is that of slowdowns, above 1 where the sizes are "
                "slower. Intervals: 95 %.",
                *[CLOCK_INSIDE] * clock_inside(members),
            ),
            above=", ".join(filter(None, [ranks, ways])),
        )


def mean_line(mean: pd.Series, title: str) -> tuple[str, ...]:
    """Return the cells of a pair's mean, whose verdict is that of its interval."""
    low, high, rounding = mean["slowdown_low"], mean["slowdown_high"], mean["rounding"]
    verdict = UNCLEAR if pd.isna(low) else SLOWER if low > 1 else FASTER if high < 1 else WITHIN
    ratios = (number(mean["slowdown"], rounding), interval(low, high, rounding))
    return (title, "mean", "", "", *ratios, verdict)


def line(row: Mapping[Any, Any], title: str) -> tuple[str, ...]:
    """Return the cells of a point."""
    rounding = row["rounding"]
    return (
        title,
        "-" if pd.isna(row["bytes"]) else size_text(row["bytes"]),
        value_text(row["base"], row["unit"]),
        value_text(row["value"], row["unit"]),
        number(row["ratio"], rounding),
        interval(row["ratio_low"], row["ratio_high"], rounding),
        words_of(row["verdict"], row["tolerance"]),
    )


def interval(low: float, high: float, rounding: float) -> str:
    """Return an interval of a ratio; a dash if it is not known."""
    return "-" if pd.isna(low) else f"{number(low, rounding)} to {number(high, rounding)}"


def number(ratio: float, rounding: float) -> str:
    """Return a ratio as a table has it: `factor` without the ``x``, of the same ``rounding``."""
    return factor(ratio, rounding).removesuffix("x")


def clock_inside(points: pd.DataFrame) -> bool:
    """Return whether only one side is native OMB, whose one-sided latencies include clock reads.

    It times all iterations together and also each one, for its percentiles.
    """
    one_sided = [one for one in all_benchmarks() if one.family == "one-sided"]
    latencies = {one.name for one in one_sided if one.metric is Metric.LATENCY}
    there = points[points["benchmark"].isin(latencies)]
    sides = [there[f"{side}_suite"].str.startswith("OSU", na=False) for side in ("base", "other")]
    return bool((sides[0] != sides[1]).any())


def endings(points: pd.DataFrame, base: str) -> Iterator[str]:
    """Yield a line for each pair with points that only one side has; tables leave them out."""
    alone = points[points["ratio"].isna()]
    names = titles(points)
    for (pair, verdict), rows in alone.groupby(["pair", "verdict"], sort=False):
        other = rows["other"].iloc[0]
        where = f"Only in {other if verdict == ONLY_OTHER else f'the base, not in {other}'}"
        if verdict in (NO_BASE, NO_OTHER):
            where = f"Without a number above 0 in {base if verdict == NO_BASE else other}"
        yield f"{where}: {names[pair]}: {count(len(rows), 'point')}{at_sizes(rows['bytes'])}"


def sentences(points: pd.DataFrame) -> dict[str, str]:
    """Return a verdict on each other by its name, and one on its 99th percentiles.

    A line has its slowdown (`whole`), and how many points differ by more than noise.
    """
    tail = points["statistic"] == TAIL
    names = points["other"].where(~tail, points["other"] + ", 99th percentiles")
    pairs = points["pair"].groupby(names).nunique()
    margin = float(points["tolerance"].iloc[0])
    found = {}
    for row in totals(points, names).rename_axis("name").reset_index().to_dict("records"):
        name = row["name"]
        there = sum(row[verdict] for verdict in VERDICTS if verdict not in ALONE)
        on_the_whole = whole(row, margin, "sizes" if pairs[name] == 1 else "points")
        said = [*VERDICTS[:3], *(verdict for verdict in VERDICTS[3:] if row[verdict])]
        counts = ", ".join(f"{row[verdict]} {words_of(verdict, margin)}" for verdict in said)
        found[name] = f"{name}: {on_the_whole}; of {there} points {counts}"
    return found


def words_of(name: str, margin: float) -> str:
    """Return the words of a verdict, with its margin where points are equal."""
    return f"equal within {percent(margin)}" if name == EQUAL else name


def whole(row: Mapping[Any, Any], margin: float = nan, what: str = "sizes") -> str:
    """Write a slowdown of `totals`, with its interval and its range over ``what`` the points are.

    The text is in words if any point changed. It omits digits that rounding makes meaningless;
    ``margin`` is the one of equal points.

    >>> ends = {"slowdown_low": 1.05, "slowdown_high": 1.15, "minimum": 1.1, "maximum": 1.1}
    >>> whole({"slower": 1, "slowdown": 1.1, "rounding": 0.0, **ends})
    '1.100x slower on average (95 % interval 1.050x slower to 1.150x slower)'
    """
    changed = row.get(SLOWER, 0) + row.get(FASTER, 0) > 0

    def text(number: float) -> str:
        if changed:
            return times(number, row["rounding"])
        return factor(number, row["rounding"]).removesuffix("x")

    mean = text(row["slowdown"])
    parts = [] if changed else [f"mean slowdown {mean}"]
    if not isnan(row["slowdown_low"]):
        interval = f"{text(row['slowdown_low'])} to {text(row['slowdown_high'])}"
        parts.append(f"95 % interval {interval}")
    if row["minimum"] < row["maximum"]:
        parts.append(f"range over {what} {text(row['minimum'])} to {text(row['maximum'])}")
    if changed:
        words = f"{mean} on average"
    elif row.get(WITHIN, 0) and not row.get(UNCLEAR, 0):
        words = "no difference beyond the noise"
    elif row.get(EQUAL, 0) and not row.get(UNCLEAR, 0):
        words = words_of(EQUAL, margin)
    else:
        words = UNCLEAR
    return f"{words} ({', '.join(parts)})" if parts else words


def remarks(points: pd.DataFrame, allowed: float | None = None) -> list[str]:
    """Return sentences about how far the verdicts carry: few launches, or ones that differ much.

    With a limit, how many launches would decide what `conclusion` leaves open (`advice`).
    """
    found = [text for noise, text in TOO_FEW.items() if (points["noise"] == noise).any()]
    if wide := int(((points["verdict"] == UNCLEAR) & points["ratio_low"].notna()).sum()):
        words = count(wide, "point")
        found.append(f"the noise of {words} could hide a factor of {WIDEST:g}: repeat the runs")
    spread = points["launch_spread"].median()
    if spread == spread:
        much = ": the machine was busy, or has several states" if spread > BUSY else ""
        found.append(
            f"repeated runs of a point differ by {percent(spread)} (standard deviation){much}"
        )
    return found + ([] if allowed is None else advice(points, allowed))


def conclusion(
    points: pd.DataFrame,
    allowed: float,
    wrong: Sequence[Failure] = (),
    lost: Sequence[str] = (),
) -> Conclusion:
    """Conclude on a comparison by a limit, and the rows whose data was ``wrong`` on either side.

    ``lost`` names results that could not be read (`Results.lost`).

    A point fails where it is slower and its slowdown's whole interval is above ``allowed``; a pair
    of several points where the lower end of its mean's interval (`totals`) is, and one of them is
    slower, which stood the correction for the whole table; and points of the base that are missing
    do, since nothing guards them. A point of both sides that does not fail is undecided unless
    ``slowdown_bound`` is at most ``allowed``. That claim about all points takes no correction: if
    one is slower, its own bound has to miss (R. L. Berger, *Multiparameter hypothesis testing and
    acceptance sampling*, Technometrics 24, 1982).
    """
    named = titles(points)
    limit = f"allowed is {factor(allowed)}"

    def where(row: Any) -> str:
        return f"{row.other}: {named[row.pair]}{at_size(row.bytes, ', ')}"

    def interval_of(row: Any) -> str:
        ends = (factor(end, row.rounding) for end in (row.slowdown_low, row.slowdown_high))
        return f"95 % interval {' to '.join(ends)}"

    slow, open_ = slower_than(points, allowed)
    means = summary(points[points["slowdown_low"].notna()])
    several = points["slowdown_low"].groupby(points["pair"], sort=False).count() > 1
    several = means["pair"].map(several).astype(bool) & (means[SLOWER] > 0)
    means = means[several & (means["slowdown_low"] > allowed)]
    failures = [
        Failure(
            f"{row.other}: {named[row.pair]}: {times(row.slowdown, row.rounding)} on average, "
            f"{limit}",
            beyond(points[(points["pair"] == row.pair) & points["slowdown"].notna()], allowed),
            on_top=True,
        )
        for row in means.itertuples()
    ]
    for row in points[slow].itertuples():
        values = f"{value_text(row.value, row.unit)} against {value_text(row.base, row.unit)}"
        slower = times(row.slowdown, row.rounding)
        reason = f"{where(row)}: {values}, {slower} ({interval_of(row)}), {limit}"
        failures.append(Failure(reason, beyond(points.loc[[row.Index]], allowed)))
    missing = points[points["verdict"].isin(MISSING)]
    tails = missing["statistic"] == TAIL
    no_tails = [f"{where(row)}: too few iterations" for row in missing[tails].itertuples()]
    missing = missing[~tails]
    for (number, why), members in missing.groupby(["pair", "verdict"], sort=False):
        what = "not measured" if why == ONLY_BASE else "no number above 0, or wrong data"
        whose = f"{members['other'].iloc[0]}: {named[number]}"
        failures.append(Failure(f"{whose}: {what}{at_sizes(members['bytes'])}", on_top=True))
    undecided = []
    suspects_first = points[open_].sort_values("slowdown_low", ascending=False, kind="stable")
    for row in suspects_first.itertuples():
        how = "no interval"
        if not pd.isna(row.slowdown_bound):
            how = f"up to {factor(row.slowdown_bound, row.rounding)} with 95 % confidence"
        if row.slowdown_low > allowed:
            how = f"{interval_of(row)}, too few launches to exclude chance"
        undecided.append(f"{where(row)}: {how}")
    judged = int(points["slowdown"].notna().sum()) - len(undecided)
    absent = [where(row) for row in missing.itertuples()]
    undecided += [*no_tails, *lost]
    return conclude(judged, [*failures, *wrong], undecided, absent, held=within(allowed))


def slower_than(points: pd.DataFrame, allowed: float) -> tuple[pd.Series, pd.Series]:
    """Return which points of both sides are slower than ``allowed``, and which may be."""
    slow = (points["slowdown_low"] > allowed) & (points["verdict"] == SLOWER)
    held = points["slowdown_bound"] <= allowed
    return slow, points["slowdown"].notna() & ~slow & ~held


def advice(points: pd.DataFrame, allowed: float) -> list[str]:
    """Return sentences about how many launches would decide what `conclusion` leaves open."""
    _, open_ = slower_than(points, allowed)
    spread = np.expm1(np.sqrt((np.log1p(points["launch_spread"]) ** 2).mean()))
    if not open_.any() or spread != spread:
        return []
    found = []
    judged = int(points["p_value"].notna().sum())
    runs = points.loc[open_, ["runs_base", "runs_other"]].min(axis=1)
    to_find = launches_to_find(judged)
    if (runs[points["noise"] == "runs"] < to_find).any():
        found.append(
            f"one slow point among {judged} can be told from chance from {to_find} launches a side"
        )
    to_pass = launches_to_pass(spread, allowed, judged)
    if to_pass is None:
        found.append(
            f"launches differ by {percent(spread)}, so not even {MOST_LAUNCHES} a side would show "
            f"that {count(judged, 'point')} are {within(allowed)}: allow more, or find the reason"
        )
    elif to_pass > runs.min():
        found.append(
            f"launches differ by {percent(spread)}: if nothing is slower, about {to_pass} a side "
            f"would show that {count(judged, 'point')} are {within(allowed)}"
        )
    return found


def beyond(points: pd.DataFrame, allowed: float) -> tuple[Beyond, ...]:
    """Return the others' points of a comparison with their limits."""
    every = cells_of(points)
    return tuple(
        Beyond(
            every[place],
            row.base * slowdown(allowed, row.unit),
            row.unit,
            row.statistic,
            row.other,
        )
        for place, row in enumerate(points.itertuples())
    )


def cells_of(points: pd.DataFrame) -> list[Cells]:
    """Return the columns of the other side of each point, by the names of a row."""
    names = {name: name for name in ("bytes", *EXPERIMENT)}
    names |= {f"other_{name}": name for name in CONFIGURATION}
    return cells(points[list(names)].rename(columns=names))

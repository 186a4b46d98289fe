"""A comparison in a few words: slower or faster on the whole, and whether that is too much."""

from __future__ import annotations

import re
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import isnan, nan
from typing import Any

import numpy as np
import pandas as pd

from omb_py.analysis.compare.side_by_side import NO_BASE, NO_OTHER, ONLY_BASE, ONLY_OTHER, TAIL
from omb_py.analysis.points import label
from omb_py.analysis.verdict import EQUAL, FASTER, SLOWER, UNCLEAR, WITHIN, factor, percent, times
from omb_py.core.errors import UsageError
from omb_py.core.statistics import BUSY
from omb_py.core.text.units import size_text, value_text
from omb_py.core.text.words import count, first_of
from omb_py.results.columns import CONFIGURATION, EXPERIMENT

FAILED = 4
"""Exit code of a comparison that found more of a slowdown than was allowed."""

UNDECIDED = 7
"""Exit code of a comparison that cannot tell whether a slowdown is above what was allowed."""

MOST_UNDECIDED = 3
"""Points that cannot be judged that a sentence names."""

MAX_REASONS = 20
"""Reasons to fail that are printed; of the others only their number."""

TOO_FEW = {
    "one run a side": "one run a side says nothing about launches: repeat 5 or more, by turns, or "
    "state what launches differ by, as with --launch-spread 3%",
    "too few runs": "too few runs to tell what launches differ by: repeat 5 or more, by turns, or "
    "state it, as with --launch-spread 3%",
}
"""What to do where points are unclear, by their ``noise``."""

ALONE = (ONLY_BASE, ONLY_OTHER, NO_BASE, NO_OTHER)
"""Verdicts of points of which one side has no number."""

MISSING = (ONLY_BASE, NO_OTHER)
"""Those of points of the base that nothing is compared with."""

VERDICTS = (SLOWER, FASTER, WITHIN, EQUAL, UNCLEAR, *ALONE)
SAID = ("benchmark", "part", "ranks")
"""Columns of the experiment that are always said."""


def summary(points: pd.DataFrame) -> pd.DataFrame:
    """One row for each pair (see `compare`): how many points have each verdict, and its slowdown.

    ``slowdown`` is the geometric mean over the points that both sides have, ``slowdown_low`` and
    ``slowdown_high`` its 95 % interval (`mean_intervals`), ``minimum`` and ``maximum`` the range
    over the points, ``rounding`` that of the mean; missing where there are none. ``title`` names
    the pair.
    """
    counts = pd.DataFrame({name: points["verdict"] == name for name in VERDICTS})
    found = counts.groupby(points["pair"], sort=False).sum()
    groups = np.log(points["slowdown"]).groupby(points["pair"], sort=False)
    found["slowdown"] = np.exp(groups.mean())
    found["minimum"], found["maximum"] = np.exp(groups.min()), np.exp(groups.max())
    both = points[points["slowdown"].notna()]
    found[["slowdown_low", "slowdown_high"]] = mean_intervals(both, both["pair"])
    found["rounding"] = both["rounding"].groupby(both["pair"]).agg(of_mean)
    first = points.drop_duplicates("pair").set_index("pair")
    found.insert(0, "other", first["other"])
    found.insert(1, "title", titles(points))
    return found.reset_index()


def titles(points: pd.DataFrame, besides: Container[str] = ()) -> pd.Series:
    """For each pair its experiment and configurations, as far as pairs differ in them.

    Columns ``besides`` are left out.
    """
    of_both_first = points.sort_values("ratio", kind="stable", na_position="last")
    first = of_both_first.drop_duplicates("pair").set_index("pair").sort_index()
    what, how = experiment_columns(points), configuration_columns(points)
    texts = []
    for row in first.to_dict("records"):
        name = row["benchmark"]
        ways = direction(row, [column for column in how[name] if column not in besides])
        columns = [column for column in what[name] if column not in besides]
        texts.append(
            label([row[column] for column in columns], columns)
            + (", 99th percentile" if row["statistic"] == TAIL else "")
            + (f" ({ways})" if ways else "")
        )
    return pd.Series(texts, index=first.index)


def shared_columns(points: pd.DataFrame) -> list[str]:
    """The columns of `titles` that all pairs have in common: ranks, and configurations."""
    names = [["ranks"], *([f"base_{name}", f"other_{name}"] for name in CONFIGURATION)]
    same = [n for n in names if not any(points[one].nunique(dropna=False) > 1 for one in n)]
    return [name[0].removeprefix("base_") for name in same]


def direction(row: Mapping[Hashable, Any], columns: list[str]) -> str:
    """How both sides of a point were measured: what they share once, then what they do not."""
    sides = ("base", "other")
    if row["verdict"] in ALONE:
        side = sides[row["verdict"] in (ONLY_OTHER, NO_BASE)]
        return label([row[f"{side}_{name}"] for name in columns], columns)
    same = [name for name in columns if str(row[f"base_{name}"]) == str(row[f"other_{name}"])]
    differ = [name for name in columns if name not in same]
    each = [label([row[f"{side}_{name}"] for name in differ], differ) for side in sides]
    shared = label([row[f"base_{name}"] for name in same], same)
    return ", ".join(text for text in (shared, " against ".join(filter(None, each))) if text)


def experiment_columns(points: pd.DataFrame) -> dict[str, list[str]]:
    """For each benchmark the columns of the experiment that are worth saying."""
    differ = points.groupby("benchmark")[list(EXPERIMENT)].nunique() > 1
    return {
        str(benchmark): [name for name in EXPERIMENT if name in SAID or row[name]]
        for benchmark, row in differ.iterrows()
    }


def configuration_columns(points: pd.DataFrame) -> dict[str, list[str]]:
    """For each benchmark the configuration columns in which sides or pairs differ."""
    told = []
    for side in ("base", "other"):
        names = {f"{side}_{name}": name for name in CONFIGURATION}
        columns = points[["benchmark", *names]].rename(columns=names)
        told.append(columns.drop_duplicates().astype(object))
    differ = pd.concat(told).groupby("benchmark").nunique() > 1
    return {
        str(benchmark): [name for name in CONFIGURATION if row[name]]
        for benchmark, row in differ.iterrows()
    }


def sentences(points: pd.DataFrame) -> dict[str, str]:
    """A `verdict` on each other by its name, and one on its 99th percentiles."""
    found = {}
    for (other, tail), members in points.groupby(["other", points["statistic"] == TAIL]):
        name = f"{other}, 99th percentiles" if tail else str(other)
        found[name] = f"{name}: {verdict(members)}"
    return found


def verdict(members: pd.DataFrame) -> str:
    """One line about all that was compared of one other: see `whole`, and how many points differ
    by more than noise."""
    both = members[members["slowdown"].notna()]
    counts = members["verdict"].value_counts()
    margin = margin_of(members)
    parts = counted(counts, margin)
    slowdown = both["slowdown"]
    on_the_whole = whole(
        counts,
        float(np.exp(np.log(slowdown).mean())),
        tuple(mean_intervals(both, both["other"]).reindex(members["other"].head(1)).iloc[0]),
        (slowdown.min(), slowdown.max()),
        of_mean(both["rounding"]),
        "sizes" if both["pair"].nunique() == 1 else "points",
        margin,
    )
    return f"{on_the_whole}; of {len(both)} points {', '.join(parts)}"


def margin_of(points: pd.DataFrame) -> float:
    """The slowdown up to which points are equal; not a number where that is not asked for."""
    return float(points["equal_within"].iloc[0])


def words_of(name: str, margin: float) -> str:
    """A verdict for people."""
    return f"equal within {percent(margin)}" if name == EQUAL else name


def counted(
    counts: Mapping[Any, int], margin: float, names: tuple[str, ...] = VERDICTS
) -> list[str]:
    """How many points have which verdict; of all but the first three, only where any has."""
    there = [*names[:3], *(name for name in names[3:] if counts.get(name, 0))]
    return [f"{counts.get(name, 0)} {words_of(name, margin)}" for name in there]


def of_mean(rounding: pd.Series) -> float:
    """The rounding of a mean over points, each of which was rounded by itself."""
    return float(np.sqrt((rounding**2).sum())) / max(1, len(rounding))


def mean_intervals(points: pd.DataFrame, groups: pd.Series) -> pd.DataFrame:
    """95 % intervals of the geometric means of slowdowns, missing where a point has none.

    One row for each of ``groups``. The ends are the geometric means of the points' ends: sizes of
    one launch share its noise, and this holds however much. Where they share none it is wider than
    it need be.
    """
    ends = np.log(points[["slowdown_low", "slowdown_high"]]).groupby(groups, sort=False)
    return np.exp(ends.mean().where(ends.count().eq(ends.size(), axis=0)))


def whole(
    counts: Mapping[Any, int],
    mean: float,
    interval: tuple[float, float],
    extremes: tuple[float, float],
    rounding: float = 0.0,
    what: str = "sizes",
    margin: float = nan,
) -> str:
    """A geometric mean of slowdowns, its interval, and its range over the points.

    In words if any point changed. Digits are left out that the relative ``rounding`` of the numbers
    does not leave; ``what`` the points are of; ``margin`` is that of equal ones.

    >>> whole({"slower": 1, "within noise": 1}, 1.1, (1.05, 1.15), (1.1, 1.1))
    '1.100x slower on average (95 % interval 1.050x slower to 1.150x slower)'
    >>> whole({"within noise": 2}, 1.01, (float("nan"), float("nan")), (0.99, 1.03))
    'no difference beyond the noise (mean slowdown 1.010, range over sizes 0.990 to 1.030)'
    """

    changed = counts.get("slower", 0) + counts.get("faster", 0) > 0

    def text(number: float) -> str:
        return times(number, rounding) if changed else factor(number, rounding).removesuffix("x")

    def span(ends: tuple[float, float]) -> str:
        return f"{text(ends[0])} to {text(ends[1])}"

    parts = [] if changed else [f"mean slowdown {text(mean)}"]
    if not isnan(interval[0]):
        parts.append(f"95 % interval {span(interval)}")
    if extremes[0] < extremes[1]:
        parts.append(f"range over {what} {span(extremes)}")
    if changed:
        words = f"{text(mean)} on average"
    else:
        words = "no difference beyond the noise" if counts.get(WITHIN, 0) else "unclear"
        if counts.get(EQUAL, 0) and not counts.get("unclear", 0):
            words = words if counts.get(WITHIN, 0) else words_of(EQUAL, margin)
    return f"{words} ({', '.join(parts)})" if parts else words


def remarks(points: pd.DataFrame) -> list[str]:
    """Sentences about how far the verdicts carry: few launches, or launches that differ much."""
    found = [text for noise, text in TOO_FEW.items() if (points["noise"] == noise).any()]
    spread = points["launch_spread"].median()
    if spread == spread:
        much = ": the machine was busy, or has several states" if spread > BUSY else ""
        found.append(
            f"repeated runs of a point differ by {percent(spread)} (standard deviation){much}"
        )
    return found


def limit(text: str) -> float:
    """The slowdown that ``5%`` or ``1.05x`` allows.

    Raises `UsageError` for anything else.

    >>> limit("5%"), limit("1.05x")
    (1.05, 1.05)
    """
    match = re.fullmatch(r"(\d+\.?\d*|\.\d+)([%x])", text, re.ASCII)
    if match is None:
        raise UsageError(f"--fail-above {text}: write 5% or 1.05x, which mean the same")
    number = float(match[1])
    found = 1 + number / 100 if match[2] == "%" else number
    if found < 1:
        raise UsageError(f"--fail-above {text}: a slowdown is 1x or more, as in 1.05x")
    return found


@dataclass(frozen=True)
class Guard:
    """Whether results stay below a limit on slowdowns (``--fail-above``).

    ``reasons`` to fail and points that are ``undecided`` are sentences; of ``points`` in all.
    """

    allowed: float
    reasons: tuple[str, ...]
    undecided: tuple[str, ...]
    points: int

    @property
    def exit_code(self) -> int:
        """`FAILED`, `UNDECIDED`, or 0 where it passes."""
        return FAILED if self.reasons else UNDECIDED if self.undecided else 0

    @property
    def cannot_tell(self) -> str:
        """A sentence about the points that are undecided; empty where there are none."""
        if not self.undecided:
            return ""
        return (
            f"{len(self.undecided)} of {count(self.points, 'point')} may be more than "
            f"{factor(self.allowed)} slower ({first_of(self.undecided, MOST_UNDECIDED)}): repeat "
            "the runs"
        )

    def lines(self) -> Iterator[str]:
        """Yield its verdict, with the first `MAX_REASONS`."""
        if self.cannot_tell:
            yield f"CANNOT TELL: {self.cannot_tell}"
        elif not self.reasons:
            yield f"PASS: nothing is more than {factor(self.allowed)} slower"
        yield from (f"FAIL: {reason}" for reason in self.reasons[:MAX_REASONS])
        if len(self.reasons) > MAX_REASONS:
            yield f"FAIL: and {len(self.reasons) - MAX_REASONS} more reasons"


def guard(points: pd.DataFrame, allowed: float) -> Guard:
    """Judge a comparison by a limit.

    A point fails where it is slower and its slowdown's whole interval is above ``allowed``; a pair
    of several points where the lower end of its mean's interval (`mean_intervals`) is; and points
    of the base that are missing do, since nothing guards them. A point of both sides that does not
    fail is undecided where it has no interval, or one that reaches beyond ``allowed``.
    """
    named = titles(points)
    limit = f"allowed is {factor(allowed)}"
    lower = points["slowdown_low"]
    several = lower.groupby(points["pair"], sort=False).count() > 1
    means = summary(points[lower.notna()])
    means = means[means["pair"].map(several).astype(bool) & (means["slowdown_low"] > allowed)]
    reasons = [
        f"{row.other}: {named[row.pair]}: {times(row.slowdown, row.rounding)} on average, {limit}"
        for row in means.itertuples()
    ]
    slow = (lower > allowed) & (points["verdict"] == SLOWER)
    reasons += [f"{point_text(row, named[row.pair])}, {limit}" for row in points[slow].itertuples()]
    missing = points[points["verdict"].isin(MISSING)]
    for (number, why), members in missing.groupby(["pair", "verdict"], sort=False):
        what = "not measured" if why == ONLY_BASE else "no number above 0"
        where = f"{members['other'].iloc[0]}: {named[number]}"
        reasons.append(f"{where}: {what}{sizes_text(members['bytes'])}")
    there = points["slowdown"].notna()
    undecided = []
    for row in points[there & ~slow & ~(points["slowdown_high"] <= allowed)].itertuples():
        how = "no interval"
        if not pd.isna(row.slowdown_high):
            how = f"95 % interval to {factor(row.slowdown_high, row.rounding)}"
        undecided.append(f"{row.other}: {named[row.pair]}{at(row.bytes)}: {how}")
    return Guard(allowed, tuple(reasons), tuple(undecided), int(there.sum()))


def point_text(row: Any, title: str) -> str:
    """A point of a comparison that has an interval, in a sentence."""
    how = (
        f"95 % interval {factor(row.slowdown_low, row.rounding)} to "
        f"{factor(row.slowdown_high, row.rounding)}"
    )
    values = f"{value_text(row.value, row.unit)} against {value_text(row.base, row.unit)}"
    slowdown = times(row.slowdown, row.rounding)
    return f"{row.other}: {title}{at(row.bytes)}: {values}, {slowdown} ({how})"


def at(nbytes: object) -> str:
    """A message size in a sentence; nothing where there is none."""
    return "" if pd.isna(nbytes) else f", {size_text(float(str(nbytes)))}"


def sizes_text(sizes: Iterable[object]) -> str:
    """Several message sizes in a sentence."""
    texts = [size_text(float(str(size))) for size in sizes if not pd.isna(size)]
    return f" at {first_of(texts, 5)}" if texts else ""

"""A comparison in a few words: slower or faster on the whole, and whether that is too much."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping
from math import floor, log10
from typing import Any

import numpy as np
import pandas as pd

from omb_py.analysis.compare.side_by_side import NO_BASE, NO_OTHER, ONLY_BASE, ONLY_OTHER
from omb_py.analysis.values import CONFIGURATION, EXPERIMENT, label
from omb_py.core.errors import UsageError
from omb_py.core.statistics import BUSY
from omb_py.core.text.units import digits, size_text, value_text
from omb_py.core.text.words import first_of

FAILED = 4
"""Exit code of a comparison that found more of a slowdown than was allowed."""

TOO_FEW = {
    "one run a side": "one run a side says nothing about launches: repeat 5 or more, by turns, or "
    "state what launches differ by, as with --launch-spread 3%",
    "too few runs": "too few runs to tell what launches differ by: repeat 5 or more, by turns, or "
    "state it, as with --launch-spread 3%",
}
"""What to do where points are unclear, by their ``noise``."""

ALONE = (ONLY_BASE, ONLY_OTHER, NO_BASE, NO_OTHER)
"""Verdicts of points of which one side has no number."""

VERDICTS = ("slower", "faster", "same", "unclear", *ALONE)
SAID = ("benchmark", "part", "ranks")
"""Columns of the experiment that are always said."""


def summary(points: pd.DataFrame) -> pd.DataFrame:
    """One row for each pair (see `compare`): how many points have each verdict, and its slowdown.

    ``slowdown`` is the geometric mean over the points that both sides have, ``minimum`` and
    ``most`` its range, ``rounding`` that of the mean; missing where there are none. ``title`` names
    the pair.
    """
    counts = pd.DataFrame({name: points["verdict"] == name for name in VERDICTS})
    found = counts.groupby(points["pair"], sort=False).sum()
    groups = np.log(points["slowdown"]).groupby(points["pair"], sort=False)
    for name, values in (("slowdown", groups.mean()), ("minimum", groups.min())):
        found[name] = np.exp(values)
    found["most"] = np.exp(groups.max())
    both = points[points["slowdown"].notna()]
    found["rounding"] = both["rounding"].groupby(both["pair"]).agg(of_mean)
    first = points.drop_duplicates("pair").set_index("pair")
    found.insert(0, "other", first["other"])
    found.insert(1, "title", titles(points))
    return found.reset_index()


def titles(points: pd.DataFrame) -> pd.Series:
    """For each pair its experiment and configurations, as far as pairs differ in them."""
    of_both_first = points.sort_values("ratio", kind="stable", na_position="last")
    first = of_both_first.drop_duplicates("pair").set_index("pair").sort_index()
    what, how = experiment_columns(points), configuration_columns(points)
    texts = []
    for row in first.to_dict("records"):
        name = row["benchmark"]
        ways = direction(row, how[name])
        texts.append(
            label([row[column] for column in what[name]], what[name])
            + (f" ({ways})" if ways else "")
        )
    return pd.Series(texts, index=first.index)


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


def verdict(points: pd.DataFrame, other: str) -> str:
    """One line about all that was compared of one other: see `whole`, and how many points differ
    by more than noise."""
    members = points[points["other"] == other]
    both = members[members["slowdown"].notna()]
    counts = members["verdict"].value_counts()
    parts = [f"{counts.get(name, 0)} {name}" for name in ("slower", "faster")]
    parts = [f"{' and '.join(parts)} beyond the noise", f"{counts.get('same', 0)} within it"]
    parts += [f"{counts[name]} {name}" for name in VERDICTS[3:] if name in counts]
    slowdown = both["slowdown"]
    mean = float(np.exp(np.log(slowdown).mean()))
    rounding = of_mean(both["rounding"])
    on_the_whole = whole(counts, mean, slowdown.min(), slowdown.max(), rounding)
    return f"{other}: {on_the_whole}; of {len(both)} points {', '.join(parts)}"


def of_mean(rounding: pd.Series) -> float:
    """The rounding of a mean over points, each of which was rounded by itself."""
    return float(np.sqrt((rounding**2).sum())) / max(1, len(rounding))


def whole(
    counts: Mapping[Any, int], mean: float, minimum: float, most: float, rounding: float = 0.0
) -> str:
    """A mean slowdown with its range over the points: in words if any of them changed.

    Digits are left out that the relative ``rounding`` of its numbers does not leave.

    >>> whole({"slower": 1, "same": 1}, 1.1, 1.01, 1.2)
    '1.100x slower on average (points from 1.010x slower to 1.200x slower)'
    >>> whole({"same": 2}, 1.01, 0.99, 1.03)
    'no difference beyond the noise (mean slowdown 1.010, points from 0.990 to 1.030)'
    """
    several = minimum < most
    if counts.get("slower", 0) + counts.get("faster", 0):
        span = f" (points from {times(minimum, rounding)} to {times(most, rounding)})"
        return f"{times(mean, rounding)} on average{span if several else ''}"
    low, middle, high = (
        factor(number, rounding).removesuffix("x") for number in (minimum, mean, most)
    )
    span = f", points from {low} to {high}" if several else ""
    words = "no difference beyond the noise" if counts.get("same", 0) else "unclear"
    return f"{words} (mean slowdown {middle}{span})"


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


def percent(part: float) -> str:
    """A part as a percentage with two digits.

    >>> percent(0.0291), percent(0.5)
    ('2.9 %', '50 %')
    """
    return f"{100 * part:.2g} %" if part < 1 else f"{100 * part:.0f} %"


def times(slowdown: float, rounding: float = 0.0) -> str:
    """A slowdown in words, with as many digits as its relative ``rounding`` leaves.

    >>> times(1.25), times(0.5), times(1.0), times(1.25, rounding=0.06)
    ('1.250x slower', '2.000x faster', 'equal', '1.2x slower')
    """
    text = factor(max(slowdown, 1 / slowdown), rounding)
    if float(text.rstrip("x")) == 1:
        return "equal"
    return f"{text} {'slower' if slowdown > 1 else 'faster'}"


def factor(number: float, rounding: float = 0.0) -> str:
    """A ratio to a tenth of a percent, or to three digits where it is large; to fewer where the
    relative ``rounding`` of its two numbers leaves fewer.

    >>> factor(1.0321), factor(74.4321), factor(2.0, rounding=1.5), factor(74.4321, rounding=0.1)
    ('1.032x', '74.4x', '2x', '74x')
    """
    text = f"{number:.3f}" if number < 10 else digits(number)
    error = number * rounding
    known = max(0, floor(-log10(error)), -floor(log10(number))) if error > 0 else 3  # one at least
    return f"{number:.{known}f}x" if known < len(text.partition(".")[2]) else f"{text}x"


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


def without_verdict(points: pd.DataFrame) -> str | None:
    """A sentence about the points that have no verdict and cannot fail; None if all have one."""
    unclear = int((points["verdict"] == "unclear").sum())
    if not unclear:
        return None
    count = int(points["slowdown"].notna().sum())
    return (
        f"{unclear} of {count} points have no verdict and cannot fail: repeat the runs to guard "
        "them"
    )


def failures(points: pd.DataFrame, allowed: float) -> list[str]:
    """Why a comparison fails, a sentence for each reason; none if it passes.

    A point fails where its slowdown's whole interval is above ``allowed``; a pair of several points
    where the geometric mean of the lower ends is, which holds however alike the noise of its points
    is; and points of the base that are missing do, since nothing guards them. Unclear points do
    not fail: see `without_verdict`.
    """
    found = []
    named = titles(points)
    lower = points["slowdown_low"]
    judged = points[lower.notna()]
    minimum = np.exp(np.log(lower).groupby(points["pair"], sort=False).mean())
    several = lower.groupby(points["pair"], sort=False).count() > 1
    for row in summary(judged).itertuples():
        if several[row.pair] and minimum[row.pair] > allowed:
            found.append(
                f"{row.other}: {named[row.pair]}: {times(row.slowdown, row.rounding)} on average, "
                f"allowed is {factor(allowed)}"
            )
    for row in points[lower > allowed].itertuples():
        where = f"{row.other}: {named[row.pair]}{at(row.bytes)}"
        how = (
            f"95 % interval {factor(row.slowdown_low, row.rounding)} to "
            f"{factor(row.slowdown_high, row.rounding)}"
        )
        values = f"{value_text(row.value, row.unit)} against {value_text(row.base, row.unit)}"
        found.append(
            f"{where}: {values}, {times(row.slowdown, row.rounding)} ({how}), allowed is "
            f"{factor(allowed)}"
        )
    missing = points[points["verdict"].isin([ONLY_BASE, NO_OTHER])]
    for (number, why), members in missing.groupby(["pair", "verdict"], sort=False):
        what = "not measured" if why == ONLY_BASE else "no number above 0"
        sizes = sizes_text(members["bytes"])
        found.append(f"{members['other'].iloc[0]}: {named[number]}: {what}{sizes}")
    return found


def at(nbytes: object) -> str:
    """A message size in a sentence; nothing where there is none."""
    return "" if pd.isna(nbytes) else f", {size_text(float(str(nbytes)))}"


def sizes_text(sizes: Iterable[object]) -> str:
    """Several message sizes in a sentence."""
    texts = [size_text(float(str(size))) for size in sizes if not pd.isna(size)]
    return f" at {first_of(texts, 5)}" if texts else ""

"""Violated guidelines in tables and sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from omb_py.analysis.guard import Failure, Guard
from omb_py.analysis.guidelines.check import ALIKE, CANNOT_TELL, HOLDS, OPEN, VIOLATED
from omb_py.analysis.points import distinctions, label
from omb_py.analysis.verdict import LEVEL, chance, factor
from omb_py.core.text.tables import Sheet
from omb_py.core.text.units import size_text, value_text
from omb_py.core.text.words import count, first_of

COLUMNS = ("guideline", "sizes", "slower", "95 % interval", "at", "left", "right")

LONGEST_LIST = 6
"""Names of guidelines in a sentence."""

WHOSE = {
    "slowest": "of the slowest rank",
    "median": "mean over ranks",
    "mean": "mean over ranks and iterations",
}
"""The meaning of a side's time, by column ``time``."""


def sheets(points: pd.DataFrame) -> Iterator[Sheet]:
    """Yield a table of the violations of each group of rows that were measured alike."""
    telling = distinctions(points, [*ALIKE, *OPEN])
    names = list(dict.fromkeys(["mpi", "ranks", "binding", *telling]))
    names = [name for name in names if name not in OPEN]
    for key, members in points.groupby(names, sort=False, dropna=False):
        worst = [(run, run.loc[run["ratio"].idxmax()]) for run in runs(members)]
        if not worst:
            continue
        whose = " or ".join({WHOSE[point["time"]]: None for _, point in worst})
        remark = f"Times {whose}; slower, interval and times at the size that is worst."
        rows = tuple(line(run, point) for run, point in worst)
        yield Sheet(f"Violated: {label(key, names)}", COLUMNS, rows, (remark,))


def runs(points: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Yield violations of each guideline at sizes that follow each other."""
    for _, members in points.groupby(["guideline", *OPEN], sort=False, dropna=False):
        violated = members["verdict"] == VIOLATED
        between = (~violated).cumsum()
        yield from (run for _, run in members[violated].groupby(between[violated]))


def line(run: pd.DataFrame, worst: pd.Series) -> tuple[str, ...]:
    """Return cells about violations at successive sizes; numbers are those of the worst."""
    sizes = [size_text(size) for size in run["bytes"].dropna()]
    return (
        worst["guideline"],
        f"{sizes[0]} to {sizes[-1]}" if len(sizes) > 1 else "".join(sizes),
        factor(worst["ratio"]),
        f"{factor(worst['ratio_low'])} to {factor(worst['ratio_high'])}",
        at(worst["bytes"]).removeprefix(" at "),
        value_text(worst["left_us"], "us"),
        value_text(worst["right_us"], "us"),
    )


def summary(points: pd.DataFrame, missing: Sequence[str]) -> str:
    """Return the number of checks by verdict, and the guidelines that were not measured."""
    counts = points["verdict"].value_counts()
    parts = [f"{counts.get(verdict, 0)} {words}" for verdict, words in SAID.items()]
    text = (
        f"{count(len(points), 'check')} of {count(points['guideline'].nunique(), 'guideline')}: "
        f"{', '.join(parts)}"
    )
    if missing:
        text += f"; not measured: {first_of(missing, LONGEST_LIST)}"
    return text


SAID = {VIOLATED: "violated", HOLDS: "hold", CANNOT_TELL: "cannot be told"}


def remarks(points: pd.DataFrame) -> Iterator[str]:
    """Yield sentences about the limits of the verdicts, and advice about violations."""
    tested = points[points["p_value"].notna()]
    if len(tested) < len(points):
        yield (
            f"{len(points) - len(tested)} checks rest on too few launches to tell anything: "
            "repeat them 10 times alternately, as omb-py sweep guidelines does"
        )
    if len(tested):
        launches = tested[["runs_left", "runs_right"]].min(axis=1).max()
        if chance(int(launches), int(launches))[0] / 2 * len(tested) > LEVEL:
            yield (
                f"with {launches:.0f} launches a side, a single violation among {len(tested)} "
                "checks cannot be told from chance: measure more, or fewer guidelines (--only)"
            )
    if (points["verdict"] == VIOLATED).any():
        yield (
            "another algorithm may mend a violation: measure some with --coll-algorithm, then "
            "omb-py show --across library_algorithm"
        )


def guard(points: pd.DataFrame, allowed: float) -> Guard:
    """Judge checks by a limit on slowdowns.

    Violations fail whose whole interval is above ``allowed``. Others are undecided that have no
    interval, or one that reaches beyond it.
    """
    fail = (points["verdict"] == VIOLATED) & (points["ratio_low"] > allowed)
    undecided = points[~fail & ~(points["ratio_high"] <= allowed)]
    return Guard(
        allowed,
        tuple(
            Failure(f"{sentence(row)}, allowed is {factor(allowed)}")
            for row in points[fail].to_dict("records")
        ),
        tuple(map(named, undecided.to_dict("records"))),
        len(points),
    )


def sentence(point: Mapping[Any, Any]) -> str:
    """Return a violation at one size, in words."""
    return (
        f"{named(point)}: {value_text(point['left_us'], 'us')} against "
        f"{value_text(point['right_us'], 'us')}, {factor(point['ratio'])} (95 % interval "
        f"{factor(point['ratio_low'])} to {factor(point['ratio_high'])})"
    )


def named(point: Mapping[Any, Any] | pd.Series) -> str:
    """Name a guideline and the message size at which it was judged."""
    return f"{point['guideline']}{at(point['bytes'])}"


def at(size: object) -> str:
    """Return a message size in a sentence; empty for a missing size."""
    return "" if pd.isna(size) else f" at {size_text(float(str(size)))}"

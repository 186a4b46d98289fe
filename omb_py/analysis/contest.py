"""Configurations side by side: a column for each, its ratio to one of them, and which is best.

Best is what `omb-py compare` calls faster than the second: never of single launches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isnan
from typing import Any

import pandas as pd

from omb_py.analysis.compare.side_by_side import UNCLEAR, WITHIN, compare
from omb_py.analysis.plots.charts import number_points
from omb_py.analysis.plots.groups import benchmarks
from omb_py.analysis.plots.winner import (
    TIMES,
    Contender,
    contenders,
    name_of,
    without_followers,
)
from omb_py.analysis.points import along, by, label
from omb_py.core.errors import UsageError
from omb_py.core.text.tables import Sheet
from omb_py.core.text.units import digits, size_text, value_text

BINDING = ("binding",)
MPI = "buffer"
"""What others are compared with unless somebody says otherwise: MPI as most programs call it."""

FEWEST = 3
"""Bindings at one point from which a report has a table of them."""


def sheets(
    rows: pd.DataFrame,
    columns: Sequence[str] = BINDING,
    base: str | None = None,
    statistic: str = "auto",
) -> Iterator[Sheet]:
    """A table for each benchmark and number of ranks: medians, and ratios to ``base``.

    ``columns`` tell configurations apart. A ratio says how many times longer a latency is than the
    base's, or how many times less a bandwidth; of several runs medians are compared. Raises
    `UsageError` where no configuration is called ``base``, or a column is unknown.
    """
    if unknown := [name for name in columns if name not in rows]:
        raise UsageError(f"--across {unknown[0]}: there is no such column")
    whole = rows[rows["part"].isna() & rows["ranks"].notna()]
    known: set[str] = set()
    for _, part in benchmarks(without_followers(whole, columns), (), columns):
        axes = ["bytes", *along(part, "ranks"), *columns]
        for group in number_points(part, axes, [], "auto", statistic):
            for (ranks,), members in by(group.rows, ["ranks"]):
                made, names = sheet(group.benchmark, int(ranks), members, columns, base, statistic)
                known.update(names)
                if len(names) > 1:
                    yield made
    if base is not None and base not in known:
        raise UsageError(f"--base {base}: no configuration is called that: {', '.join(known)}")


def sheet(
    benchmark: str,
    ranks: int,
    rows: pd.DataFrame,
    columns: Sequence[str],
    base: str | None,
    statistic: str = "auto",
) -> tuple[Sheet, tuple[str, ...]]:
    """The table of a benchmark on so many ranks, and the configurations in it."""
    unit = str(rows["unit"].iloc[0])
    lower = unit == "us"
    measured = {name_of(key, columns): members for key, members in by(rows, list(columns))}
    names = tuple(measured)
    verdicts: dict[tuple[str, str], dict[float, str]] = {}
    first = base or (MPI if MPI in names else names[0])
    lines = []
    for (size,), members in by(rows, ["bytes"]):
        found = {one.name: one for one in contenders(members, columns)}
        ordered = sorted(found.values(), key=lambda one: one.value if lower else -one.value)
        known = UNCLEAR
        if len(ordered) > 1:
            first_two = ordered[0].name, ordered[1].name
            if first_two not in verdicts:
                best, second = (measured[name] for name in first_two)
                verdicts[first_two] = verdicts_of(best, second, statistic)
            known = verdicts[first_two].get(key_of(size), UNCLEAR)
        lines.append(
            (
                "" if size is None or isnan(size) else size_text(size),
                *(value_of(found.get(name), found.get(first), unit) for name in names),
                best_of(ordered, known),
            )
        )
    repeated = rows.groupby(["bytes", *columns], dropna=False).size()
    remark = f"In brackets: how many times {'longer' if lower else 'less'} than {first}."
    if int(repeated.min()) < 2:
        remark += " Single launches say nothing of what launches differ by: repeat them."
    title = f"{label([benchmark], ['benchmark'])}, {ranks} ranks"
    made = Sheet(title, ("size", *names, "best"), tuple(lines), (remark,))
    return made, names


def verdicts_of(best: pd.DataFrame, second: pd.DataFrame, statistic: str) -> dict[float, str]:
    """What `compare` says of the second against the best, by message size (`key_of`)."""
    if max(side.groupby("bytes", dropna=False).size().max() for side in (best, second)) < 2:
        return {}
    try:
        points = compare(best, second, statistic=statistic)
    except UsageError:  # they differ in more than was asked for
        return {}
    return {key_of(row.bytes): row.verdict for row in points.itertuples()}


def key_of(size: Any) -> float:
    """A message size as a key; -1 for none."""
    return -1.0 if pd.isna(size) else float(size)


def best_of(ordered: Sequence[Contender], verdict: str) -> str:
    """The best of some configurations in words, ``verdict`` being that on the second."""
    if len(ordered) < 2:
        return f"{ordered[0].name} alone" if ordered else ""
    first, second = ordered[:2]
    if verdict == UNCLEAR:
        return UNCLEAR
    if verdict != "slower":
        return f"{first.name}, {WITHIN}"
    high, low = max(first.value, second.value), min(first.value, second.value)
    return f"{first.name} {digits(high / low)}{TIMES}"


def value_of(one: Contender | None, base: Contender | None, unit: str) -> str:
    """A configuration's value in its unit, and its ratio to the base."""
    if one is None:
        return "-"
    text = value_text(one.value, unit)
    if base is None or one is base:
        return text
    ratio = one.value / base.value if unit == "us" else base.value / one.value
    return f"{text} ({digits(ratio)}x)"

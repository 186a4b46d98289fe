"""Configurations next to each other: a column for each, its ratio to a base, and the best one.

The best configuration is one that `omb-py compare` calls faster than the second; single launches
have no best.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from omb_py.algorithms import DEFAULT
from omb_py.analysis.compare.side_by_side import compare
from omb_py.analysis.hosts import excesses
from omb_py.analysis.points import (
    ALGORITHMS,
    TELLING,
    by,
    distinctions,
    label,
    line_name,
    points_of,
    several_hosts,
    sizes_of,
    without_implied,
)
from omb_py.analysis.select import no_column
from omb_py.analysis.values import measured, value_column
from omb_py.analysis.verdict import FASTER, SLOWER, UNCLEAR, WITHIN
from omb_py.core.errors import UsageError
from omb_py.core.text.tables import Sheet
from omb_py.core.text.units import digits, is_time, size_text, slowdown, value_text

BINDING = ("binding",)
MPI = "buffer"
"""The default base of comparisons: MPI as most programs call it."""

SIMULATOR = "SimGrid"
"""What the MPI library of simulated rows is called."""

MOST_HOSTS = 8
"""Hosts that have a column each; of more, the slowest ones beside all together."""

ALL_HOSTS = "all hosts"


def sheets(
    rows: pd.DataFrame,
    columns: Sequence[str] = BINDING,
    base: str | None = None,
    statistic: str = "auto",
) -> Iterator[Sheet]:
    """Yield a table for each benchmark and experiment: medians, and ratios to ``base``.

    ``columns`` tell configurations apart. A ratio is the factor by which a latency is longer than
    the base's, or a bandwidth lower; several runs are compared by their medians. Raises
    `UsageError` if no configuration is called ``base``, or a column is unknown.
    """
    if unknown := [name for name in columns if name not in rows]:
        raise no_column(unknown[0], rows.columns)
    rows = rows[rows["part"].isna()]
    if "hosts" in columns and several_hosts(rows):
        columns = ["host_names" if name == "hosts" else name for name in columns]
        if "host_names" in columns and rows["host_names"].nunique() > MOST_HOSTS:
            rows, base = worst_hosts(rows, statistic), base or ALL_HOSTS
    known = [name_of(one, columns) for one, _ in by(rows, list(columns))]
    if base is not None and base not in known:
        raise UsageError(f"--base {base}: no configuration is called that: {', '.join(known)}")
    for _, part in by(rows, ["benchmark"]):
        try:
            values = measured(part, "auto", statistic)
        except UsageError:  # it has no numbers
            continue
        apart = [name for name in distinctions(values, TELLING) if name not in columns]
        others = ["ranks", *(n for n in without_implied(values, apart, columns) if n != "ranks")]
        for key, members in by(values, ["unit", *others]):
            named = {name_of(one, columns): found for one, found in by(members, list(columns))}
            if len(named) > 1:
                title = [str(members["benchmark"].iloc[0]), label(key[1:], others)]
                yield sheet(", ".join(filter(None, title)), named, base, statistic)


def worst_hosts(rows: pd.DataFrame, statistic: str) -> pd.DataFrame:
    """Return the rows of all hosts as those of one called `ALL_HOSTS`, and of the slowest hosts.

    The slowest are furthest above the median host, in the mean over points (`excesses`).
    """
    excess = excesses(value_column(rows[rows["host_names"].notna()], statistic))
    worst = excess.mean().nlargest(MOST_HOSTS - 1).index
    alone = rows[rows["host_names"].isin(worst)]
    return pd.concat([rows.assign(host_names=ALL_HOSTS), alone], ignore_index=True)


def name_of(values: Sequence[Any], columns: Sequence[str]) -> str:
    """Return a configuration's name; if no algorithm was chosen, that of the library's
    choice."""
    chosen = list(columns) != ["segment"] and set(columns) <= set(ALGORITHMS)
    if chosen and all(map(pd.isna, values)):
        return DEFAULT
    name = line_name(values, columns)
    return name.removesuffix(" algorithm") if list(columns) == ["library_algorithm"] else name


def sheet(title: str, named: dict[str, pd.DataFrame], base: str | None, statistic: str) -> Sheet:
    """Return the table of configurations by their names."""
    unit = str(next(iter(named.values()))["unit"].iloc[0])
    lower = is_time(unit)
    first = base or (MPI if MPI in named else next(iter(named)))
    points = {
        name: points_of(rows.assign(size=sizes_of(rows)), ["size"]).set_index("size")
        for name, rows in named.items()
    }
    medians = pd.DataFrame({name: own["value"] for name, own in points.items()}).sort_index()
    verdicts: dict[tuple[str, str], dict[float, str]] = {}
    # a simulation gives the same time each time
    same_each_time = all(
        rows["mpi"].astype(str).str.startswith(SIMULATOR).all() for rows in named.values()
    )
    lines = []
    for size, (_, found) in zip(medians.index.tolist(), medians.iterrows(), strict=True):
        ordered = found.dropna().sort_values(ascending=lower, kind="stable")
        words = ", ".join(ordered.index) + " alone"
        if len(ordered) > 1:
            pair = (ordered.index[0], ordered.index[1])
            if pair not in verdicts:
                best, second = (named[name] for name in pair)
                verdicts[pair] = verdicts_of(best, second, statistic)
            words = best_of(
                ordered, SLOWER if same_each_time else verdicts[pair].get(size, UNCLEAR)
            )
        cells = [value_of(found[name], found.get(first), unit, name == first) for name in named]
        lines.append(("" if size < 0 else size_text(size), *cells, words))
    remark = f"In brackets: how many times {'longer' if lower else 'less'} than {first}."
    if not same_each_time and min(own["runs"].min() for own in points.values()) < 2:
        remark += " Single launches do not show how launches differ: repeat them."
    if DEFAULT in named:
        remark += " omb-py tune writes rules for the library."
    return Sheet(title, ("size", *named, "best"), tuple(lines), (remark,))


def verdicts_of(best: pd.DataFrame, second: pd.DataFrame, statistic: str) -> dict[float, str]:
    """Return `compare`'s verdicts of the second against the best, by message size (`sizes_of`).

    Empty if no size has a repeated launch: each verdict would be `UNCLEAR`.
    """
    if not any(sizes_of(rows).duplicated().any() for rows in (best, second)):
        return {}
    try:
        points = compare(best, second, statistic=statistic)
    except UsageError:  # they differ in more than was asked for
        return {}
    return dict(zip(sizes_of(points), points["verdict"], strict=True))


def best_of(ordered: pd.Series, verdict: str) -> str:
    """Return the best of some configurations in words, ``verdict`` being that on the second."""
    best, second = ordered.iloc[:2]
    if verdict == UNCLEAR:
        return UNCLEAR
    if verdict not in (SLOWER, FASTER):
        return f"{ordered.index[0]}, {WITHIN}"
    return f"{ordered.index[0]} {digits(max(best / second, second / best))}x"


def value_of(value: float, base: float | None, unit: str, is_base: bool) -> str:
    """Return a configuration's value in its unit, and its ratio to the base."""
    if pd.isna(value):
        return "-"
    text = value_text(value, unit)
    if is_base or base is None or pd.isna(base):
        return text
    return f"{text} ({digits(slowdown(value / base, unit))}x)"

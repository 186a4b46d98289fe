"""MPI libraries beside each other: one table of all, with what is proved to be best."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import partial
from itertools import combinations
from typing import Any, TypeAlias

import pandas as pd

from omb_py.analysis.compare.side_by_side import compare
from omb_py.analysis.compare.summary import ALONE, interval, number, titles, words_of
from omb_py.analysis.judging import WrongDataError
from omb_py.analysis.verdict import FASTER, SLOWER
from omb_py.core.errors import UsageError
from omb_py.core.text.tables import Sheet
from omb_py.core.text.units import size_text, value_text
from omb_py.results.columns import CONFIGURATION, EXPERIMENT, SOFTWARE

Judge: TypeAlias = Callable[..., pd.DataFrame]
Key: TypeAlias = tuple[Hashable, ...]

TELLING = ("variant", "mpi", *SOFTWARE, "suite")
"""Columns of a configuration in which libraries differ."""

SHARED = [name for name in CONFIGURATION if name not in TELLING]

MOST = 6
"""Libraries that a table has columns for; more are not compared on a page that has other parts."""

NO_BEST = "-"

REMARK = (
    "In brackets: how many times longer than {base}, or how much of its bandwidth, with the 95 % "
    "interval. Best: faster than each other one, proved for the number of points; - if none is."
)


def by_library(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the rows of each MPI library by its name, which is their label if software differs
    between labels alone.

    Else it is the library and its version. Empty for one library, and for more than `MOST`.
    """
    software = rows[["mpi", *SOFTWARE]].astype(object).apply(tuple, axis=1)
    of_label = software.groupby(rows["variant"]).nunique()
    labelled = rows["variant"].notna().all() and of_label.eq(1).all() and software.nunique() > 1
    column = "variant" if labelled else "mpi"
    names = [str(name) for name in rows[column].dropna().unique()]
    if not 1 < len(names) <= MOST:
        return {}
    return {name: rows[rows[column] == name] for name in names}


def beside(rows: pd.DataFrame, statistic: str) -> tuple[Sheet, list[str]] | None:
    """Return the table of libraries that rows are of, and its sentences.

    None for one library, or without launches enough to tell any difference.
    """
    tables = by_library(rows[rows["part"].isna()])
    if not tables:
        return None
    try:
        points = compared(tables, partial(compare, statistic=statistic))
    except (UsageError, WrongDataError):  # they have no point in common
        return None
    if points["ratio_low"].isna().all():
        return None
    base = next(iter(tables))
    return sheet(points, base), list(sentences(points, base))


def compared(tables: Mapping[str, pd.DataFrame], judge: Judge) -> pd.DataFrame:
    """Return `compare`'s points of each library against the first, with a column ``best``.

    ``best`` is the library that is faster than every other one at the point, empty if none is
    proved to be. Each pair of libraries is compared by itself, with verdicts that are adjusted for
    its number of points: beside one that differs everywhere, a pair that is alike would otherwise
    be told apart more easily. Raises `UsageError` if the first has no point of another.
    """
    names = list(tables)
    parts: list[pd.DataFrame] = []
    faster: dict[Key, set[tuple[str, str]]] = {}
    for one, other in combinations(names, 2):
        try:
            pair = judge(tables[one], tables[other], names=[one, other])
        except UsageError:
            if one == names[0]:
                raise
            continue  # they have no point in common
        note_faster(pair, one, faster)
        if one == names[0]:
            pair["pair"] += sum(int(earlier["pair"].nunique()) for earlier in parts)
            parts.append(pair)
    points = pd.concat(parts, ignore_index=True)
    measured = measured_at(points, names[0])
    found = []
    for row in points.to_dict("records"):
        key = key_of(row)
        won = [
            name
            for name in measured[key]
            if all((name, other) in faster.get(key, ()) for other in measured[key] - {name})
        ]
        found.append(won[0] if won and len(measured[key]) > 1 else None)
    return points.assign(best=pd.Series(found, points.index, dtype=object))


def note_faster(points: pd.DataFrame, base: str, faster: dict[Key, set[tuple[str, str]]]) -> None:
    """Note which libraries are faster than which at each point of a comparison with ``base``."""
    for row in points[points["verdict"].isin((SLOWER, FASTER))].to_dict("records"):
        pair = (row["other"], base) if row["verdict"] == FASTER else (base, row["other"])
        faster.setdefault(key_of(row), set()).add(pair)


def measured_at(points: pd.DataFrame, base: str) -> dict[Key, set[str]]:
    """Return the libraries that have a number at each point."""
    found: dict[Key, set[str]] = {}
    for row in points.to_dict("records"):
        there = found.setdefault(key_of(row), set())
        there |= {base} if not pd.isna(row["base"]) else set()
        there |= {row["other"]} if not pd.isna(row["value"]) else set()
    return found


def key_of(row: Mapping[Hashable, Any]) -> Key:
    """Return the identity of a point that all libraries share."""
    sides = (row[f"base_{name}"] for name in SHARED)
    others = (row[f"other_{name}"] for name in SHARED)
    shared = (two if pd.isna(one) else one for one, two in zip(sides, others, strict=True))
    cells = (*(row[name] for name in (*EXPERIMENT, "bytes", "unit", "statistic")), *shared)
    return tuple(None if pd.isna(cell) else cell for cell in cells)


def sheet(points: pd.DataFrame, base: str) -> Sheet:
    """Return the table of all libraries, of `compared` points: one line for each of them."""
    names = list(dict.fromkeys(points["other"]))
    named = titles(points, ("ranks", *TELLING))
    lines: dict[Key, dict[str, Mapping[Hashable, Any]]] = {}
    for row in points.to_dict("records"):
        lines.setdefault(key_of(row), {})[row["other"]] = row
    cells = []
    for own in lines.values():
        first = next(iter(own.values()))
        size = "" if pd.isna(first["bytes"]) else size_text(first["bytes"])
        best = NO_BEST if pd.isna(first["best"]) else first["best"]
        of_base = next((row["base"] for row in own.values() if not pd.isna(row["base"])), None)
        text = "-" if of_base is None else value_text(of_base, first["unit"])
        others = (cell(own.get(name)) for name in names)
        cells.append((named[first["pair"]], size, best, text, *others))
    ranks = sorted({int(one) for one in points["ranks"].dropna()})
    above = f"{', '.join(map(str, ranks))} ranks" if ranks else ""
    heads = ("", "size", "best", base, *names)
    return Sheet("MPI libraries", heads, tuple(cells), (REMARK.format(base=base),), above=above)


def cell(row: Mapping[Hashable, Any] | None) -> str:
    """Return the value of a library, with its ratio to the base and the verdict."""
    if row is None or pd.isna(row["value"]):
        return "-"
    text = value_text(row["value"], row["unit"])
    if row["verdict"] in ALONE:
        return text
    ratio = number(row["ratio"], row["rounding"])
    if not pd.isna(row["ratio_low"]):
        ratio += f", {interval(row['ratio_low'], row['ratio_high'], row['rounding'])}"
    return f"{text} ({ratio}) {words_of(row['verdict'], row['tolerance'])}"


def sentences(points: pd.DataFrame, base: str) -> Iterator[str]:
    """Yield how often each library is proved to be the best, and what can be said of no point."""
    places = points.assign(key=[key_of(row) for row in points.to_dict("records")])
    each = places.drop_duplicates("key")
    for name in (base, *dict.fromkeys(points["other"])):
        own = each[each["best"] == name]
        if len(own):
            where = ", ".join(dict.fromkeys(map(str, own["benchmark"])))
            yield f"{name}: best at {len(own)} of {len(each)} points ({where})"
    if none := int(each["best"].isna().sum()):
        yield f"no library is proved to be best at {none} of {len(each)} points"

"""Pairs of the rows of two tables that are compared with each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any, TypeAlias

import pandas as pd

from omb_py.core.errors import UsageError
from omb_py.core.text.words import first_of
from omb_py.results.columns import CONFIGURATION, EXPERIMENT, SOFTWARE

STRICT = ("benchmark", "part", "unit")
"""Columns that must agree even where they are empty: an empty ``part`` is the whole."""

OPEN = tuple(name for name in EXPERIMENT if name not in STRICT)
"""Columns that must agree if both tables have a value for them."""

FIRST, LAST = ("binding", "buffer"), (*SOFTWARE, "mpi", "suite")
ORDER = (*FIRST, *(name for name in CONFIGURATION if name not in FIRST + LAST), *LAST)
"""The order in which pairing requires configuration columns to agree: columns that are typically
compared come last."""

MAX_VALUES = 6
"""Values that a sentence names."""


Row: TypeAlias = dict[str, Any]
"""A row of a table, None if a value is missing; ``kind`` is its number."""


def pair(base: pd.DataFrame, other: pd.DataFrame, names: tuple[str, str]) -> pd.DataFrame:
    """Pair the rows of two tables, which ``names`` calls by name in errors.

    Rows of a pair agree in the columns of `EXPERIMENT`; a missing value of a benchmark matches the
    other table's, if that is unique. A configuration column that varies within both tables must
    agree, too; a column that varies within one of them or in neither is compared. Message sizes are
    ignored.

    Returns the number of each ``pair`` with its rows ``kind_x`` of base and ``kind_y`` of other,
    one experiment in one configuration of each table. A row may belong to several pairs; a row
    without a counterpart is a pair with None. Raises `UsageError` if the pairs are ambiguous, or
    there is none.
    """
    tables = [dicts_of(base), dicts_of(other)]
    varied = varied_in_both(tables)
    found: list[tuple[int | None, int | None]] = []
    for key in dict.fromkeys(key_of(row, STRICT) for rows in tables for row in rows):
        sides = [[row for row in rows if key_of(row, STRICT) == key] for rows in tables]
        found += pairs_of(sides, varied, names)
    if not any(None not in kinds for kinds in found):
        raise UsageError(nothing_in_common(tables, names))
    pairs = pd.DataFrame(found, columns=["kind_x", "kind_y"], dtype="Int64")
    return pairs.rename_axis("pair").reset_index()


def dicts_of(frame: pd.DataFrame) -> list[Row]:
    """Return the rows of a table."""
    # libraries without a type of these elements are passed another one
    frame = frame.assign(mpi_type=frame["mpi_type"].where(frame["elements"].isna()))
    plain = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return [{**{str(n): v for n, v in row.items()}, "kind": i} for i, row in enumerate(plain)]


def key_of(row: Row, names: Iterable[str]) -> tuple[Any, ...]:
    """Return a row's values of some columns."""
    return tuple(row[name] for name in names)


def values(rows: Iterable[Row], name: str) -> list[Any]:
    """Return the different values of a column, in their order, without a missing one."""
    return list(dict.fromkeys(row[name] for row in rows if row[name] is not None))


def varied_in_both(tables: Sequence[Sequence[Row]]) -> list[str]:
    """Return the configuration columns that vary within both tables, whatever the benchmark."""
    apart = [
        [name for name in (*STRICT, *OPEN) if len({row[name] for row in rows}) > 1]
        for rows in tables
    ]

    def varies(rows: Sequence[Row], keys: Sequence[str], column: str) -> bool:
        groups = defaultdict(set)
        for row in rows:
            if row[column] is not None:
                groups[key_of(row, keys)].add(row[column])
        return any(len(group) > 1 for group in groups.values())

    found: list[str] = []
    for column in ORDER:
        if all(
            varies(rows, [*keys, *found], column) for rows, keys in zip(tables, apart, strict=True)
        ):
            found.append(column)
    return found


def pairs_of(
    sides: Sequence[Sequence[Row]], varied: Sequence[str], names: tuple[str, str]
) -> Iterator[tuple[int | None, int | None]]:
    """Yield the kinds that are a pair of one benchmark, with None for a missing counterpart."""
    said = [{name for name in OPEN if values(side, name)} for side in sides]
    keys = [*(name for name in OPEN if name in said[0] & said[1]), *varied]
    groups: dict[tuple[Any, ...], tuple[list[Row], list[Row]]] = {}
    for number, side in enumerate(sides):
        for row in side:
            groups.setdefault(key_of(row, keys), ([], []))[number].append(row)
    for group in groups.values():
        if not all(group):
            yield from ((row["kind"], None) for row in group[0])
            yield from ((None, row["kind"]) for row in group[1])
            continue
        for name in OPEN:
            if name in said[0] ^ said[1] and max(len(values(rows, name)) for rows in group) > 1:
                raise UsageError(undeclared(sides, name, names))
        if min(map(len, group)) > 1:
            raise UsageError(several(group, names))
        yield from ((one["kind"], two["kind"]) for one, two in product(*group))


def several(sides: Sequence[Sequence[Row]], names: tuple[str, str]) -> str:
    """Return the error that both tables have several configurations, of different kinds."""
    parts, examples = [], []
    for side, other, name in zip(sides, sides[::-1], names, strict=True):
        columns = [name for name in (*ORDER, *OPEN) if len({row[name] for row in side}) > 1]
        for column in columns:
            there = values(side, column)
            common = [value for value in there if value in values(other, column)]
            examples.append(f"--where '{column}={(common or there)[0]}'")
        parts.append(f"{name} has rows of several {' and '.join(columns)}")
    return f"{', '.join(parts)}: choose what to compare, as with {examples[0]}"


def undeclared(sides: Sequence[Sequence[Row]], column: str, names: tuple[str, str]) -> str:
    """Return the error that one table lacks a column, with the other table's values."""
    silent = int(not values(sides[1], column))
    there = values(sides[1 - silent], column)
    return (
        f"{names[silent]} does not say the {column} of {sides[0][0]['benchmark']}, and there "
        f"is {column} {list_names(there)}: say it with --assume {column}={there[0]}, or choose "
        f"with --where {column}={there[0]}"
    )


def nothing_in_common(tables: Sequence[Sequence[Row]], names: tuple[str, str]) -> str:
    """Return the reason why no row of one table can be compared with one of the other."""
    for column in (*STRICT, *OPEN, *ORDER):
        mine, theirs = (set(values(rows, column)) for rows in tables)
        if mine and theirs and not mine & theirs and column not in LAST:
            if column == "validated":
                checked, plain = names if mine == {True} else names[::-1]
                return (
                    f"nothing to compare: {checked} was measured with -c, which checks data and "
                    f"uses cold memory, {plain} without"
                )
            return (
                f"nothing to compare: {names[0]} has {column} {list_names(mine)}, {names[1]} has "
                f"{column} {list_names(theirs)}"
            )
        if column == "benchmark":
            tables = [[row for row in rows if row[column] in mine & theirs] for rows in tables]
    return f"nothing to compare: no experiment of {names[0]} is in {names[1]}"


def list_names(there: Iterable[object]) -> str:
    """Name the first of some values for a sentence, the shortest first."""
    texts = sorted(map(str, there), key=lambda text: (len(text), text))
    return first_of(texts, MAX_VALUES)

"""Who is compared with whom: rows of two tables that measured the same thing."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from omb_py.core.errors import UsageError
from omb_py.core.text.words import first_of
from omb_py.results.columns import CONFIGURATION, EXPERIMENT

STRICT = ("benchmark", "part", "unit")
"""Columns that must agree even where they are empty: an empty ``part`` is the whole."""

OPEN = tuple(name for name in EXPERIMENT if name not in STRICT)
"""Columns that must agree where both tables say them."""

FIRST, LAST = ("binding", "buffer"), ("mpi", "suite")
ORDER = (*FIRST, *(name for name in CONFIGURATION if name not in FIRST + LAST), *LAST)
"""In which order configuration columns are asked whether rows must agree in them: what is
typically compared comes last."""

SIDES = ("base", "other")

MAX_VALUES = 6
"""Values that a sentence names."""


@dataclass(frozen=True)
class Pairs:
    """Rows of each table (``kind``) with the number of the ``pair`` that they belong to.

    A pair is one experiment in one configuration of each table. A row may belong to several
    pairs; one that nothing is compared with belongs to a pair that only its own table has.
    """

    base: pd.DataFrame
    other: pd.DataFrame


def pair(base: pd.DataFrame, other: pd.DataFrame, names: tuple[str, str]) -> Pairs:
    """Pair the rows of two tables, which ``names`` calls by name in errors.

    Rows of a pair agree in the columns of `EXPERIMENT`; one that a table does not say of a
    benchmark matches the value of the other, as long as there is one. A configuration column that
    varies within both tables must agree, too; one that varies within one of them or none is what is
    compared. Message sizes are not looked at. Raises `UsageError` where that leaves a choice, or
    no pair.
    """
    tables = [frame.assign(kind=np.arange(len(frame))) for frame in (base, other)]
    benchmarks = pd.concat([frame[list(STRICT)] for frame in tables]).drop_duplicates()
    varied = varied_in_both(tables)
    parts = []
    for key in benchmarks.to_dict("records"):
        sides = [frame[alike(frame, key)] for frame in tables]
        parts.append(
            pairs_of(sides, varied, names)
            if all(map(len, sides))
            else pd.concat(
                [s[["kind"]].rename(columns={"kind": n}) for s, n in zip(sides, SIDES, strict=True)]
            )
        )
    pairs = pd.concat(parts, ignore_index=True).reindex(columns=list(SIDES))
    if not pairs.notna().all(axis=1).any():
        raise UsageError(nothing_in_common(base, other, names))
    pairs["pair"] = np.arange(len(pairs))
    found = [
        pairs.loc[pairs[side].notna(), [side, "pair"]].rename(columns={side: "kind"}).astype(int)
        for side in SIDES
    ]
    return Pairs(*found)


def alike(frame: pd.DataFrame, key: Mapping[Hashable, Any]) -> pd.Series:
    """Which rows have the values of ``key``; missing ones are missing."""
    masks = [
        frame[n].isna() if pd.isna(value) else frame[n].eq(value).fillna(False)
        for n, value in key.items()
    ]
    return pd.Series(np.logical_and.reduce(masks), frame.index)


def varied_in_both(tables: list[pd.DataFrame]) -> list[str]:
    """The configuration columns that vary within both tables, whatever the benchmark."""
    varying = [{name for name in frame if frame[name].nunique() > 1} for frame in tables]
    apart = [
        [name for name in (*STRICT, *OPEN) if frame[name].nunique(dropna=False) > 1]
        for frame in tables
    ]
    found: list[str] = []
    for column in (name for name in ORDER if name in varying[0] & varying[1]):
        counts = [
            frame.groupby([*keys, *found], dropna=False)[column].nunique().max()
            if keys or found
            else frame[column].nunique()
            for frame, keys in zip(tables, apart, strict=True)
        ]
        if min(counts) > 1:
            found.append(column)
    return found


def pairs_of(sides: list[pd.DataFrame], varied: list[str], names: tuple[str, str]) -> pd.DataFrame:
    """The pairs of one benchmark: columns `SIDES`, of which one is missing where it is alone."""
    said = [{name for name in OPEN if side[name].notna().any()} for side in sides]
    keys = [name for name in OPEN if name in said[0] & said[1]]
    keys += varied
    open_columns = [name for name in OPEN if name in said[0] ^ said[1]]
    pairs = pd.merge(
        *(
            side.assign(every=0)[["every", *keys, *open_columns, "kind"]].rename(
                columns={"kind": name, **{one: f"{one} of {name}" for one in open_columns}}
            )
            for side, name in zip(sides, SIDES, strict=True)
        ),
        on=["every", *keys],
        how="outer",
    )
    groups = pairs.groupby(["every", *keys], dropna=False)
    both = groups[list(SIDES)].transform("nunique").min(axis=1) > 0
    for name in open_columns:
        column = f"{name} of {SIDES[int(name in said[1])]}"
        if bool((groups[column].transform("nunique") > 1)[both].any()):
            raise UsageError(undeclared(sides, name, names))
    choice = groups[list(SIDES)].transform("nunique").min(axis=1) > 1
    if choice.any():
        chosen = pairs[choice]
        first = chosen.iloc[0]
        members = [side[alike(side, {name: first[name] for name in keys})] for side in sides]
        raise UsageError(several(members, names))
    return pairs[list(SIDES)]


def several(sides: list[pd.DataFrame], names: tuple[str, str]) -> str:
    """Why configurations cannot be paired: both tables have several, of different kinds."""
    parts, examples = [], []
    for side, other, name in zip(sides, sides[::-1], names, strict=True):
        columns = [name for name in (*ORDER, *OPEN) if side[name].nunique(dropna=False) > 1]
        for column in columns:
            there = side[column].dropna().unique()
            common = [value for value in there if value in set(other[column])]
            examples.append(f"--where '{column}={(common or list(there))[0]}'")
        parts.append(f"{name} has rows of several {' and '.join(columns)}")
    return f"{', '.join(parts)}: choose what to compare, as with {examples[0]}"


def undeclared(sides: list[pd.DataFrame], column: str, names: tuple[str, str]) -> str:
    """Which table leaves a column open, and what the other one has there."""
    silent = int(sides[1][column].isna().all())
    there = sides[1 - silent][column].dropna().unique()
    return (
        f"{names[silent]} does not say the {column} of {sides[0]['benchmark'].iloc[0]}, and there "
        f"is {column} {list_names(there)}: say it with --assume {column}={there[0]}, or choose "
        f"with --where {column}={there[0]}"
    )


def nothing_in_common(base: pd.DataFrame, other: pd.DataFrame, names: tuple[str, str]) -> str:
    """Why no row of one table can be compared with one of the other."""
    for column in (*STRICT, *OPEN, *ORDER):
        mine, theirs = (set(frame[column].dropna().unique()) for frame in (base, other))
        if mine and theirs and not mine & theirs and column not in ("mpi", "suite"):
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
            base = base[base["benchmark"].isin(theirs)]
            other = other[other["benchmark"].isin(mine)]
    return f"nothing to compare: no experiment of {names[0]} is in {names[1]}"


def list_names(values: Iterable[object]) -> str:
    """Some values in a sentence."""
    texts = sorted(map(str, values), key=lambda text: (len(text), text))
    return first_of(texts, MAX_VALUES)

"""Who is compared with whom: rows of two tables that measured the same thing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

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

    Rows of a pair agree in the columns of `EXPERIMENT`; a column that one table does not say
    matches any value of the other, as long as there is one. A configuration column that varies
    within both tables must agree, too; one that varies within one of them or none is what is
    compared. Message sizes are not looked at. Raises `UsageError` where that leaves a choice, or
    no pair.
    """
    codes = [
        pd.DataFrame({"kind": np.arange(len(frame)), "side": side})
        for side, frame in enumerate((base, other))
    ]
    for column in (*STRICT, *OPEN, *CONFIGURATION):
        for table, values in zip(codes, encode([base[column], other[column]]), strict=True):
            table[column] = values
    rows = pd.concat(codes, ignore_index=True)
    rows["experiment"] = numbers(rows, [*STRICT, *OPEN])
    linked = experiments(rows, (base, other), names)
    rows["linked"] = rows["experiment"].map(linked)
    rows["configuration"] = numbers(rows, ["linked", *CONFIGURATION])
    pairs = configurations(rows, (base, other), names)
    if not pairs.notna().all(axis=1).any():
        raise UsageError(nothing_in_common(base, other, names))
    found = [
        rows.loc[rows["side"] == side, ["kind", "configuration"]]
        .merge(pairs[[name, "pair"]], left_on="configuration", right_on=name)
        .loc[:, ["kind", "pair"]]
        for side, name in enumerate(("base", "other"))
    ]
    return Pairs(*found)


def encode(columns: Sequence[pd.Series]) -> Iterable[np.ndarray]:
    """Each column as numbers, the same for the same value in all of them; -1 where it is missing.

    >>> [list(map(int, codes)) for codes in encode([pd.Series(["a", None]), pd.Series(["b", "a"])])]
    [[0, -1], [1, 0]]
    """
    known: dict[object, int] = {}
    for column in columns:
        codes, uniques = pd.factorize(column)
        places = [known.setdefault(value, len(known)) for value in uniques]
        yield np.array([*places, -1])[codes]


def numbers(rows: pd.DataFrame, columns: list[str]) -> pd.Series:
    """A number for each combination of columns that hold numbers."""
    telling = [name for name in columns if rows[name].nunique() > 1]
    if not telling:
        return pd.Series(0, index=rows.index)
    return rows.groupby(telling, sort=False).ngroup()


def experiments(
    rows: pd.DataFrame, tables: tuple[pd.DataFrame, pd.DataFrame], names: tuple[str, str]
) -> pd.Series:
    """For each experiment the number that it shares with those of the other table that match it.

    An experiment that both tables have exactly needs no other. Raises `UsageError` where one that
    leaves columns open matches several that differ in them.
    """
    seen = rows.groupby("experiment")[[*STRICT, *OPEN]].first()
    sides = rows.groupby("experiment")["side"].agg(["min", "max"])
    seen["known"] = (seen[list(OPEN)].to_numpy() >= 0) @ (1 << np.arange(len(OPEN)))
    edges = []
    for side in (0, 1):
        alone = seen[(sides["min"] == side) & (sides["max"] == side)]
        there = seen[sides["max" if side == 0 else "min"] != side]
        edges.append(compatible(alone.reset_index(), there.reset_index()))
    edge = pd.concat(edges, ignore_index=True)
    graph = coo_array(
        (np.ones(len(edge)), (edge["experiment_x"], edge["experiment_y"])),
        shape=(len(seen), len(seen)),
    )
    seen["linked"] = connected_components(graph, directed=False)[1]
    told = seen[list(OPEN)].where(seen[list(OPEN)] >= 0).groupby(seen["linked"])
    clash = told.min() < told.max()
    if bool(clash.to_numpy().any()):
        first = clash.index[clash.any(axis=1)][0]
        columns = [name for name in OPEN if clash.loc[first, name]]
        members = rows[rows["experiment"].isin(seen.index[seen["linked"] == first])]
        raise UsageError(undeclared(members, columns, tables, names))
    return seen["linked"]


def compatible(left: pd.DataFrame, right: pd.DataFrame) -> pd.DataFrame:
    """The experiments of two tables that agree in all columns which both say."""
    found = [pd.DataFrame({"experiment_x": [], "experiment_y": []}, dtype=np.int64)]
    for known_left, some in left.groupby("known"):
        for known_right, others in right.groupby("known"):
            both = [name for i, name in enumerate(OPEN) if known_left & known_right & (1 << i)]
            merged = some.merge(others, on=[*STRICT, *both])
            found.append(merged[["experiment_x", "experiment_y"]])
    return pd.concat(found, ignore_index=True)


def configurations(
    rows: pd.DataFrame, tables: tuple[pd.DataFrame, pd.DataFrame], names: tuple[str, str]
) -> pd.DataFrame:
    """Numbers of the configurations of each pair: columns ``base``, ``other`` and ``pair``.

    One of the first two is missing where there is nothing to compare a configuration with.
    Raises `UsageError` where several of one table could be compared with several of the other.
    """
    there = rows.drop_duplicates(["side", "configuration"])
    keys = ["linked"]
    for column in ORDER:
        varied = there.groupby(["side", *keys])[column].nunique() > 1
        if varied.groupby("side").any().sum() == 2:
            keys.append(column)
    sides = [
        there.loc[there["side"] == side, [*keys, "configuration"]].rename(
            columns={"configuration": name}
        )
        for side, name in enumerate(("base", "other"))
    ]
    pairs = sides[0].merge(sides[1], on=keys, how="outer")
    choice = pairs.groupby(keys)[["base", "other"]].transform("nunique")
    unclear = pairs[(choice["base"] > 1) & (choice["other"] > 1)]
    if not unclear.empty:
        members = there.merge(unclear[keys].head(1), on=keys)
        raise UsageError(several(members, tables, names))
    pairs["pair"] = np.arange(len(pairs))
    return pairs


def several(
    members: pd.DataFrame, tables: tuple[pd.DataFrame, pd.DataFrame], names: tuple[str, str]
) -> str:
    """Why configurations cannot be paired: both tables have several, of different kinds."""
    parts, examples = [], []
    for side, name in enumerate(names):
        mine, others = (members[members["side"] == which] for which in (side, 1 - side))
        columns = [column for column in ORDER if mine[column].nunique() > 1]
        for column in columns:
            there = tables[side][column].iloc[mine["kind"]].dropna()
            wanted = tables[1 - side][column].iloc[others["kind"]].dropna()
            common = [value for value in there.unique() if value in set(wanted)]
            examples.append(f"--where '{column}={(common or list(there))[0]}'")
        parts.append(f"{name} has rows of several {' and '.join(columns)}")
    return f"{', '.join(parts)}: choose what to compare, as with {examples[0]}"


def undeclared(
    members: pd.DataFrame,
    columns: list[str],
    tables: tuple[pd.DataFrame, pd.DataFrame],
    names: tuple[str, str],
) -> str:
    """Which table leaves a column open, and what the other one has there."""
    column = columns[0]
    told = [
        tables[side][column].iloc[members.loc[members["side"] == side, "kind"]] for side in (0, 1)
    ]
    silent = int(bool(told[1].isna().any()))
    there = pd.concat([part.dropna().astype(object) for part in told]).unique()
    example = f"{column}={there[0]}"
    benchmark = tables[silent]["benchmark"].iloc[
        members.loc[members["side"] == silent, "kind"].iloc[0]
    ]
    return (
        f"{names[silent]} does not say the {' and '.join(columns)} of {benchmark}, and there is "
        f"{column} {list_names(there)}: say it with --assume {example}, or choose with --where "
        f"{example}"
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

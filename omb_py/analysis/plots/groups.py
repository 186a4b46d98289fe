"""Which rows are one figure, which of them one line, and what all of them have in common."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from omb_py.analysis.grouping import group_ids, is_determined_by
from omb_py.analysis.plots.style import BINDINGS, MAX_LINES
from omb_py.analysis.select import no_column
from omb_py.analysis.sources import short_names
from omb_py.analysis.values import CONFIGURATION, EXPERIMENT, label
from omb_py.core.text.units import size_text

MAX_PANELS = 12
"""Panels of one figure; more of them are figures of their own."""

PANELS_FIRST = ("ranks", "mpi")
"""Columns whose values become panels before those of others, where lines are too many for one."""

COLUMNS = tuple(name for name in (*CONFIGURATION, *EXPERIMENT) if name != "benchmark")
"""Columns that may tell lines apart."""

USUAL = {
    ("layout", "cont"),
    ("send_mode", "standard"),
    ("pairs", 1),
    ("test_calls", 0),
    ("in_place", False),
    ("staged", False),
    ("stream_sync", False),
    ("validated", False),
}
"""What goes without saying."""

NAMING = ("suite", "mpi", "buffer", "binding")
"""Columns that name a line even where others have no such value."""

OF_FILES = ("suite", "mpi", "hosts")
"""Columns that need not be in a line's name beside the name of its file, if they follow from it."""

GROWING = ("hosts", "pairs", "nodes")
"""What may grow with the ranks."""

COUNTED = ("ranks", "hosts", "pairs", "partitions", "nodes", "failed")


def along(rows: pd.DataFrame, axis: str) -> tuple[str, ...]:
    """``axis`` with the columns that only grow along it: hosts with ranks, say."""
    growing = GROWING if axis == "ranks" else ()
    names = [name for name in growing if number(rows, [axis, name]) == number(rows, [axis])]
    return (axis, *names)


@dataclass(frozen=True)
class Group:
    """The rows of one figure.

    ``values`` is what tells this figure from others of the same benchmarks, ``lines`` the columns
    that tell its lines apart.
    """

    benchmark: str
    values: Mapping[str, object]
    rows: pd.DataFrame
    lines: tuple[str, ...]

    @property
    def facts(self) -> list[str]:
        """What this figure has in common that others of the same benchmarks have not."""
        return [caption_part(*item) for item in self.values.items() if item[0] != "unit"]

    def name(self, kind: str = "") -> str:
        """Its title as the name of a file."""
        parts = [self.benchmark, kind, *(caption_part(*item) for item in self.values.items())]
        return "-".join(plain(part) for part in parts if part)


def group_rows(
    rows: pd.DataFrame, axes: Sequence[str], lines: Sequence[str] | None = None
) -> Iterator[Group]:
    """A group for each figure. ``axes`` are the columns along its axes.

    With ``lines`` those columns tell lines apart and all others tell figures apart; without, all
    columns in which rows differ tell lines apart. Raises `UsageError` for a line's column that
    there is not.
    """
    for name in lines or ():
        if name not in rows.columns or name in ("value", "line"):
            raise no_column(name, COLUMNS)
    for benchmark, part in benchmarks(rows, axes, lines):
        columns = [name for name in COLUMNS if name not in axes]
        found = [distinctions(members, columns) for _, members in by(part, ["benchmark"])]
        telling = [name for name in columns if any(name in names for names in found)]
        wanted = list(telling if lines is None else [name for name in lines if name not in axes])
        if "file" in wanted:
            part = part.assign(file=part["file"].map(short_names(part["file"].dropna().unique())))
        if lines is None and part["source"].notna().all():
            sure = without_implied(part, OF_FILES, ["source"])
            telling = wanted = [name for name in wanted if name not in OF_FILES or name in sure]
        others = without_implied(part, [name for name in telling if name not in wanted], wanted)
        if part["unit"].nunique() > 1:
            others.append("unit")
        for values, members in by(part, others):
            named = dict(zip(others, values, strict=True))
            yield Group(benchmark, named, members, tuple(distinctions(members, wanted)))


def panel_columns(rows: pd.DataFrame, columns: Sequence[str]) -> tuple[str, ...]:
    """The columns whose values become panels, so that none has more than `MAX_LINES` lines.

    None where all lines go into one panel; those of `PANELS_FIRST`, which leave more lines, where
    no columns make at most `MAX_PANELS`.
    """
    if number(rows, list(columns)) <= MAX_LINES:
        return ()
    places = {name: place for place, name in enumerate(PANELS_FIRST)}
    candidates = sorted(columns, key=lambda name: (places.get(name, 9), rows[name].nunique()))
    for count in range(1, len(columns)):
        for chosen in combinations(candidates, count):
            others = [name for name in columns if name not in chosen]
            parts = [number(members, others) for _, members in by(rows, list(chosen))]
            if 1 < len(parts) <= MAX_PANELS and max(parts) <= MAX_LINES:
                return tuple(name for name in columns if name in chosen)
    return tuple(name for name in columns if name in PANELS_FIRST and len(columns) > 1)


def benchmarks(
    rows: pd.DataFrame, axes: Sequence[str], lines: Sequence[str] | None
) -> Iterator[tuple[str, pd.DataFrame]]:
    """The rows of each benchmark, or of all at once where a figure tells benchmarks apart."""
    if "benchmark" in (*axes, *(lines or ())):
        yield "benchmarks", rows
        return
    for (name,), members in by(rows, ["benchmark"]):
        yield str(name), members


def by(rows: pd.DataFrame, columns: list[str]) -> Iterator[tuple[tuple[Any, ...], pd.DataFrame]]:
    """Rows apart by columns, with None for a value that is missing.

    Numbers are in their order, bindings as in every figure, other words as they come.
    """
    if not columns:
        yield (), rows
        return
    places: dict[tuple[Any, ...], list[int]] = {}
    for place, key in enumerate(zip(*(plain_values(rows[name]) for name in columns), strict=True)):
        places.setdefault(key, []).append(place)
    order = [list(dict.fromkeys(key[index] for key in places)) for index in range(len(columns))]

    def rank(value: Any, known: list[Any]) -> float:
        if value is None:
            return -1.0
        if isinstance(value, str):
            return BINDINGS.index(value) if value in BINDINGS else known.index(value)
        return float(value)

    for key in sorted(places, key=lambda key: list(map(rank, key, order))):
        yield key, rows.iloc[places[key]]


def plain_values(column: pd.Series) -> list[Any]:
    """A column's values as Python's own, None where one is missing."""
    return [None if pd.isna(value) else value for value in column.tolist()]


def number(rows: pd.DataFrame, columns: list[str]) -> int:
    """How many combinations of values the rows have."""
    return len(rows[columns].drop_duplicates()) if columns else 1


def without_implied(rows: pd.DataFrame, columns: Sequence[str], known: Sequence[str]) -> list[str]:
    """The columns that rows may differ in though they agree in the columns ``known``."""
    if not known:
        return list(columns)
    numbers = group_ids(rows[name] for name in known)
    return [
        name
        for name in columns
        if name in known or not is_determined_by(group_ids([rows[name]]), numbers)
    ]


def distinctions(rows: pd.DataFrame, columns: Iterable[str]) -> list[str]:
    """The columns that tell rows apart.

    One that some rows have and others have not, as where another suite does not print it, is left
    out if other columns tell those rows apart already.
    """
    names = [name for name in columns if rows[name].nunique(dropna=False) > 1]
    sure = [name for name in names if rows[name].nunique() > 1 or name in NAMING]
    for name in names:
        if name not in sure and number(rows, [*sure, name]) > number(rows, sure):
            sure.append(name)
    return [name for name in names if name in sure]


def line_name(values: Sequence[object], columns: Sequence[str]) -> str:
    """A line's name in a legend; never empty."""
    texts = []
    for value, column in zip(values, columns, strict=True):
        if pd.isna(value):
            continue
        if column == "bytes":
            texts.append(size_text(value))  # type: ignore[arg-type]
        elif isinstance(value, (bool, np.bool_)) or column in (*COUNTED, "test_calls"):
            texts.append(caption_part(column, value))
        else:
            texts.append(label((value,), (column,)))
    return ", ".join(texts) or "not said: " + ", ".join(columns)


def caption_part(column: str, value: object) -> str:
    """A value with its column, as a caption has it.

    >>> [caption_part(*one) for one in (("ranks", 2), ("in_place", True), ("mpi", "MPICH 5"))]
    ['2 ranks', 'in place', 'MPICH 5']
    """
    words = column.replace("_", " ")
    if pd.isna(value):
        return f"{words} not said"
    if isinstance(value, (bool, np.bool_)):
        return words if value else f"not {words}"
    if column in COUNTED:
        return f"{value} {words if value != 1 else words[:-1]}"
    if column == "unit":
        return {"us": "latency", "MB/s": "bandwidth", "msg/s": "message rate"}[str(value)]
    if column in ("suite", "mpi", "mpi_type", "part", "benchmark", "run"):
        return str(value)
    return f"{words} {value}"


def common(rows: pd.DataFrame, besides: Container[str]) -> list[str]:
    """What all rows that say it have in common, in words; columns ``besides`` left out.

    Of several benchmarks, what all of them say.
    """
    words = []
    joint = rows["benchmark"].nunique() > 1
    for column in dict.fromkeys(("suite", "mpi", "ranks", "hosts", *COLUMNS)):
        if column not in rows or (joint and rows[column].isna().any()):
            continue
        values = rows[column].dropna().unique().tolist()
        if column not in besides and len(values) == 1 and (column, values[0]) not in USUAL:
            words.append(caption_part(column, values[0]))
    return words


def plain(text: str) -> str:
    """A text as part of a file's name.

    >>> plain("Open MPI 5.0.11")
    'open-mpi-5.0.11'
    """
    return re.sub(r"[^A-Za-z0-9._+]+", "-", text).strip("-.").lower() or "x"

"""Choice of rows, and assumptions about missing values, in the words of a command line."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import pandas as pd

from omb_py.analysis.table import kind_of
from omb_py.analysis.values import same_ends
from omb_py.core.errors import UsageError
from omb_py.core.text.units import parse_bytes, parse_decimal
from omb_py.core.text.words import nearest
from omb_py.results.columns import KINDS, LOADED

COLUMNS = frozenset((*KINDS, *LOADED))
ALL = "*"
KIND_OF_VALUES = {"integer": "int", "floating": "float", "boolean": "bool", "string": "str"}
"""Kinds of columns by what pandas finds in them."""

OF_FILES = re.compile(r"(?P<files>.+?) *: *(?P<rest>\w+ *=.*)")


def where(
    frame: pd.DataFrame, texts: Iterable[str], known: Collection[str] = COLUMNS
) -> pd.DataFrame:
    """Return the rows that have, for every ``COLUMN=VALUE[,VALUE…]``, one of the column's values.

    Bytes may be written as ``64K``; no value is that of an empty cell. Raises `UsageError` when a
    text is not of that form, names no ``known`` column or a value that such a column cannot have,
    or when no row is left.
    """
    (found,) = where_of_kinds([frame], texts, known)
    return found


def where_of_kinds(
    frames: Sequence[pd.DataFrame], texts: Iterable[str], known: Collection[str] = COLUMNS
) -> list[pd.DataFrame]:
    """Return the rows of several kinds that `where` chooses; it refuses if no kind has such a row.

    A kind without a column has no row with its values.
    """
    for name, values in pairs(texts, known).items():
        columns = [one[name].dropna().unique() for one in frames if name in one]
        every = {str(value) for column in columns for value in column}
        if ",".join(values) not in every:  # a text may have a comma
            for value in values[1:]:
                other, equals, _ = value.partition("=")
                if equals and other in known and value not in every:
                    raise UsageError(
                        f"no row has {name}={value}: write each column as an option of its own, "
                        f"--where {name}={values[0]} --where {value}"
                    )
        chosen = [rows_with(frame, name, values) for frame in frames]
        if any(map(len, frames)) and not any(map(len, chosen)):
            there = ", ".join(sorted(every)[:12])
            asked = ",".join(values)
            raise UsageError(
                f"no row has {name}={asked}: " + (f"there are {there}" if there else "none says it")
            )
        frames = chosen
    return list(frames)


def rows_with(frame: pd.DataFrame, name: str, values: Sequence[str]) -> pd.DataFrame:
    """Return the rows with one of a column's values; none if there is no such column."""
    if name not in frame:
        return frame.iloc[:0]
    kind = KIND_OF_VALUES.get(pd.api.types.infer_dtype(frame[name], skipna=True))
    whole = [",".join(values)] if kind == "str" else []  # a text may have a comma
    wanted = [convert(name, value, kind) for value in (*values, *whole) if value]
    cells = frame[name]
    empty = cells.isna() | (cells == "") if "" in values else False
    if name == "placement":  # D D is D
        cells = cells.map(same_ends, na_action="ignore")
        wanted = [same_ends(value) for value in wanted]
    return frame[cells.isin(wanted) | empty]


def assumptions(texts: Iterable[str]) -> dict[str, Any]:
    """Return assumptions about missing values from ``[FILES:]COLUMN=VALUE`` texts.

    Raises `UsageError` when a text is not of that form or gives several values.

    >>> assumptions(["mpi=MPICH 5.0.2", "ranks=8", "*-16-256-*:ranks=256"])
    {'mpi': {'*': 'MPICH 5.0.2'}, 'ranks': {'*-16-256-*': 256, '*': 8}}
    """
    found: dict[str, dict[str, Any]] = {}
    for text in texts:
        match = None if text.partition("=")[0].strip() in COLUMNS else OF_FILES.fullmatch(text)
        files, rest = (match["files"], match["rest"]) if match else (ALL, text)
        for column, values in pairs([rest]).items():
            of_files = found.setdefault(column, {})
            if len(values) != 1 or files in of_files:
                count = max(2, len(values))
                raise UsageError(f"{column} can be assumed to have one value, not {count}")
            of_files[files] = convert(column, values[0])
    for of_files in found.values():
        if ALL in of_files:
            of_files[ALL] = of_files.pop(ALL)  # the last of them
    return found


def pairs(texts: Iterable[str], known: Collection[str] = COLUMNS) -> dict[str, list[str]]:
    """Return the column of each text with its values.

    Raises `UsageError` when a text is not ``COLUMN=VALUE`` or its column is unknown.
    """
    found: dict[str, list[str]] = {}
    for text in texts:
        name, equals, values = (part.strip() for part in text.partition("="))
        if not equals:
            raise UsageError(f"{text!r} is not COLUMN=VALUE, as in ranks=8 or buffer=numpy,cupy")
        if name not in known:
            raise no_column(name, known)
        found.setdefault(name, []).extend(value.strip() for value in values.split(","))
    return found


def no_column(name: str, known: Iterable[str]) -> UsageError:
    """Return the error of a column that does not exist, with those that may be meant."""
    similar = ", ".join(nearest(name, sorted(known), 3))
    instead = f"did you mean {similar}?" if similar else f"choose from {', '.join(sorted(known))}"
    return UsageError(f"there is no column {name!r}: {instead}")


def convert(name: str, value: str, kind: str | None = None) -> Any:
    """Return a value as its column holds it, by default a column of benchmarks.

    Raises `UsageError` when it cannot be one.
    """
    makers: dict[str, Callable[[str], Any]] = {
        "int": parse_bytes,
        "float": parse_decimal,
        "bool": {"true": True, "yes": True, "false": False, "no": False}.__getitem__,
    }
    kind = kind or kind_of(name)
    try:
        return makers.get(kind, str)(value.lower() if kind == "bool" else value)
    except (ValueError, KeyError) as error:
        names = ", a number: host_names has their names" if name == "hosts" else ""
        raise UsageError(f"{value!r} is no value of column {name}{names}") from error

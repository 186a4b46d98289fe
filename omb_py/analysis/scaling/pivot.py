"""Runs of applications as one table: what some options make of a value, over what others do."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, fields
from typing import Any

import pandas as pd

from omb_py.analysis.scaling.rows import Run
from omb_py.core.errors import UsageError
from omb_py.core.text.tables import Sheet
from omb_py.core.text.units import digits
from omb_py.core.text.words import nearest
from omb_py.results.application import ApplicationRow

LOWER_IS_BETTER = ("_s", "_low_s", "_high_s", "difference")
"""How names of values end of which the smallest is best."""


def table_of(runs: Iterable[Run]) -> pd.DataFrame:
    """A row for each run: columns of its result, and one for each option of its problem."""
    rows = []
    for run in runs:
        pairs = (word.partition("=") for word in words_of(run.row.problem))
        options = {name: value for name, is_option, value in pairs if is_option}
        rows.append(options | asdict(run.row) | {"mpi": run.mpi})
    found = pd.DataFrame(rows)
    for name in found:
        numbers = pd.to_numeric(found[name], errors="coerce")
        if numbers.notna().sum() == found[name].notna().sum() > 0:
            found[name] = numbers
    return found


def words_of(problem: str) -> list[str]:
    """The options of a problem; values with blanks are quoted."""
    try:
        return shlex.split(problem)
    except ValueError:
        return problem.split()


def chosen(table: pd.DataFrame, where: Iterable[str]) -> pd.DataFrame:
    """The rows that have, for each ``NAME=VALUE[,VALUE...]``, one of these values.

    Raises `UsageError` for other texts, and where no row is left.
    """
    for text in where:
        name, is_pair, values = text.partition("=")
        if not is_pair:
            raise UsageError(f"{text!r} is not NAME=VALUE, as in model=resnet110,resnet1001")
        check_there(table, name)
        table = table[table[name].map(_text).isin([values, *values.split(",")])]
        if table.empty:
            raise UsageError(f"no run has {text}")
    return table


def check_there(table: pd.DataFrame, name: str) -> None:
    """Raise `UsageError` where no run has an option or a column."""
    if name not in table or table[name].isna().all():
        known = [str(one) for one in table if table[one].notna().any()]
        near = ", ".join(nearest(name, known, 3)) or ", ".join(sorted(known))
        raise UsageError(f"no run has {name!r}: choose from {near}")


def sheet(
    runs: Iterable[Run],
    rows: Sequence[str],
    columns: Sequence[str],
    value: str,
    where: Iterable[str] = (),
) -> Sheet:
    """The medians of a value, a row and a column for each combination of options that was measured.

    The last column says which is best in a row, and how many times as good as the next. ``where``
    is as in `chosen`. Raises `UsageError` for names that no run has.
    """
    table = chosen(table_of(runs), where)
    if both := sorted({*rows} & {*columns}):
        raise UsageError(f"{both[0]} cannot be in --rows and in --columns: choose one of them")
    for name in (*rows, *columns, value):
        check_there(table, name)
    if not pd.api.types.is_numeric_dtype(table[value]):
        raise UsageError(f"{value!r} is no number: choose a value such as speedup or time_s")
    there = table[table[value].notna()]
    keys = [*rows, *columns]
    words = {key: there[key].astype(object).where(there[key].notna(), "-") for key in keys}
    groups = there.assign(**words).groupby(keys, sort=False)
    medians = groups[value].median().unstack(list(range(-len(columns), 0)))
    medians = medians.sort_index(key=_order)
    heads = [name_of(one) for one in medians]
    lower = value.endswith(LOWER_IS_BETTER)
    remarks = [f"Medians of {len(there)} runs.{left_out(len(table) - len(there), value)}"]
    if mixed := mixed_in(there, groups, keys):
        remarks.append(f"Runs of a cell differ in {', '.join(mixed)}: choose some with --where.")
    return Sheet(
        f"{value}: {', '.join(rows)} by {', '.join(columns)}",
        (*rows, *heads, *(["best"] if len(heads) > 1 else [])),
        tuple(_lines(medians, heads, lower)),
        tuple(remarks),
        len(rows),
    )


ALIKE = (
    "application",
    "scaling",
    "buffer",
    "binding",
    "mpi",
    "threads",
    "ranks",
    "nodes",
    "variant",
)
"""Columns of a result that tell runs apart, beside the options of a problem."""


def mixed_in(there: pd.DataFrame, groups: Any, keys: Sequence[str]) -> list[str]:
    """The options in which runs of one cell differ."""
    results = {one.name for one in fields(ApplicationRow)} - set(ALIKE)
    names = [str(one) for one in there if one not in results and one not in keys]
    return [name for name in names if groups[name].nunique(dropna=False).max() > 1]


def left_out(count: int, value: str) -> str:
    """How many runs have no value."""
    return f" {count} without {value} are left out." if count else ""


def name_of(key: Any) -> str:
    """The options of a column in words."""
    parts = key if isinstance(key, tuple) else (key,)
    return " ".join(_text(part) for part in parts)


def _lines(medians: pd.DataFrame, heads: Sequence[str], lower: bool) -> Iterator[tuple[str, ...]]:
    for key, values in zip(medians.index, medians.to_numpy(), strict=True):
        keys = key if isinstance(key, tuple) else (key,)
        cells = [digits(number) if number == number else "-" for number in values]
        known = sorted(
            (number, head) for number, head in zip(values, heads, strict=True) if number == number
        )
        ordered = known if lower else known[::-1]
        yield (*map(_text, keys), *cells, *([best(ordered)] if len(heads) > 1 else []))


def best(ordered: Sequence[tuple[float, str]]) -> str:
    """The first of several, and how many times as good as the next it is."""
    (first, name), *others = ordered
    if not others or not first or not others[0][0]:
        return name
    ratio = max(first / others[0][0], others[0][0] / first)
    return f"{name} ({digits(ratio)}x)"


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() else f"{value:g}"
    return str(value)


def _order(values: pd.Index[Any]) -> pd.Index[Any]:
    """Numbers by size, words in the order in which they were measured."""
    order = {value: place for place, value in enumerate(dict.fromkeys(values))}
    return values.map(
        lambda value: (0, value) if isinstance(value, int | float) else (1, order[value])
    )

"""Points: repeated rows of results become one; the columns that distinguish points, in words.

`omb_py.results.columns` defines the columns of a point's identity. Every command that shows,
compares or draws results uses these points and names of lines.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from omb_py.analysis.values import ENDS
from omb_py.core.options import LIBRARY
from omb_py.core.text.units import size_text
from omb_py.core.text.words import count, first_of
from omb_py.results.columns import CONFIGURATION, EXPERIMENT

SERIES = (*EXPERIMENT, *CONFIGURATION, "base", "unit")
"""Columns whose values are equal within one line. Only overheads have a ``base``."""

TELLING = ("source", "binding", "buffer", "mpi", "ranks", "part", *EXPERIMENT[1:], *CONFIGURATION)
"""Columns that distinguish lines of a benchmark, the most familiar first."""

FOLLOWS = {"placement": "buffer", "hosts": "ranks", "pairs": "ranks", "nodes": "ranks"}
"""Columns that are redundant next to the one that they follow from, if they do."""

COUNTED = ("ranks", "hosts", "pairs", "partitions", "nodes", "failed")

WITH_COLUMN = (
    *("window", "sync", "threads", "thread_comm", "root", "split", "group"),
    *("congestor", "test_calls", "cold", "mpi4py", "numpy"),
)
"""Columns whose values need the column's name to be understood."""

BINDINGS = (
    *("native", "buffer", "pickle", "array", "persistent", "pkl5", "prebound", "nccl"),
    *("torch", "jax", "mpi4jax", "tcp", "asyncio", "grpc", "ucxx", "coroutine"),
)
"""Bindings in the order in which every table and figure has them."""

USUAL = {
    ("layout", "cont"),
    ("thread_comm", "one"),
    ("pairs", 1),
    ("test_calls", 0),
    ("in_place", False),
    ("staged", False),
    ("stream_sync", False),
    ("validated", False),
}
"""Usual values, which names of lines omit."""

NAMING = ("suite", "mpi", "buffer", "binding")
"""Columns that name a line even if others have no value for them."""

WITHOUT = {"cold": "not cold", "per_rank": "not per rank", "segment": "no segments"}
"""What a missing value of columns means that are empty without their option."""

ALGORITHMS = ("library_algorithm", "algorithm", "segment")
"""Columns whose configuration without any value is the library's choice."""

GROWING = ("hosts", "pairs", "nodes")
"""Columns that may grow with the ranks."""

MOST_SIZES = 5
"""Message sizes that a sentence names."""

Cells = dict[str, Any]
"""What a row of a table holds, without empty cells."""


def points_of(
    values: pd.DataFrame, columns: Sequence[str], also: Sequence[str] = ()
) -> pd.DataFrame:
    """Return points of rows with values (`value_column`): rows equal in ``columns`` are runs.

    A row for each point, in the order in which they first appear: ``columns``, the median
    ``value``, those of the columns ``also``, the number of ``runs``, and those of `ENDS` that the
    rows have. For several runs only the spread is known, their minimum and maximum.
    """
    rows = values.reset_index(drop=True)
    at = rows.groupby(group_ids(rows[name] for name in columns))
    points = rows.loc[at.head(1).index, list(columns)].reset_index(drop=True)
    points[["value", *also]] = at[["value", *also]].median()
    points["runs"] = at.size()
    alone = points["runs"] == 1
    for name, extreme in zip(ENDS, (None, None, "min", "max"), strict=True):
        if name not in rows:
            continue
        several = np.nan if extreme is None else at["value"].agg(extreme)
        points[name] = at[name].first().astype("float64").where(alone, several)
    return points


def several_hosts(rows: pd.DataFrame) -> bool:
    """Return whether rows are of several hosts, or sets of hosts."""
    return bool(rows["host_names"].nunique() > 1)


def sizes_of(rows: pd.DataFrame) -> pd.Series:
    """Return message sizes in bytes as numbers that can be keys: -1 for none."""
    return rows["bytes"].astype("Float64").astype("float64").fillna(-1.0)


def by(rows: pd.DataFrame, columns: list[str]) -> Iterator[tuple[tuple[Any, ...], pd.DataFrame]]:
    """Yield rows apart by columns, with None for a value that is missing.

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
    """Return a column's values as Python's own, None if one is missing."""
    return [None if pd.isna(value) else value for value in column.tolist()]


def cells(frame: pd.DataFrame) -> list[Cells]:
    """Return the cells of each row that are not empty."""
    columns = [plain_values(frame[name]) for name in frame]
    rows = (zip(frame, row, strict=True) for row in zip(*columns, strict=True))
    return [{name: cell for name, cell in row if cell is not None} for row in rows]


def along_ranks(rows: pd.DataFrame) -> tuple[str, ...]:
    """Return ``ranks`` with the columns that only grow along it: hosts, say."""
    known = group_ids([rows["ranks"]])
    return ("ranks", *(n for n in GROWING if is_determined_by(group_ids([rows[n]]), known)))


def distinctions(rows: pd.DataFrame, columns: Iterable[str] = TELLING) -> list[str]:
    """Return the columns that distinguish rows, in the order of ``columns``.

    Two kinds are left out: a column that is missing in some rows (another suite may not print it),
    if other columns distinguish those rows already; and one of `FOLLOWS` that follows from the
    others.
    """
    there = [name for name in dict.fromkeys(columns) if name in rows]
    numbers = {name: group_ids([rows[name]]) for name in there} if len(rows) else {}
    names = [name for name, found in numbers.items() if found.any()]
    sure = [name for name in names if rows[name].nunique() > 1 or name in NAMING]
    for name in names:
        known = [numbers[other] for other in sure]
        if name not in sure and not (known and is_determined_by(numbers[name], group_ids(known))):
            sure.append(name)
    implied = {
        name
        for name, other in FOLLOWS.items()
        if name in sure and other in sure and is_determined_by(numbers[name], numbers[other])
    }
    return [name for name in names if name in sure and name not in implied]


def without_implied(rows: pd.DataFrame, columns: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return the columns that rows may differ in though they agree in the columns ``known``."""
    if not known:
        return list(columns)
    numbers = group_ids(rows[name] for name in known)
    return [
        name
        for name in columns
        if name in known or not is_determined_by(group_ids([rows[name]]), numbers)
    ]


def group_ids(columns: Iterable[pd.Series | np.ndarray]) -> np.ndarray:
    """Return a number from 0 for each row, the same where all columns are; a missing value is a
    value.

    Numbers are in the order in which rows first appear.
    """
    combined: np.ndarray | None = None
    for column in columns:
        numbers, names = pd.factorize(column, use_na_sentinel=False)
        if combined is None:
            combined = numbers.astype("int64")
        elif len(names) > 1:
            combined = pd.factorize(combined * len(names) + numbers)[0]
    if combined is None:
        raise ValueError("rows need at least one column to tell them apart")
    return combined


def is_determined_by(numbers: np.ndarray, known: np.ndarray) -> bool:
    """Return whether rows with equal ``known`` numbers have equal ``numbers``."""
    together = known * (int(numbers.max()) + 1) + numbers
    return len(np.unique(together)) == len(np.unique(known))


def label(values: Iterable[object], columns: Sequence[str]) -> str:
    """Return the name of a line: its values, with the column if a value is unclear without it.

    >>> label(("numpy", 8, False, 65536), ("buffer", "ranks", "in_place", "bytes"))
    'numpy, 8 ranks, not in place, 64 KiB'
    """
    pairs = zip(values, columns, strict=True)
    return ", ".join(word(column, value) for value, column in pairs if not pd.isna(value))


def line_name(values: Sequence[object], columns: Sequence[str]) -> str:
    """Return the `label` of a line, or which columns its files lack."""
    lacking = ", ".join(columns)
    return label(values, columns) or WITHOUT.get(lacking, f"not said: {lacking}")


def word(column: str, value: object) -> str:
    """Return a value as a name has it."""
    words = column.replace("_", " ")
    if isinstance(value, bool | np.bool_):
        return words if value else f"not {words}"
    if column in COUNTED:
        return count(int(str(value)), words.removesuffix("s"))
    if column in WITH_COLUMN:
        return f"{words} {value}"
    if column == "library_algorithm":
        return f"{str(value).replace('_', ' ')} algorithm"
    if column == "algorithm":
        text = str(value).replace("_", " ")
        return text if value == LIBRARY else f"own {text}"
    if column in ("bytes", "segment"):
        text = size_text(float(str(value)))
        return text if column == "bytes" else f"segments of {text}"
    return str(value)


def at_size(nbytes: object, before: str = " at ", after: str = "") -> str:
    """Return a message size in a sentence, between two texts; empty for a missing size."""
    return "" if pd.isna(nbytes) else f"{before}{size_text(float(str(nbytes)))}{after}"


def at_sizes(sizes: Iterable[object]) -> str:
    """Return several message sizes in a sentence; empty if there are none."""
    texts = [size_text(float(str(size))) for size in sizes if not pd.isna(size)]
    return f" at {first_of(texts, MOST_SIZES)}" if texts else ""


def caption_part(column: str, value: object) -> str:
    """Return a value with its column, as a caption has it.

    >>> [caption_part(*one) for one in (("ranks", 2), ("in_place", True), ("mpi", "MPICH 5"))]
    ['2 ranks', 'in place', 'MPICH 5']
    """
    words = column.replace("_", " ")
    if pd.isna(value):
        return f"{words} not said"
    if isinstance(value, bool | np.bool_) or column in COUNTED:
        return word(column, value)
    if column == "unit":
        return {"us": "latency", "MB/s": "bandwidth", "msg/s": "message rate"}[str(value)]
    if column in ("suite", "mpi", "python", "mpi_type", "part", "benchmark", "run"):
        return str(value)
    return f"{words} {value}"


def common(rows: pd.DataFrame, besides: Container[str]) -> list[str]:
    """Return in words the values that all rows share; columns ``besides`` are left out.

    Missing values are ignored, unless they say that an option was left out; of several benchmarks,
    only columns that all rows have are included.
    """
    words = []
    joint = rows["benchmark"].nunique() > 1
    for column in dict.fromkeys(
        ("suite", "mpi", "ranks", "hosts", *CONFIGURATION, *EXPERIMENT[1:])
    ):
        of_all = joint or column in WITHOUT or column in ALGORITHMS
        if column not in rows or (of_all and rows[column].isna().any()):
            continue
        values = rows[column].dropna().unique().tolist()
        if column not in besides and len(values) == 1 and (column, values[0]) not in USUAL:
            words.append(caption_part(column, values[0]))
    return words

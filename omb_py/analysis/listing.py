"""Results as they were read: an aligned table for each benchmark, with shared values above it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any

import pandas as pd

from omb_py.analysis import overhead
from omb_py.analysis.pairs.findings import verdicts
from omb_py.analysis.points import SERIES, cells, label
from omb_py.analysis.select import no_column
from omb_py.analysis.table import Results, kind_of
from omb_py.analysis.values import FAULTS, faults
from omb_py.core.text.tables import Sheet
from omb_py.core.text.units import digits, size_text, value_text
from omb_py.core.text.words import count, first_of
from omb_py.results.columns import CONFIGURATION, SOFTWARE

UNITS = {
    "_us": ("us", 1.0),
    "_MBps": ("MB/s", 1.0),
    "_GBps": ("MB/s", 1e3),
    "messages_per_s": ("msg/s", 1.0),
}
"""Units of columns by the end of their names, and the factor to the unit."""

MAX_FILES = 2
"""Files that stand above a table."""

MAX_NUMBERS = 6
"""Columns of numbers that are shown unless columns are chosen."""

FACTS = (
    *("suite", "mpi", "ranks", "hosts", *(n for n in CONFIGURATION[2:] if n not in SOFTWARE)),
    *("window", "pairs", "root", "in_place"),
)
"""Columns that stand above a table if all its rows have one value."""

HEADINGS = {
    "bytes": "size",
    "latency_min_us": "fastest rank",
    "latency_max_us": "slowest rank",
}
"""Headings that are clearer than their columns' names; those of ranks are means."""

IMPORTANT = (
    *("latency_us", "bandwidth_MBps", "messages_per_s", "sample_p50_us"),
    *("impact", "impact_low", "impact_high", "impact_p99", "median_low_us", "median_high_us"),
    *("sample_p99_us", "busbw_GBps", "overlap_percent", "latency_min_us"),
    *("latency_max_us", "median_us", "base_us", "added_us", "added_low_us", "added_high_us"),
    "ratio",
)
"""Columns of numbers in the order in which they are shown."""


def sheets(
    results: Results,
    columns: Sequence[str] | None = None,
    limit: int | None = None,
    said: Collection[str] = (),
) -> Iterator[Sheet]:
    """Yield a table for each benchmark, each comparison of bindings, and all pairs of a benchmark.

    Comparisons of several launches have a table over these, too, unless columns are chosen.
    ``columns`` are those to show; by default those that distinguish rows and the first of
    `IMPORTANT` that have values. A table has the first ``limit`` rows, or all. Values of columns
    that are ``said`` (`shared`) stand above no table. Raises `UsageError` for an unknown column.
    """
    known = {*results.rows, *results.overhead, *results.pairs}
    if unknown := sorted(set(columns or ()) - known):
        raise no_column(unknown[0], known)
    for rows in (results.rows, results.overhead, results.pairs):
        for name, members in rows.groupby("benchmark", sort=False):
            made = sheet(str(name), members, columns, limit, said)
            found = verdicts(cells(members)) if rows is results.pairs else []
            keys = tuple(members.index[:limit]) if rows is results.rows else ()
            yield replace(made, remarks=(*made.remarks, *found), keys=keys)
            if columns is None and rows is results.overhead:
                yield from (replace(one, benchmark=str(name)) for one in overhead.sheets(members))


def shared(results: Results) -> dict[str, str]:
    """Return what stands once above all tables of results, in words by its column.

    A column of `FACTS` is shared if it has one value, in all rows of each benchmark that has it.
    ``file`` is there if all benchmarks are in the same files, else the ``folder`` of all files.
    """
    tables = (results.rows, results.overhead, results.pairs)
    columns = ["benchmark", "file", *FACTS]
    rows = pd.concat([table.reindex(columns=columns).astype(object) for table in tables])
    lacking = rows[[*FACTS]].isna().groupby(rows["benchmark"]).mean()
    names = [n for n in FACTS if rows[n].nunique() == 1 and lacking[n].isin((0, 1)).all()]
    found = {name: label([rows[name].dropna().iloc[0]], [name]) for name in names}
    if not (paths := [PurePath(file) for file in rows["file"].dropna().unique()]):
        return found
    folders = (one for one in paths[0].parents if all(one in path.parents for path in paths))
    alike = rows.groupby("benchmark")["file"].agg(frozenset).nunique() == 1
    names = [path.name for path in paths]
    files = first_of(names, MAX_FILES) if alike else count(len(paths), "file")
    return found | {"file" if alike else "folder": f"{files} in {next(folders, 'several folders')}"}


def sheet(
    benchmark: str,
    rows: pd.DataFrame,
    columns: Sequence[str] | None,
    limit: int | None,
    said: Collection[str] = (),
) -> Sheet:
    """Return the table of a benchmark's rows."""
    there = [name for name in rows if rows[name].notna().any() and name != "benchmark"]
    # a version that some rows lack tells nothing that they lack, unless there are two
    same = [name for name in there if rows[name].nunique(dropna=name in SOFTWARE) == 1]
    if columns is None:
        important = [name for name in IMPORTANT if name in there][:MAX_NUMBERS]
        shown = [*apart(rows, [name for name in there if name not in same]), *important]
        last = [name for name, why in FAULTS.items() if (faults(rows) == why).any()]
    else:
        shown, last = [name for name in columns if name in rows and name != "benchmark"], []
    texts = [n for n in shown if unit_of(n) is None and n != "bytes" and kind_of(n) != "float"]
    ordered = [*texts, *(name for name in shown if name not in texts), *last]
    limit = len(rows) if limit is None else limit
    facts = [name for name in FACTS if name in same and name not in (*shown, *said)]
    words = label([rows[name].iloc[0] for name in facts], facts)
    columns_of = [cells_of(name, rows[name].head(limit)) for name in ordered]
    files = [] if "file" in said else list(rows["file"].dropna().unique())
    if "folder" in said:
        files = [PurePath(file).name for file in files]
        files = files if len(files) <= MAX_FILES else [count(len(files), "file")]
    return Sheet(
        benchmark,
        tuple(heading(name) for name in ordered),
        tuple(zip(*columns_of, strict=True)),
        () if len(rows) <= limit else (f"and {count(len(rows) - limit, 'more row')}: --rows all",),
        left=max(1, len(texts)),
        above="; ".join(filter(None, [count(len(rows), "row"), words, first_of(files, MAX_FILES)])),
        benchmark=benchmark,
    )


def apart(rows: pd.DataFrame, differing: Sequence[str]) -> list[str]:
    """Return those of the ``differing`` columns that tell rows apart: their point.

    Hosts, and then runs, stand before it only if some rows agree in all others.
    """
    found = [name for name in (*SERIES, "sender", "receiver", "bytes") if name in differing]
    for name in ("host_names", "run"):
        if name in differing and (not found or rows.duplicated(found).any()):
            found.insert(0, name)
    return found


def unit_of(name: str) -> tuple[str, float] | None:
    """Return the unit that a column is shown in, None for one that has none."""
    return next((unit for end, unit in UNITS.items() if name.endswith(end)), None)


def heading(name: str) -> str:
    """Return a column's name without its unit, which the cells have."""
    if name in HEADINGS:
        return HEADINGS[name]
    end = next((end for end in UNITS if end[0] == "_" and name.endswith(end)), "")
    return name.removesuffix(end)


def cells_of(name: str, values: pd.Series) -> list[str]:
    """Return a column's cells; numbers in the unit in which each is easy to read."""
    unit = unit_of(name)

    def text(value: Any) -> str:
        if unit is not None:
            return value_text(value * unit[1], unit[0])
        if isinstance(value, float):
            return digits(value, 4)
        return size_text(value) if name == "bytes" else str(value)

    return ["" if pd.isna(value) else text(value) for value in values]

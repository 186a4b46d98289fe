"""Results as one file that any program can read: CSV, JSON or Parquet, in omb-py's columns."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa

from omb_py.analysis.table import Results
from omb_py.core.errors import UsageError
from omb_py.results.arrow import to_csv, to_json, to_parquet
from omb_py.results.columns import LOADED, ORIGIN

ALWAYS = ("run", "benchmark", "bytes", "ranks")
"""Columns that a file of results must have."""


def content(results: Results, suffix: str) -> bytes:
    """Return all rows and the metadata of their runs, in the format of a file name's suffix.

    Columns without any value are left out. Raises `UsageError` if a Parquet file would have rows of
    two kinds.
    """
    kinds = (results.rows, results.overhead, results.pairs)
    tables = [as_table(rows) for rows in kinds if len(rows)]
    runs = {  # in CSV names of metadata have small letters
        run: {name.lower(): value for name, value in data.items()}
        for run, data in results.runs.items()
    }
    if suffix == ".parquet":
        if len(tables) > 1:
            raise UsageError(
                "these files have rows of different kinds (benchmarks, omb-py overhead, omb-py "
                "pairs), which are no one table: convert them one by one, or to CSV"
            )
        return to_parquet(tables[0], runs)
    if suffix == ".json":
        return to_json(tables, runs)
    return to_csv(tables, runs)


def as_table(rows: pd.DataFrame) -> pa.Table:
    """Return rows as a pyarrow table, without columns about the files that they were read from.

    The ``source`` that distinguishes rows of different files becomes their ``variant``.
    """
    if "source" in rows and rows["source"].notna().any():
        both = rows["variant"].str.cat(rows["source"], ", ")
        rows = rows.assign(variant=both.fillna(rows["variant"]).fillna(rows["source"]))
    names = [
        name
        for name in rows
        if name in ALWAYS
        or ((name not in LOADED or name in ORIGIN) and bool(rows[name].notna().any()))
    ]
    return pa.Table.from_pandas(rows[names], preserve_index=False)

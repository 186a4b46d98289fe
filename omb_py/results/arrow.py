"""Tables of results in files of other programs: Parquet, and our own CSV and JSON, by pyarrow.

A Parquet file has the columns of `omb_py.results.columns.Row`, `ORIGIN` besides, and the metadata
of its runs as JSON in the schema's metadata under ``omb_py``.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable

import pyarrow as pa
from pyarrow import compute, csv, parquet

from omb_py.core.text.words import csv_cell
from omb_py.results.csv_json import comments, header_of, line_of
from omb_py.results.metadata import Runs

KEY = b"omb_py"
"""The key of the runs' metadata in a Parquet file."""

BATCH = 10_000
"""Rows that are Python objects at a time."""


def to_parquet(table: pa.Table, runs: Runs) -> bytes:
    """Return a Parquet file of a table of results and the metadata of its runs."""
    schema = {KEY: json.dumps({run: dict(data) for run, data in runs.items()})}
    out = io.BytesIO()
    parquet.write_table(table.replace_schema_metadata(schema), out, compression="zstd")
    return out.getvalue()


def from_parquet(content: bytes) -> bytes:
    """Return a Parquet file as our CSV; raise `ValueError` or `OSError` if it cannot be read."""
    table = parquet.read_table(io.BytesIO(content))
    runs = json.loads((table.schema.metadata or {}).get(KEY, b"{}"))
    return to_csv([table], runs)


def to_csv(tables: Iterable[pa.Table], runs: Runs) -> bytes:
    """Return our CSV of tables of results: first the metadata of all runs, then the rows."""
    out = io.BytesIO()
    for run, data in runs.items():
        out.write(comments({"run": run, **data}).encode())
    options = csv.WriteOptions(include_header=False, quoting_style="needed")
    for table in tables:
        out.write(header_of(tuple(table.column_names)).encode())
        columns = [as_text(column) for column in table.columns]
        csv.write_csv(pa.table(columns, names=table.column_names), out, options)
    return out.getvalue()


def as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column as its cells are written."""
    if pa.types.is_boolean(column.type):
        return compute.if_else(column, "True", "False")
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        coded = column.combine_chunks().dictionary_encode()
        every = coded.dictionary.to_pylist()
        return pa.array(map(csv_cell, every), pa.string()).take(coded.indices)
    return column


def to_json(tables: Iterable[pa.Table], runs: Runs) -> bytes:
    """Return our JSON Lines of tables of results: objects of the fields with values."""
    out = io.BytesIO()
    for run, data in runs.items():
        out.write(line_of({"metadata": {"run": run, **data}}))
    for table in tables:
        for batch in table.to_batches(BATCH):
            for row in batch.to_pylist():
                out.write(line_of({name: one for name, one in row.items() if one is not None}))
    return out.getvalue()

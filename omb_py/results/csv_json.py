"""Files of results: CSV, and JSON Lines.

CSV is one table for all runs, with each run's metadata as comment lines before its rows. JSON Lines
have an object on each line, of a run's metadata or of a row.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from omb_py.core.errors import UsageError
from omb_py.core.text.words import csv_cell, printable
from omb_py.results.columns import Record, percent_text, percentiles_text
from omb_py.results.sink import Sink, open_sink
from omb_py.results.writer import LineWriter

RUN = b"# run: "
"""First bytes of the metadata of a run."""


class CsvWriter(LineWriter):
    """A writer that adds lines to a table; it writes the header if there is no content yet."""

    def __init__(self, sink: Sink, record: type[Record]) -> None:
        super().__init__(sink, header_of(record.columns).encode())
        self._columns = record.columns

    def metadata_lines(self, metadata: dict[str, str]) -> bytes:
        return comments(metadata).encode(errors="backslashreplace")

    def row_lines(self, rows: Iterable[Any]) -> bytes:
        text = io.StringIO()
        lines = ([cell(getattr(row, column)) for column in self._columns] for row in rows)
        csv.writer(text, lineterminator="\n").writerows(lines)
        return text.getvalue().encode(errors="backslashreplace")


def comments(metadata: dict[str, str]) -> str:
    """Return metadata as lines ``# name: value``."""
    lines = (f"# {name}: {' '.join(value.split())}" for name, value in metadata.items())
    return "".join(f"{printable(line)}\n" for line in lines)


def header_of(names: tuple[str, ...]) -> str:
    """Return the line that names the columns."""
    return ",".join(names) + "\n"


def open_csv(path: Path, record: type[Record], clear: bool) -> CsvWriter:
    """Return a writer that adds records to the table in ``path``, after its last whole line.

    Raises `UsageError` when the file has other content, `OmbError` when it cannot be written.
    """
    header = header_of(record.columns).encode()

    def begun(lines: Iterable[bytes]) -> bool:
        first = b""
        for line in lines:
            first = first or line
            if line.strip() and line[:1] != b"#":
                if line != header and not header.startswith(line):
                    break
                return line == header  # else of a run that was killed in its first write
        else:
            if not first or first.startswith(RUN):
                return False
        raise UsageError(
            f"{path} is not a table of this version's columns: choose another name for --output, "
            "or overwrite it with --force"
        )

    return CsvWriter(open_sink(path, clear, begun), record)


def cell(value: object) -> str:
    """Return a value as one field."""
    if value is None:
        return ""
    if isinstance(value, float):
        return format(value, ".9g")
    if isinstance(value, tuple):
        return percentiles_text(value)
    return csv_cell(str(value)) if isinstance(value, str) else str(value)


BEGINNING = b'{"metadata"'
"""First bytes of a file."""


class JsonWriter(LineWriter):
    """Writer of JSON Lines: an object for the metadata of a run, and one for each row."""

    def metadata_lines(self, metadata: dict[str, str]) -> bytes:
        return line_of({"metadata": metadata})

    def row_lines(self, rows: Iterable[Any]) -> bytes:
        return b"".join(line_of(item_of(row)) for row in rows)


def line_of(item: dict[str, Any]) -> bytes:
    """Return the line of a JSON object."""
    return json.dumps(item).encode() + b"\n"


def item_of(row: Any) -> dict[str, object]:
    """Return the object of a row: the columns that have a value."""
    every = ((column, getattr(row, column)) for column in row.columns)
    item = {name: value for name, value in every if value is not None and value == value}
    if "percentiles" in item:
        item["percentiles"] = {
            f"p{percent_text(percent)}": value for percent, value in row.percentiles
        }
    return item


def open_json(path: Path, clear: bool) -> JsonWriter:
    """Return a writer that adds objects to ``path``, after its last whole line.

    Raises `UsageError` when the file has other content, `OmbError` when it cannot be written.
    """

    def begun(lines: Iterable[bytes]) -> bool:
        first = next(iter(lines), b"")
        try:
            item = json.loads(first)
        except ValueError:
            item = None
            if not first or (first.startswith(BEGINNING) and not first.endswith(b"\n")):
                return False  # or of a run that was killed in its first write
        if isinstance(item, dict) and item.keys() & {"metadata", "run"}:
            return True
        raise UsageError(
            f"{path} is not a file of results with an object on each line: choose another name for "
            "--output, or overwrite it with --force"
        )

    return JsonWriter(open_sink(path, clear, begun))

"""JSON Lines: an object on each line, of a run's metadata or of a row."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from omb_py.core.errors import UsageError
from omb_py.results.columns import percent_text
from omb_py.results.sink import open_sink
from omb_py.results.writer import LineWriter

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

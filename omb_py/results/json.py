"""JSON: an array of objects, one on each line, a valid document after every row."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from omb_py.core.errors import UsageError
from omb_py.results.row import columns, percent_text
from omb_py.results.sink import FileSink, Sink
from omb_py.results.writer import Writer

START, SEPARATOR, END = b"[\n", b",\n", b"\n]\n"
RUN = START + b'{"metadata"'
"""What a file begins with."""


class JsonWriter(Writer[Any]):
    """Adds objects to an array, whose end follows the last one at any time.

    The metadata of a run are written with its first row. On a stream, where nothing can be
    replaced, they are written at once, and the end comes with `finish`.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._metadata: list[dict[str, object]] = []

    def start(self, metadata: dict[str, str]) -> None:
        self._metadata.append({"metadata": metadata})
        if not self._sink.rewritable:
            self.together([])

    def amend(self, run: str, metadata: dict[str, str]) -> None:
        item: dict[str, object] = {"metadata": {"run": run} | metadata}
        if self._metadata:
            self._metadata.append(item)
        else:
            self._append(item)

    def row(self, row: Any) -> None:
        self.together([row])

    def together(self, rows: Iterable[Any]) -> None:
        before, self._metadata = self._metadata, []
        self._append(*before, *map(item_of, rows))

    def finish(self) -> None:
        if not self._sink.rewritable:
            self._sink.append(END)
        self._sink.close()

    def _append(self, *items: dict[str, object]) -> None:
        text = SEPARATOR.join(json.dumps(item).encode() for item in items)
        self._sink.append(SEPARATOR + text, first=START + text)


def item_of(row: Any) -> dict[str, object]:
    """The object of a row: the columns that have a value."""
    every = ((column, getattr(row, column)) for column in columns(type(row)))
    item = {column: value for column, value in every if value is not None}
    if "percentiles" in item:
        item["percentiles"] = {
            f"p{percent_text(percent)}": value for percent, value in row.percentiles
        }
    return item


def open_json(path: Path, clear: bool) -> JsonWriter:
    """A writer that adds to the array in ``path``, after its last whole object.

    Raises `UsageError` when the file holds something else, `OmbError` when it cannot be written.
    """

    def kept(content: bytes) -> int:
        whole = content.removesuffix(END)
        if whole == content:
            whole = content[: max(content.rfind(b"}" + SEPARATOR), content.rfind(b"}\n")) + 1]
        try:
            items = json.loads(whole + END) if whole or not content.startswith(RUN) else []
        except ValueError:
            items = None
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise UsageError(
                f"{path} is not a file of results: choose another name for --output, or overwrite "
                "it with --force"
            )
        return len(whole)

    return JsonWriter(FileSink(path, clear, kept, closing=END))

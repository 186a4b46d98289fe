"""JSON: an array of objects, one on each line, a valid document after every row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from omb_py.errors import UsageError
from omb_py.results.row import columns
from omb_py.results.sink import FileSink, Sink
from omb_py.results.writer import Writer

START, SEPARATOR, END = b"[\n", b",\n", b"\n]\n"


class JsonWriter(Writer[Any]):
    """Replaces the end of the array by one more object and the end, in one write.

    On a stream, where nothing can be replaced, the end comes with `finish`.
    """

    def __init__(self, sink: Sink, empty: bool) -> None:
        self._sink = sink
        self._empty = empty

    def start(self, metadata: dict[str, str]) -> None:
        self._append({"metadata": metadata})

    def row(self, row: Any) -> None:
        item = {column: getattr(row, column) for column in columns(type(row))}
        if "percentiles" in item:
            item["percentiles"] = {f"p{percent:g}": value for percent, value in row.percentiles}
        self._append(item)

    def finish(self) -> None:
        if not self._sink.rewritable:
            self._sink.append(END)

    def _append(self, item: dict[str, object]) -> None:
        record = (START if self._empty else SEPARATOR) + json.dumps(item).encode()
        if self._sink.rewritable:
            self._sink.append(record + END, replace=0 if self._empty else len(END))
        else:
            self._sink.append(record)
        self._empty = False


def open_json(path: Path, clear: bool) -> JsonWriter:
    """A writer that adds to the array in ``path``, after its last whole object.

    Raises `UsageError` when the file holds something else, `OmbError` when it cannot be written.
    """
    sink = FileSink(path, clear)
    content = sink.content()
    if not content:
        return JsonWriter(sink, empty=True)
    kept = content.removesuffix(END)
    if kept == content:
        kept = content[: max(content.rfind(b"}" + SEPARATOR), content.rfind(b"}\n")) + 1]
    try:
        valid = isinstance(json.loads(kept + END), list)
    except ValueError:
        valid = False
    if not valid:
        raise UsageError(
            f"{path} is not a file of results: choose another name for --output, or overwrite it "
            "with --force"
        )
    sink.cut(len(kept))
    sink.append(END)
    return JsonWriter(sink, empty=False)

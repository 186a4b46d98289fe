"""CSV: one table for all runs, with each run's metadata as comment lines before its rows."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

from omb_py.errors import UsageError
from omb_py.results.row import columns
from omb_py.results.sink import FileSink, Sink
from omb_py.results.writer import Writer

NUMBER = ".9g"


class CsvWriter(Writer[Any]):
    """Adds lines, each whole, to a table that has its header already or not."""

    def __init__(self, sink: Sink, record: type[Any], with_header: bool) -> None:
        self._sink = sink
        self._columns = columns(record)
        self._with_header = with_header

    def start(self, metadata: dict[str, str]) -> None:
        lines = [f"# {name}: {' '.join(value.split())}\n" for name, value in metadata.items()]
        if self._with_header:
            lines.append(header_of(self._columns))
        self._sink.append("".join(lines).encode())

    def row(self, row: Any) -> None:
        text = io.StringIO()
        cells = [cell(getattr(row, column)) for column in self._columns]
        csv.writer(text, lineterminator="\n").writerow(cells)
        self._sink.append(text.getvalue().encode())


def header_of(names: tuple[str, ...]) -> str:
    """The line that names the columns."""
    return ",".join(names) + "\n"


def open_csv(path: Path, record: type[Any], clear: bool) -> CsvWriter:
    """A writer that adds records of a kind to the table in ``path``, after its last whole line.

    Raises `UsageError` when the file holds something else, `OmbError` when it cannot be written.
    """
    sink = FileSink(path, clear)
    content = sink.content()
    lines = content.decode(errors="replace").splitlines(keepends=True)
    header = next((line for line in lines if line.strip() and line[0] != "#"), None)
    if header is not None and header != header_of(columns(record)):
        raise UsageError(
            f"{path} is not a table of this version's columns: choose another name for --output, "
            "or overwrite it with --force"
        )
    sink.cut(content.rfind(b"\n") + 1)
    return CsvWriter(sink, record, with_header=header is None)


def cell(value: object) -> str:
    """A value as one field; ``#`` would start a comment for whoever reads the file."""
    if value is None:
        return ""
    if isinstance(value, float):
        return format(value, NUMBER)
    if isinstance(value, tuple):
        return " ".join(f"p{percent:g}={number:{NUMBER}}" for percent, number in value)
    return str(value).replace("#", "%23")

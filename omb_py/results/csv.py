"""CSV: one table for all runs, with each run's metadata as comment lines before its rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from omb_py.core.errors import UsageError
from omb_py.results.row import columns, percent_text
from omb_py.results.sink import FileSink, Sink
from omb_py.results.writer import Writer

NUMBER = ".9g"
RUN = b"# run: "
"""What the metadata of a run begins with."""


class CsvWriter(Writer[Any]):
    """Adds lines, each whole, to a table; the header is written where nothing else is yet.

    The metadata of a run are written with its first row, on a stream at once.
    """

    def __init__(self, sink: Sink, record: type[Any]) -> None:
        self._sink = sink
        self._columns = columns(record)
        self._metadata = ""

    def start(self, metadata: dict[str, str]) -> None:
        self._metadata += comments(metadata)
        if not self._sink.rewritable:
            self._append("")

    def amend(self, run: str, metadata: dict[str, str]) -> None:
        # named, since another job may have begun a run in the same file
        text = comments({"run": run} | metadata)
        if self._metadata:
            self._metadata += text
        else:
            self._sink.append(text.encode(errors="backslashreplace"))

    def row(self, row: Any) -> None:
        self.together([row])

    def together(self, rows: Iterable[Any]) -> None:
        text = io.StringIO()
        lines = ([cell(getattr(row, column)) for column in self._columns] for row in rows)
        csv.writer(text, lineterminator="\n").writerows(lines)
        self._append(text.getvalue())

    def finish(self) -> None:
        self._sink.close()

    def _append(self, text: str) -> None:
        before, self._metadata = self._metadata, ""
        both = before + text, before + header_of(self._columns) + text
        self._sink.append(*(one.encode(errors="backslashreplace") for one in both))


def comments(metadata: dict[str, str]) -> str:
    """Metadata as comment lines."""
    return "".join(f"# {name}: {' '.join(value.split())}\n" for name, value in metadata.items())


def header_of(names: tuple[str, ...]) -> str:
    """The line that names the columns."""
    return ",".join(names) + "\n"


def open_csv(path: Path, record: type[Any], clear: bool) -> CsvWriter:
    """A writer that adds records of a kind to the table in ``path``, after its last whole line.

    Raises `UsageError` when the file holds something else, `OmbError` when it cannot be written.
    """
    expected = header_of(columns(record)).encode()

    def kept(content: bytes) -> int:
        lines = content.splitlines(keepends=True)
        header = next((line for line in lines if line.strip() and line[:1] != b"#"), None)
        if header is not None and header != expected and expected.startswith(header):
            header = None  # a run that was killed in its first write
        if header is None and not content.startswith(RUN) and content.strip():
            header = lines[0]
        if header not in (None, expected):
            raise UsageError(
                f"{path} is not a table of this version's columns: choose another name for "
                "--output, or overwrite it with --force"
            )
        return content.rfind(b"\n") + 1 if header is not None else 0

    return CsvWriter(FileSink(path, clear, kept), record)


def cell(value: object) -> str:
    """A value as one field; ``#`` would start a comment for whoever reads the file."""
    if value is None:
        return ""
    if isinstance(value, float):
        return format(value, NUMBER)
    if isinstance(value, tuple):
        return " ".join(f"p{percent_text(percent)}={number:{NUMBER}}" for percent, number in value)
    return str(value).replace("#", "%23")

"""The common interface of result formats, and the list of formats."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Generic, TextIO, TypeVar

from omb_py.core.datatypes import Datatype
from omb_py.results.columns import percentiles_text

if TYPE_CHECKING:
    from omb_py.results.sink import Sink

Record = TypeVar("Record", contravariant=True)
"""A table's record, with the columns as attributes."""


class Writer(ABC, Generic[Record]):
    """Receives a run as it is measured, on rank 0 only."""

    def start(self, metadata: dict[str, str]) -> None:
        """Begin the run, before its first measurement."""

    def section(self, datatype: Datatype | None) -> None:
        """Begin the rows of this element type."""

    @abstractmethod
    def row(self, row: Record) -> None:
        """Write one more result; it is out of our hands on return."""

    def together(self, rows: Iterable[Record]) -> None:
        """Write results that are useful only together: files take all of them or none."""
        for row in rows:
            self.row(row)

    def amend(self, run: str, metadata: dict[str, str]) -> None:
        """Add metadata of the run, known when all is measured; before `finish`."""

    def finish(self) -> None:
        """Note that no more rows come."""


class StreamWriter(Writer[Any]):
    """Prints lines for people, each at once."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def _line(self, text: str) -> None:
        self._stream.write(text + "\n")
        self._stream.flush()


class LineWriter(Writer[Any]):
    """Adds rows as lines to a sink, those of one call all or none.

    The metadata of a run are written with its first row, on a stream at once.
    """

    def __init__(self, sink: Sink, header: bytes = b"") -> None:
        self._sink = sink
        self._header = header
        self._metadata = b""
        self._written = False

    @abstractmethod
    def metadata_lines(self, metadata: dict[str, str]) -> bytes:
        """Return the lines that metadata of a run takes in the file."""

    @abstractmethod
    def row_lines(self, rows: Iterable[Any]) -> bytes:
        """Return the lines that rows take in the file."""

    def start(self, metadata: dict[str, str]) -> None:
        self._add(metadata)
        if self._sink.at_once and not self._written:
            self._append(b"")

    def amend(self, run: str, metadata: dict[str, str]) -> None:
        self._add({"run": run} | metadata)  # named: another job may have begun a run in the file

    def row(self, row: Any) -> None:
        self.together([row])

    def together(self, rows: Iterable[Any]) -> None:
        if lines := self.row_lines(rows):
            self._append(lines)

    def _add(self, metadata: dict[str, str]) -> None:
        lines = self.metadata_lines(metadata)
        if self._written:
            self._append(lines)
        self._metadata += lines

    def _append(self, lines: bytes) -> None:
        self._sink.append(lines, self._metadata, self._header)
        self._written = True


class Collector(Writer[Any]):
    """Keeps rows, as a reader of files would give them, and metadata by run."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.runs: dict[str, dict[str, str]] = {}

    def start(self, metadata: dict[str, str]) -> None:
        self.runs[metadata["run"]] = metadata

    def amend(self, run: str, metadata: dict[str, str]) -> None:
        self.runs.setdefault(run, {}).update(metadata)

    def row(self, row: Any) -> None:
        kept = dict(vars(row))
        if "percentiles" in kept:
            kept["percentiles"] = percentiles_text(row.percentiles) or None
        self.rows.append(kept)

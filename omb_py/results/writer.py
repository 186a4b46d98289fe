"""What every result format does, and which formats there are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from omb_py.core.datatypes import Datatype

Record = TypeVar("Record", contravariant=True)
"""What a table's lines are made of, with the columns as attributes."""


class Writer(ABC, Generic[Record]):
    """Receives a run as it is measured, on rank 0 only."""

    def start(self, metadata: dict[str, str]) -> None:
        """The run begins; nothing has been measured."""

    def section(self, datatype: Datatype | None) -> None:
        """The rows that follow are of this element type."""

    @abstractmethod
    def row(self, row: Record) -> None:
        """One more result; when this returns it is out of our hands."""

    def together(self, rows: Iterable[Record]) -> None:
        """Results that are of use together alone: files take all of them or none."""
        for row in rows:
            self.row(row)

    def amend(self, run: str, metadata: dict[str, str]) -> None:
        """More metadata of the run, known when all is measured; before `finish`."""

    def finish(self) -> None:
        """The run is complete."""


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
            words = [f"p{percent:g}={value:.9g}" for percent, value in row.percentiles]
            kept["percentiles"] = " ".join(words) or None
        self.rows.append(kept)

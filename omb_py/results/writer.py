"""What every result format does, and which formats there are."""

from __future__ import annotations

from abc import ABC, abstractmethod

from omb_py.datatypes import Datatype
from omb_py.results.row import Row


class Writer(ABC):
    """Receives a run as it is measured, on rank 0 only."""

    def start(self, metadata: dict[str, str]) -> None:  # noqa: B027 - not every format has this
        """The run begins; nothing has been measured."""

    def section(self, datatype: Datatype | None) -> None:  # noqa: B027
        """The rows that follow are of this element type."""

    @abstractmethod
    def row(self, row: Row) -> None:
        """One more result; when this returns it is out of our hands."""

    def finish(self) -> None:  # noqa: B027
        """The run is complete."""

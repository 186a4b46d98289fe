"""Somebody who looks around collective calls, for example at the library's own counters."""

from __future__ import annotations

from typing import Any, Protocol


class Probe(Protocol):
    """Told of every blocking collective call with buffers, on all ranks of it alike."""

    def before(self, routine: str, comm: Any, nbytes: int, root: int = -1) -> None:
        """The call is about to be made; ``root`` is a rank of the communicator, -1 for none."""

    def after(self, routine: str, comm: Any, nbytes: int) -> None:
        """It has been made."""

    def forget(self, comm: Any) -> None:
        """A communicator is about to be freed."""

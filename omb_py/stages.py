"""How long each part of this process's start takes, and which files it opens."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager

import omb_py

INTERPRETER = "interpreter"
OMB_PY = "omb-py"
NUMPY = "numpy"
BUFFER = "buffer"
MPI4PY = "mpi4py"
INIT = "MPI_Init"
SESSION = "Session.Init"
TOTAL = "total"


class Stages:
    """A stopwatch of which one part runs at any time: the stage entered, or omb-py itself.

    ``seconds`` has the parts in the order in which they came, from the first line of omb-py to
    the end of the last stage. ``watch`` tells, off the clock, which files are open or were
    opened; ``files`` has those that each part added.
    """

    def __init__(
        self, began: float = omb_py.BEGAN, watch: Callable[[], Set[str]] | None = None
    ) -> None:
        """Start with omb-py's own part, which goes on since ``began`` (`time.perf_counter`)."""
        self.seconds: dict[str, float] = {}
        self.files: dict[str, set[str]] = {}
        self._part = OMB_PY
        self._since = began
        self._watch = watch

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count what the block takes for part ``name`` and not for the one around it."""
        around = self._part
        self._turn_to(name)
        try:
            yield
        finally:
            self._turn_to(around)

    def _turn_to(self, part: str) -> None:
        elapsed = time.perf_counter() - self._since
        self.seconds[self._part] = self.seconds.get(self._part, 0.0) + elapsed
        if self._watch is not None:
            known = set().union(*self.files.values())
            self.files.setdefault(self._part, set()).update(self._watch() - known)
        self._part = part
        self._since = time.perf_counter()

"""Progress of a long launch: now and then a note, from rank 0."""

from __future__ import annotations

import time

from omb_py.core.mpi import launcher
from omb_py.core.text.units import duration

SECONDS = 10.0
"""Seconds between two notes; what ends before has none."""


class Progress:
    """Notes how many of a ``total`` of a ``unit`` are over, and about how long the others take."""

    def __init__(self, total: int, unit: str, rank: int) -> None:
        self._total, self._unit, self._rank = total, unit, rank
        self._began = self._last = time.monotonic()

    def over(self, done: int, following: str) -> None:
        """Print a note after `SECONDS`: ``done`` are over, and what comes next is ``following``."""
        now = time.monotonic()
        if not 0 < done < self._total or now - self._last < SECONDS:
            return
        self._last, passed = now, now - self._began
        left = passed / done * (self._total - done)
        launcher.note(
            f"{done} of {self._total} {self._unit}, {duration(passed)}, about {duration(left)} "
            f"left; {following}",
            self._rank,
        )

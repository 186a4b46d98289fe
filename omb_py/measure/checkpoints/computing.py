"""What ranks compute while checkpoints are written: so many additions, on data in a cache."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

ELEMENTS = 8192
"""Of float64: a level-2 cache has room for them, so that memory's bandwidth is left to others."""

PIECES = 16
"""Parts of the computing, between which what is in the background makes progress."""

TRIALS = 5
SHORTEST = 5e-3
"""Seconds of a trial, of which the fastest counts."""


class Computing:
    """Computes for as long as it is calibrated to, on one core, without Python's lock."""

    def __init__(self) -> None:
        import numpy as np

        self._add: Any = np.add
        self._values: Any = np.ones(ELEMENTS)
        self._each = self._calibrated()

    def _calibrated(self) -> float:
        """Seconds of an addition."""
        times, fastest = 1, 0.0
        while fastest < SHORTEST:
            times *= 2
            fastest = min(self._seconds(times) for _ in range(TRIALS))
        return fastest / times

    def _seconds(self, times: int) -> float:
        begin = perf_counter()
        self._repeat(times)
        return perf_counter() - begin

    def _repeat(self, times: int) -> None:
        add, values = self._add, self._values
        for _ in range(times):
            add(values, 1.0, values)

    def run(self, seconds: float, between: Callable[[], None]) -> None:
        """Compute for about so long where nothing else runs; call ``between`` between pieces."""
        times = round(seconds / self._each / PIECES)
        for _ in range(PIECES):
            self._repeat(times)
            between()

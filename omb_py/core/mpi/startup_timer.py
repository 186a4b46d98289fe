"""The durations of the parts of this process's start."""

from __future__ import annotations

import builtins
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from omb_py.core import BEGAN

STAT = "/proc/self/stat"
START = 22 - 3
"""Index of the start time among the fields of `STAT` after the command's name, the second."""


def seconds_before(moment: float, cpu_seconds: float) -> float | None:
    """Return the age of this process at ``moment`` (`time.perf_counter`), in seconds.

    The age is never less than ``cpu_seconds``, its CPU time at that moment. It is None if the
    system gives no start, or an impossible one.
    """
    try:
        with open(STAT, errors="replace") as stat:
            started = start_in(stat.read(), os.sysconf("SC_CLK_TCK"))
        now = time.clock_gettime(time.CLOCK_BOOTTIME)
    except (OSError, AttributeError, ValueError, IndexError):
        return None
    age = now - started - (time.perf_counter() - moment)
    return max(age, cpu_seconds)


def start_in(stat: str, ticks_per_second: int) -> float:
    """Return the start that ``stat`` contains, in seconds since boot: the middle of its tick."""
    ticks = int(stat.rpartition(")")[2].split()[START])
    return (ticks + 0.5) / ticks_per_second


INTERPRETER = "interpreter"
OMB_PY = "omb-py"
NUMPY = "numpy"
BUFFER = "buffer"
MPI4PY = "mpi4py"
INIT = "MPI_Init"
SESSION = "Session.Init"
TOTAL = "total"
PARTS = (INTERPRETER, OMB_PY, NUMPY, BUFFER, MPI4PY, INIT, SESSION)
"""In the order of tables; a buffer library may import NumPy."""


class Stages:
    """A stopwatch with one running part at any time: the stage entered, or omb-py itself.

    ``seconds`` has the parts in the order in which they came, from the first line of omb-py to
    the end of the last stage.
    """

    def __init__(self, began: float = BEGAN) -> None:
        """Start with omb-py's own part, which goes on since ``began`` (`time.perf_counter`)."""
        self.seconds: dict[str, float] = {}
        self._part = OMB_PY
        self._since = began

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count what the block takes for part ``name`` and not for the one around it."""
        around = self._part
        self._turn_to(name)
        try:
            yield
        finally:
            self._turn_to(around)

    @contextmanager
    def importing(self, package: str, name: str) -> Iterator[None]:
        """Count the first import of ``package`` in the block for the part ``name``."""
        original: Callable[..., Any] = builtins.__import__

        def timed(module: str, *arguments: Any, **more: Any) -> Any:
            if module.partition(".")[0] != package or package in sys.modules:
                return original(module, *arguments, **more)
            with self.stage(name):
                return original(module, *arguments, **more)

        builtins.__import__ = timed  # type: ignore[assignment]
        try:
            yield
        finally:
            builtins.__import__ = original

    def _turn_to(self, part: str) -> None:
        elapsed = time.perf_counter() - self._since
        self.seconds[self._part] = self.seconds.get(self._part, 0.0) + elapsed
        self._part = part
        self._since = time.perf_counter()

"""When this process was started: the kernel knows, to a tick of its clock."""

from __future__ import annotations

import os
import time
from pathlib import Path

STAT = Path("/proc/self/stat")
START = 22 - 3
"""Where the start stands among the fields of `STAT` after the command's name, the second."""


def seconds_before(moment: float, cpu_seconds: float) -> float | None:
    """How long this process had been there at ``moment`` (`time.perf_counter`), in seconds.

    Never less than ``cpu_seconds``, its CPU time at that moment; None where the system does not
    tell, or tells nonsense.
    """
    try:
        started = start_in(STAT.read_text(errors="replace"), os.sysconf("SC_CLK_TCK"))
        now = time.clock_gettime(time.CLOCK_BOOTTIME)
    except (OSError, AttributeError, ValueError, IndexError):
        return None
    age = now - started - (time.perf_counter() - moment)
    return max(age, cpu_seconds)


def start_in(stat: str, ticks_per_second: int) -> float:
    """The start that ``stat`` tells, in seconds since boot: the middle of the tick it was in."""
    ticks = int(stat.rpartition(")")[2].split()[START])
    return (ticks + 0.5) / ticks_per_second

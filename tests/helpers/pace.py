"""How slow this machine is now, beside a quick and quiet one: limits of time scale with it."""

from __future__ import annotations

import os
import time
from functools import cache
from pathlib import Path

STEPS = 200_000
QUICK_SECONDS = 0.006
"""CPU time of `STEPS` additions of Python 3.11 on a server's core of 2023, some 3 GHz."""


def slowness() -> float:
    """Return how many times longer than usual something may take: 1 on a quick, quiet machine.

    It is the number of processes for each core, now or over the last minute, times the slowness of
    a core.
    """
    minute, _, _, processes, _ = Path("/proc/loadavg").read_text().split()
    running = max(float(minute), float(processes.partition("/")[0]))
    return max(1.0, running / len(os.sched_getaffinity(0))) * slowness_of_core()


@cache
def slowness_of_core() -> float:
    """Return how many times longer than a quick one a core computes; load does not count."""
    seconds = []
    for _ in range(3):
        begin = time.process_time()
        total = 0
        for number in range(STEPS):
            total += number
        seconds.append(time.process_time() - begin)
    return max(1.0, min(seconds) / QUICK_SECONDS)


def is_over(begun: float, seconds: float) -> bool:
    """Return whether a limit of so many seconds since ``begun`` is over on this machine."""
    return time.monotonic() - begun > seconds * slowness()

"""Stops of this process while it measures: a scheduler suspended its job, or the machine slept.

A late sample shows neither, for a rank may wait seconds for a core. SIGCONT ends every stop (Slurm
and PBS send it, too, where they freeze a cgroup), but also comes without one; a process that was
stopped has then neither run nor waited for a core, which the kernel counts. CLOCK_BOOTTIME goes on
while a machine sleeps, and CLOCK_MONOTONIC does not.
"""

from __future__ import annotations

import time
from _signal import SIG_DFL, SIGCONT, getsignal, signal  # type: ignore[import-not-found]
from collections.abc import Sequence
from contextlib import suppress

from omb_py.measure.conditions import content

LEAST_SECONDS = 0.05
"""A shorter stop is not told from the kernel's counting of a core's time in ticks."""

READINGS = 5
"""Readings of two clocks, of which the closest is taken: a rank may wait for a core in between."""


class Stops:
    """Counts the SIGCONTs of this process, as a context; a program's own handler stays."""

    def __init__(self) -> None:
        self._continued = 0
        self._own = False

    def __enter__(self) -> Stops:
        if getsignal(SIGCONT) == SIG_DFL:
            with suppress(ValueError):  # a thread of a program that measures cannot set it
                signal(SIGCONT, self._count)
                self._own = True
        return self

    def __exit__(self, *_: object) -> None:
        if self._own:
            signal(SIGCONT, SIG_DFL)

    def _count(self, *_: object) -> None:
        self._continued += 1

    def read(self) -> tuple[int, float, float]:
        """Return the SIGCONTs so far, and two clocks in seconds: one stands while the process runs
        or waits for a core, the other unless the machine sleeps."""
        waited = content("/proc/self/schedstat").split()[1:2]
        busy = time.thread_time() + sum(int(one) / 1e9 for one in waited)
        return self._continued, time.monotonic() - busy, asleep()

    def since(self, before: tuple[int, float, float]) -> float:
        """Return the seconds for which this process was stopped since ``before``; 0 for no stop."""
        (continued, idle, slept), (continued_then, idle_then, slept_then) = self.read(), before
        stopped = slept - slept_then
        if continued > continued_then:
            stopped += idle - idle_then
        return stopped if stopped >= LEAST_SECONDS else 0.0


def asleep() -> float:
    """Return the seconds that this machine has slept, plus a constant; 0 if it does not say."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    if boot is None:
        return 0.0
    found = []
    for _ in range(READINGS):
        before, there, after = time.monotonic(), time.clock_gettime(boot), time.monotonic()
        found.append((after - before, there - before))
    return min(found)[1]


def in_words(
    stopped: Sequence[tuple[int, float]], marked: Sequence[int], sized: bool
) -> str | None:
    """Return a sentence on the sizes and seconds of stops, and the sizes whose rows are marked."""
    if not stopped:
        return None
    from omb_py.core.text.units import duration

    seconds = duration(sum(one for _, one in stopped))
    sizes, left = (", ".join(map(str, dict.fromkeys(some))) for some in (dict(stopped), marked))
    at, but = (f" at {sizes} bytes", f"{left} bytes") if sized else ("", "the last time")
    but = f", but for {but}: do not use those numbers" if marked else ""
    return f"ranks were stopped for {seconds}{at}, as in a suspended job: measured again{but}"

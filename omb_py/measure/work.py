"""Computing for a time that is asked for, and a clock for the parts of an iteration.

Both are functions in C, the same for every binding; if they were not compiled NumPy computes
instead.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable
from functools import partial
from time import perf_counter_ns
from typing import TypeAlias

from omb_py.bindings.machine.program import address_in_loop
from omb_py.buffers import Buffer
from omb_py.core.dataclass import dataclass
from omb_py.core.errors import MissingError
from omb_py.core.memory import Local
from omb_py.core.options import Options

NANOSECONDS = 1e9
TRIALS = 20
FASTEST_STEP = 0.01
"""Nanoseconds: no step is faster; a shorter time is the noise of the trials."""

SHORT, LONGER = 200, 2200
LONGER_ON_DEVICE = 200_200
"""Lengths of work that are timed. A kernel's launch takes 10 us, and milliseconds if processes
share the device: this takes about 0.4 ms, so that its length and not the launch decides."""


class Laps:
    """Sums of the times between laps, by kind."""

    def __init__(self, kinds: int, function: int = 0) -> None:
        """``function`` is the address of `loop.c`'s lap."""
        self._state = array("q", bytes(8 * (1 + kinds)))
        self._function = function

    def lap(self, kind: int) -> Local:
        """Return the step that ends a lap of this kind."""
        address = self._state.buffer_info()[0]
        run = partial(self._run, self._state, 1 + kind)
        return Local("lap", run, self._function, (address, kind))

    def seconds(self, kind: int) -> float:
        """Return the sum of the laps of this kind."""
        return self._state[1 + kind] / NANOSECONDS

    def clear(self) -> None:
        for place in range(len(self._state)):
            self._state[place] = 0

    @staticmethod
    def _run(state: array[int], place: int) -> None:
        now = perf_counter_ns()
        state[place] += now - state[0]
        state[0] = now


Repeat: TypeAlias = Callable[[int], tuple[Local, ...]]
"""Makes the steps that do so many times a minimum of work."""

Work: TypeAlias = Callable[[float], tuple[Local, ...]]
"""Makes the steps that take about so many seconds when they are made as they will be."""


@dataclass(frozen=True)
class Worker:
    """Computes for a given time; ``lap`` is the address of `loop.c`'s lap, 0 without a compiler."""

    work: Work
    lap: int = 0

    def laps(self, kinds: int) -> Laps:
        """Return a clock that the same loop can read."""
        return Laps(kinds, self.lap)


def calibrated(repeat: Repeat, longer: int = LONGER, call_costs: bool = True) -> Work:
    """Return work in equal pieces, timed from those of `SHORT` and of ``longer`` work.

    ``call_costs`` is false if a compiled loop makes the call, which then takes no time.
    """
    short, long = map(fastest, (repeat(SHORT), repeat(longer)))
    each = max((long - short) / (longer - SHORT), FASTEST_STEP)
    base = max(0.0, short - SHORT * each) if call_costs else 0.0
    return lambda seconds: repeat(max(0, round((seconds * NANOSECONDS - base) / each)))


def fastest(steps: tuple[Local, ...]) -> float:
    """Return the nanoseconds of the fastest of some trials."""
    times = []
    for _ in range(TRIALS):
        begin = perf_counter_ns()
        for step in steps:
            step.run()
        times.append(perf_counter_ns() - begin)
    return float(min(times))


def by_machine() -> Repeat:
    """Return a chain of multiplications and additions in C: 2 to 3 ns each.

    Raises `MissingError` if it was not compiled.
    """
    start = address_in_loop("omb_py_compute")
    function = ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.c_int64)(start)
    return lambda times: (Local("compute", partial(function, times), start, (times,)),)


def by_numpy() -> Repeat:
    """Return a worker that adds whole arrays: coarser, and each call costs some 0.3 us."""
    import numpy as np

    def repeat(times: int) -> tuple[Local, ...]:
        values = np.ones(times)
        return (Local("compute", partial(np.add, values, 1.0, values)),)

    return repeat


def find_worker(options: Options, buffer: Buffer) -> Worker:
    """Return the most precise worker available here for ``-r``.

    Raises `UnsupportedError` when a device is to compute and there is none.
    """
    lap = 0
    try:
        host = calibrated(by_machine(), call_costs=options.binding != "native")
        lap = address_in_loop("omb_py_lap")
    except MissingError:
        host = calibrated(by_numpy())
    if options.compute_target == "cpu":
        return Worker(host, lap)
    device = calibrated(buffer.compute, LONGER_ON_DEVICE)
    if options.compute_target == "gpu":
        return Worker(device, lap)

    def both(seconds: float) -> tuple[Local, ...]:
        launch, wait = device(seconds)
        return launch, *host(seconds), wait

    return Worker(both, lap)

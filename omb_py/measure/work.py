"""Computing for a time that is asked for, and a clock for the parts of an iteration.

Both are functions in C, the same for every binding; where they were not compiled NumPy computes
instead.
"""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from array import array
from functools import partial
from time import perf_counter_ns
from typing import Any

from omb_py.bindings.machine.loop import address
from omb_py.buffers import Buffer
from omb_py.core.errors import MissingError
from omb_py.core.memory import Local
from omb_py.core.options import Options

NANOSECONDS = 1e9
TRIALS = 20
FASTEST_STEP = 0.01
"""Nanoseconds: no step is faster; a shorter time is the noise of the trials."""


class Laps:
    """Sums of the times between laps, by kind."""

    def __init__(self, kinds: int, function: int = 0) -> None:
        """``function`` is the address of `loop.c`'s lap."""
        self._state = array("q", bytes(8 * (1 + kinds)))
        self._function = function

    def lap(self, kind: int) -> Local:
        """The step that ends a lap of this kind."""
        address = self._state.buffer_info()[0]
        run = partial(self._run, self._state, 1 + kind)
        return Local("lap", run, self._function, (address, kind))

    def seconds(self, kind: int) -> float:
        """The sum of the laps of this kind."""
        return self._state[1 + kind] / NANOSECONDS

    def clear(self) -> None:
        """Start anew."""
        for place in range(len(self._state)):
            self._state[place] = 0

    @staticmethod
    def _run(state: array[int], place: int) -> None:
        now = perf_counter_ns()
        state[place] += now - state[0]
        state[0] = now


class Worker(ABC):
    """Computes for as long as it is told to."""

    @abstractmethod
    def work(self, seconds: float) -> tuple[Local, ...]:
        """Steps that take about so long when they are made as they will be."""

    @abstractmethod
    def laps(self, kinds: int) -> Laps:
        """A clock that the same loop can read."""


class CalibratedWorker(Worker):
    """Work in equal pieces, whose time is found out beforehand.

    ``short`` and ``long`` are the lengths of work from whose times that of any other follows.
    """

    short, long = 200, 2200

    def __init__(self) -> None:
        self._base, self._each = self._calibrate()

    def work(self, seconds: float) -> tuple[Local, ...]:
        return self.repeat(max(0, round((seconds * NANOSECONDS - self._base) / self._each)))

    @abstractmethod
    def repeat(self, times: int) -> tuple[Local, ...]:
        """Steps that do so many times the minimum work."""

    def laps(self, kinds: int) -> Laps:
        return Laps(kinds)

    def _calibrate(self) -> tuple[float, float]:
        """Nanoseconds of a call without work, and those that each time adds."""
        short, long = (self._fastest(self.repeat(times)) for times in (self.short, self.long))
        each = max((long - short) / (self.long - self.short), FASTEST_STEP)
        return max(0.0, short - self.short * each), each

    @staticmethod
    def _fastest(steps: tuple[Local, ...]) -> float:
        times = []
        for _ in range(TRIALS):
            begin = perf_counter_ns()
            for step in steps:
                step.run()
            times.append(perf_counter_ns() - begin)
        return float(min(times))


class MachineWorker(CalibratedWorker):
    """A chain of multiplications and additions in C: 2 to 3 ns each."""

    def __init__(self, called_from_python: bool) -> None:
        """A compiled loop calls it without the cost of a call from Python.

        Raises `MissingError` where it was not compiled.
        """
        self._address = address("omb_py_compute")
        self._lap = address("omb_py_lap")
        self._function = ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.c_int64)(self._address)
        super().__init__()
        if not called_from_python:
            self._base = 0.0

    def repeat(self, times: int) -> tuple[Local, ...]:
        return (Local("compute", partial(self._function, times), self._address, (times,)),)

    def laps(self, kinds: int) -> Laps:
        return Laps(kinds, self._lap)


class NumpyWorker(CalibratedWorker):
    """Additions of whole arrays: coarser, and each call costs some 0.3 us."""

    def __init__(self) -> None:
        import numpy as np

        self._add: Any = np.add
        self._empty: Any = np.empty
        super().__init__()

    def repeat(self, times: int) -> tuple[Local, ...]:
        values = self._empty(times)
        values.fill(1.0)
        return (Local("compute", partial(self._add, values, 1.0, values), 0, ()),)


class DeviceWorker(CalibratedWorker):
    """A kernel of one thread, which the processor waits for; laps are those of ``host``.

    A launch takes 10 us, and milliseconds if processes share the device: the longer work takes
    about 0.4 ms, so that its length and not the launch decides.
    """

    long = 200_200

    def __init__(self, buffer: Buffer, host: Worker) -> None:
        """Raises `UnsupportedError` when the buffer has no device."""
        self._buffer = buffer
        self._host = host
        super().__init__()

    def repeat(self, times: int) -> tuple[Local, ...]:
        return self._buffer.compute(times)

    def laps(self, kinds: int) -> Laps:
        return self._host.laps(kinds)


class BothWorker(Worker):
    """The device computes while the processor does, each as long as it is told to."""

    def __init__(self, device: DeviceWorker, host: Worker) -> None:
        self._device = device
        self._host = host

    def work(self, seconds: float) -> tuple[Local, ...]:
        launch, wait = self._device.work(seconds)
        return launch, *self._host.work(seconds), wait

    def laps(self, kinds: int) -> Laps:
        return self._host.laps(kinds)


def find_worker(options: Options, buffer: Buffer) -> Worker:
    """The most precise worker that there can be here for ``-r``.

    Raises `UnsupportedError` when a device is to compute and there is none.
    """
    host: Worker
    try:
        host = MachineWorker(called_from_python=options.binding != "native")
    except MissingError:
        host = NumpyWorker()
    if options.compute_target == "cpu":
        return host
    device = DeviceWorker(buffer, host)
    return device if options.compute_target == "gpu" else BothWorker(device, host)

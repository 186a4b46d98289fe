"""The timing loop of everything that is called from Python, and what any loop must do.

One rank's iteration is a short tuple of bound calls. A clock is read right before the first and
right after the last; storing the difference, fetching the next iteration, the common start and the
barrier happen outside. Calls are unrolled if there are one or two, since looping over them would
stand inside the timed part.
"""

from __future__ import annotations

import gc
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle, islice, repeat
from math import fsum
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any, TypeAlias

from omb_py.core.dataclass import dataclass

if TYPE_CHECKING:
    from omb_py.core.mpi.clock import CommonStart

Calls: TypeAlias = tuple[Callable[[], Any], ...]

MILLISECOND = 1e-3


@dataclass(frozen=True)
class Pace:
    """The synchronization of the ranks, outside the measured time.

    ``barrier`` puts a barrier after every iteration; ``start``, unless it is None, puts a common
    start before it.
    """

    barrier: bool = False
    start: CommonStart | None = None


class Loop(ABC):
    """The iterations of one rank, ready to run.

    ``device_seconds`` has the time of each iteration by the events of a device, for all runs, if
    the calls are work of a device; ``queued_seconds`` is the time to start the work of each, if it
    is measured separately from the wait for it.
    """

    device_seconds: array[float] = array("d")
    queued_seconds: array[float] = array("d")

    plan: object = None
    """What owns the memory that the calls use, kept as long as the loop."""

    cpu_seconds = 0.0
    cpu_iterations = 0
    """CPU time of this process in ``cpu_iterations``, if it was measured."""

    def count_cpu(self, seconds: float, iterations: int) -> None:
        """Add what iterations took of the CPU, with what kept ranks together between them."""
        self.cpu_seconds += seconds
        self.cpu_iterations += iterations

    @abstractmethod
    def run(self, first: int, seconds: array[float]) -> None:
        """Run ``len(seconds)`` iterations and store the seconds of each.

        The one with number ``first + i`` makes the calls ``(first + i) % n`` of the loop's ``n``.
        """

    def burst(self, iterations: int) -> tuple[float, float]:
        """Run iterations, on a device with one wait for all; the seconds of all, and to start them.

        What comes before and after an iteration, outside of its time, is left out on a device.
        """
        seconds = array("d", bytes(8 * iterations))
        self.run(0, seconds)
        queued = self.queued_seconds[-iterations:]
        return fsum(seconds), fsum(queued or seconds)


class PythonLoop(Loop):
    """A loop of Python over bound calls, timed by `time.perf_counter`."""

    def __init__(
        self,
        iterations: Sequence[Calls],
        barrier: Callable[[], Any] | None = None,
        start: Callable[[], Any] | None = None,
        around: Sequence[tuple[Calls, Calls]] = (),
    ) -> None:
        """``iterations`` are the timed calls of one iteration each, ``around`` those before and
        after them; a common start comes last before, a barrier last after."""
        self._iterations = iterations
        self._around = [*around] if any(map(any, around)) else []
        self._start = start
        self._barrier = barrier
        self.device_seconds, self.queued_seconds = array("d"), array("d")
        lengths = {len(calls) for calls in iterations}
        self._timer = TIMERS.get(lengths.pop(), _time_any) if len(lengths) == 1 else _time_any

    def run(self, first: int, seconds: array[float]) -> None:
        skipped = first % len(self._iterations)
        sequence: Iterator[Calls] = islice(cycle(self._iterations), skipped, skipped + len(seconds))
        if self._around:
            parts = islice(cycle(self._around), skipped, skipped + len(seconds))
            sequence = self._paced(sequence, parts)
        elif self._start is not None or self._barrier is not None:
            sequence = self._paced(sequence, repeat(((), ())))
        begin = process_time()
        with no_garbage_collection():
            self._time(sequence, seconds)
        self.count_cpu(process_time() - begin, len(seconds))

    def _time(self, sequence: Iterable[Calls], seconds: array[float]) -> None:
        """Store the seconds of the calls of each iteration."""
        self._timer(sequence, seconds)

    def _paced(
        self, sequence: Iterable[Calls], around: Iterable[tuple[Calls, Calls]]
    ) -> Iterator[Calls]:
        """Yield the calls of each iteration, between what comes before and after it."""
        start, barrier = self._start, self._barrier
        for calls, (before, after) in zip(sequence, around, strict=False):
            for call in before:
                call()
            if start is not None:
                start()
            yield calls
            for call in after:
                call()
            if barrier is not None:
                barrier()


class StartedLoop(PythonLoop):
    """A loop that starts the work of each step and waits for it, and keeps how long starting took.

    A step's callable returns objects with a method ``wait``, or None.
    """

    def _time(self, sequence: Iterable[Calls], seconds: array[float]) -> None:
        clock, queued_seconds = perf_counter, self.queued_seconds
        for index, starts in enumerate(sequence):
            queued = 0.0
            begin = before = clock()
            for start in starts:
                works = start()
                started = clock()
                queued += started - before
                for work in works or ():
                    work.wait()
                before = clock()
            seconds[index] = before - begin
            queued_seconds.append(queued)


@dataclass(frozen=True)
class Stream:
    """The stream of a device that work is put on.

    ``begin`` and ``end`` record an event on it, ``milliseconds`` returns the time between the two,
    and ``wait`` returns when its work is done.
    """

    begin: Callable[[], Any]
    end: Callable[[], Any]
    wait: Callable[[], Any]
    milliseconds: Callable[[], float]


class StreamLoop(PythonLoop):
    """A loop that puts the work of each iteration on a device's stream and waits for it.

    The host's clock spans both; an event before and one after the work give the device's time.
    """

    def __init__(self, stream: Stream, iterations: Sequence[Calls], *paced: Any) -> None:
        """``paced`` are the further arguments of `PythonLoop`."""
        super().__init__(iterations, *paced)
        self._stream = stream

    def _time(self, sequence: Iterable[Calls], seconds: array[float]) -> None:
        record_begin, record_end = self._stream.begin, self._stream.end
        wait, clock = self._stream.wait, perf_counter
        for index, calls in enumerate(sequence):
            record_begin()
            begin = clock()
            for call in calls:
                call()
            record_end()
            queued = clock()
            wait()
            seconds[index] = clock() - begin
            self.queued_seconds.append(queued - begin)
            self.device_seconds.append(self._stream.milliseconds() * MILLISECOND)

    def burst(self, iterations: int) -> tuple[float, float]:
        clock = perf_counter
        with no_garbage_collection():
            begin = clock()
            for calls in islice(cycle(self._iterations), iterations):
                for call in calls:
                    call()
            queued = clock() - begin
            self._stream.wait()
            return clock() - begin, queued


def time_once(calls: Calls, results: list[Any]) -> float:
    """Run one iteration; its seconds, what its calls returned going to ``results``."""
    keep = results.append
    with no_garbage_collection():
        begin = perf_counter()
        for call in calls:
            keep(call())
        return perf_counter() - begin


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Keep Python's cyclic garbage collector out of what is timed."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _time_single(sequence: Iterable[Calls], seconds: array[float]) -> None:
    clock = perf_counter
    for index, (call,) in enumerate(sequence):
        begin = clock()
        call()
        end = clock()
        seconds[index] = end - begin


def _time_pairs(sequence: Iterable[Calls], seconds: array[float]) -> None:
    clock = perf_counter
    for index, (first, second) in enumerate(sequence):
        begin = clock()
        first()
        second()
        end = clock()
        seconds[index] = end - begin


def _time_any(sequence: Iterable[Calls], seconds: array[float]) -> None:
    clock = perf_counter
    for index, calls in enumerate(sequence):
        begin = clock()
        for call in calls:
            call()
        end = clock()
        seconds[index] = end - begin


TIMERS = {1: _time_single, 2: _time_pairs}
"""Timers of iterations of so few calls that they need no loop, by that number."""

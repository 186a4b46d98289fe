"""The timing loop: the only one, for every benchmark.

One rank's iteration is a short tuple of bound calls. A clock is read right before the first and
right after the last; storing the difference, fetching the next iteration and the barrier happen
outside. Calls are unrolled where there are one or two, since looping over them would stand inside
the timed part.
"""

from __future__ import annotations

import gc
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle, islice
from time import perf_counter
from typing import Any, TypeAlias

Calls: TypeAlias = tuple[Callable[[], Any], ...]


def time_iterations(
    exchanges: Sequence[Calls], iterations: int, warmup: int, barrier: Callable[[], Any] | None
) -> array[float]:
    """Run ``warmup`` and then ``iterations`` iterations; the seconds of each of the latter.

    Iteration ``i`` makes the calls ``exchanges[i % len(exchanges)]``. ``barrier``, where there is
    one, follows every iteration, untimed.
    """
    total = warmup + iterations
    seconds = array("d", bytes(8 * total))
    lengths = {len(calls) for calls in exchanges}
    run = {1: _time_single, 2: _time_pairs}.get(
        lengths.pop() if len(lengths) == 1 else 0, _time_any
    )
    with no_garbage_collection():
        run(islice(cycle(exchanges), total), barrier, seconds)
    return seconds[warmup:]


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


def _time_single(
    sequence: Iterable[Calls], barrier: Callable[[], Any] | None, seconds: array[float]
) -> None:
    clock = perf_counter
    for index, (call,) in enumerate(sequence):
        begin = clock()
        call()
        end = clock()
        seconds[index] = end - begin
        if barrier is not None:
            barrier()


def _time_pairs(
    sequence: Iterable[Calls], barrier: Callable[[], Any] | None, seconds: array[float]
) -> None:
    clock = perf_counter
    for index, (first, second) in enumerate(sequence):
        begin = clock()
        first()
        second()
        end = clock()
        seconds[index] = end - begin
        if barrier is not None:
            barrier()


def _time_any(
    sequence: Iterable[Calls], barrier: Callable[[], Any] | None, seconds: array[float]
) -> None:
    clock = perf_counter
    for index, calls in enumerate(sequence):
        begin = clock()
        for call in calls:
            call()
        end = clock()
        seconds[index] = end - begin
        if barrier is not None:
            barrier()

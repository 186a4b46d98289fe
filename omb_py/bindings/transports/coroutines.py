"""Bound calls that are coroutines, in one event loop, and the timing loop that awaits them."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from array import array
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from functools import partial
from itertools import cycle, islice
from time import perf_counter, process_time
from typing import Any, TypeAlias

from omb_py.bindings import Binding, BoundCall
from omb_py.core.calls import Iteration, Step
from omb_py.core.calls.loop import Loop, Pace, no_garbage_collection
from omb_py.core.options import Options

AsyncCall: TypeAlias = Callable[[], Coroutine[Any, Any, Any]]
AsyncCalls: TypeAlias = tuple[AsyncCall, ...]


class AsyncBinding(Binding):
    """Each step is a coroutine; one that is called by itself runs the event loop to its end."""

    def __init__(self, comm: Any, options: Options) -> None:
        super().__init__(comm, options)
        self.event_loop = asyncio.new_event_loop()

    @abstractmethod
    def awaitable(self, step: Step) -> AsyncCall:
        """Return a coroutine function that does what ``step`` describes; raises as `bind` does."""

    def bind(self, step: Step) -> BoundCall:
        return partial(_run, self.event_loop, self.awaitable(step))

    def loop(self, iterations: Sequence[Iteration], pace: Pace) -> Loop:
        iterations = [self.arranged(iteration) for iteration in iterations]
        for iteration in iterations:
            self.set_up(iteration)
        parts = [
            tuple(tuple(map(self.awaitable, steps)) for steps in (one.before, one.steps, one.after))
            for one in iterations
        ]
        return AsyncLoop(
            self.event_loop,
            parts,
            self.barrier if pace.barrier else None,
            pace.start.wait if pace.start else None,
        )

    def close(self) -> None:
        if not self.event_loop.is_closed():
            self.event_loop.close()


class AsyncLoop(Loop):
    """Awaits the calls of each iteration, in an event loop that runs for all of them.

    What keeps ranks together blocks the event loop, outside of what is timed.
    """

    def __init__(
        self,
        event_loop: asyncio.AbstractEventLoop,
        parts: Sequence[Sequence[AsyncCalls]],
        barrier: BoundCall | None,
        start: BoundCall | None,
    ) -> None:
        """``parts`` are the calls before the timed ones of an iteration, these, and those after."""
        self._event_loop = event_loop
        self._parts = parts
        self._barrier = barrier
        self._start = start

    def run(self, first: int, seconds: array[float]) -> None:
        skipped = first % len(self._parts)
        parts = islice(cycle(self._parts), skipped, skipped + len(seconds))
        begin = process_time()
        with no_garbage_collection():
            self._event_loop.run_until_complete(self._time(parts, seconds))
        self.count_cpu(process_time() - begin, len(seconds))

    async def _time(self, parts: Iterator[Sequence[AsyncCalls]], seconds: array[float]) -> None:
        clock, start, barrier = perf_counter, self._start, self._barrier
        for index, (before, calls, after) in enumerate(parts):
            for call in before:
                await call()
            if start is not None:
                start()
            begin = clock()
            for call in calls:
                await call()
            seconds[index] = clock() - begin
            for call in after:
                await call()
            if barrier is not None:
                barrier()


async def call_at_once(action: Callable[[], Any]) -> None:
    """Make a call that needs no waiting, as a coroutine."""
    action()


def _run(event_loop: asyncio.AbstractEventLoop, call: Callable[[], Awaitable[Any]]) -> Any:
    return event_loop.run_until_complete(call())

"""Bound calls that are coroutines, in one event loop, and the timing loop that awaits them."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from array import array
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from functools import partial
from itertools import cycle, islice
from time import perf_counter, process_time
from typing import Any, TypeAlias

from omb_py.bindings import Binding, BoundCall, waited_for
from omb_py.bindings.transports import Connections, check_agreed
from omb_py.core.calls import Call, Iteration, Step, Window, parts_of_sendrecv
from omb_py.core.calls.loop import Loop, Pace, no_garbage_collection
from omb_py.core.errors import MissingPackageError, UnsupportedError
from omb_py.core.job import Job
from omb_py.core.job.by_mpi import job_of
from omb_py.core.memory import Local
from omb_py.core.options import Options

AsyncCall: TypeAlias = Callable[[], Coroutine[Any, Any, Any]]
AsyncCalls: TypeAlias = tuple[AsyncCall, ...]

Link: TypeAlias = tuple[bool, int]
"""True for sends, and the peer: the messages of one link are moved in order."""


class AsyncBinding(Binding):
    """Each step is a coroutine; one that is called by itself runs the event loop to its end."""

    own_options: tuple[str, ...] = ("event_loop",)

    def __init__(self, comm: Any, options: Options) -> None:
        super().__init__(comm, options)
        self.event_loop = new_event_loop(options.event_loop)

    @abstractmethod
    def awaitable(self, step: Step) -> AsyncCall:
        """Return a coroutine function that does what ``step`` describes; raises as `bind` does."""

    def bind(self, step: Step) -> BoundCall:
        return partial(_run, self.event_loop, self.awaitable(step))

    def sequence(self, iteration: Iteration) -> AsyncCalls:
        """Return the awaitables of an iteration, one after the other."""
        return tuple(self.awaitable(step) for step in iteration.steps)

    def loop(self, iterations: Sequence[Iteration], pace: Pace) -> Loop:
        iterations = [self.arranged(iteration) for iteration in iterations]
        for iteration in iterations:
            self.set_up(iteration)
        around = [
            tuple(
                tuple(map(self.awaitable, steps)) for steps in (iteration.before, iteration.after)
            )
            for iteration in iterations
        ]
        return AsyncLoop(
            self.event_loop,
            [self.sequence(iteration) for iteration in iterations],
            [(before, after) for before, after in around],
            self.barrier if pace.barrier else None,
            pace.start.wait if pace.start else None,
        )

    def describe(self) -> dict[str, str]:
        return {"event_loop": type(self.event_loop).__module__.partition(".")[0]}

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
        exchanges: Sequence[AsyncCalls],
        around: Sequence[tuple[AsyncCalls, AsyncCalls]],
        barrier: BoundCall | None,
        start: BoundCall | None,
    ) -> None:
        self._event_loop = event_loop
        self._parts = [
            (before, calls, after) for calls, (before, after) in zip(exchanges, around, strict=True)
        ]
        self._barrier = barrier
        self._start = start

    def run(self, first: int, seconds: array[float]) -> None:
        skipped = first % len(self._parts)
        parts = islice(cycle(self._parts), skipped, skipped + len(seconds))
        begin = process_time()
        with no_garbage_collection():
            self._event_loop.run_until_complete(self._time(parts, seconds))
        self.count_cpu(process_time() - begin, len(seconds))

    async def _time(
        self, parts: Iterator[tuple[AsyncCalls, AsyncCalls, AsyncCalls]], seconds: array[float]
    ) -> None:
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


class AsyncTransport(Connections):
    """Connections whose sends and receives are awaited."""

    @abstractmethod
    async def send(self, peer: int, data: Any) -> None:
        """Send the result of `prepared`; return when it may be changed and the send is complete."""

    @abstractmethod
    async def receive(self, peer: int, data: Any) -> None:
        """Receive the next message into ``data``, which has its length."""


class AsyncTransportBinding(AsyncBinding):
    """Messages between two ranks by an `AsyncTransport`, which `connect` makes.

    Messages to one rank, and those from one, are sent and received in order.
    """

    needs_mpi = False
    point_to_point = True
    serves_threads = False
    own_options = ("event_loop", "interface")
    connect: Callable[[Job, Options, asyncio.AbstractEventLoop], AsyncTransport]

    def __init__(self, comm: Any, options: Options) -> None:
        super().__init__(comm, options)
        job = job_of(comm)
        check_agreed(job, options)
        self.rank = job.rank
        self.transport = type(self).connect(job, options, self.event_loop)
        self._last: dict[Link, asyncio.Task[None]] = {}

    def awaitable(self, step: Step) -> AsyncCall:
        if isinstance(step, Local):
            return partial(call_at_once, step.run)
        if isinstance(step, Window):
            calls = [call for group in step.groups for call in group]
            return self._together([self._part(call) for call in calls])
        function = step.function
        if function in ("wait", "waitall") and step.slot is not None:
            return partial(_finish, self.held(step), waited_for(step))
        if function in ("isend", "irecv") and step.slot is not None:
            return partial(self._begin, self._part(step), self.held(step), step.index)
        if function in ("send", "recv"):
            return self._together([self._part(step)])
        local = self.local_step(step, self.rank)
        if local is not None:
            return partial(call_at_once, local)
        if function == "sendrecv":
            return self._together([self._part(call) for call in parts_of_sendrecv(step)])
        raise UnsupportedError(self.lacks(function))

    def describe(self) -> dict[str, str]:
        found = {"serialization": self.transport.serialization} | self.transport.describe()
        return super().describe() | found

    def close(self) -> None:
        self.transport.close()
        super().close()

    def _part(self, call: Call) -> tuple[Link, AsyncCall]:
        """Return the link of a message, and what moves it."""
        if call.function not in ("send", "recv", "isend", "irecv"):
            raise UnsupportedError(self.lacks(call.function))
        assert call.peer is not None
        sends = call.function.endswith("send")
        data = self.transport.of_message(call.messages[0], self.name)
        move = self.transport.send if sends else self.transport.receive
        return (sends, call.peer), partial(move, call.peer, data)

    def _together(self, parts: Sequence[tuple[Link, AsyncCall]]) -> AsyncCall:
        """Return a coroutine function that moves messages, those of different links at once."""
        by_link: dict[Link, list[AsyncCall]] = {}
        for link, move in parts:
            by_link.setdefault(link, []).append(move)
        if len(by_link) > 1:
            return partial(self._all, by_link)
        ((link, moves),) = by_link.items()
        if len(moves) > 1:
            return partial(self._in_order, link, moves)
        ((move,), last) = moves, self._last
        return lambda: self._in_order(link, moves) if last else move()

    async def _all(self, by_link: Mapping[Link, Sequence[AsyncCall]]) -> None:
        await asyncio.gather(*(self._in_order(link, moves) for link, moves in by_link.items()))

    async def _in_order(self, link: Link, moves: Sequence[AsyncCall]) -> None:
        before = self._last.get(link)
        if before is not None and before is not asyncio.current_task():
            await before
        for move in moves:
            await move()

    async def _begin(self, part: tuple[Link, AsyncCall], held: list[Any], index: int) -> None:
        link, move = part
        before = self._last.get(link)

        async def run() -> None:
            if before is not None:
                await before
            await move()
            if self._last.get(link) is task:
                del self._last[link]

        task = held[index] = self._last[link] = self.event_loop.create_task(run())


async def call_at_once(action: Callable[[], Any]) -> None:
    """Do what needs no waiting."""
    action()


async def one_by_one(calls: Sequence[AsyncCall]) -> None:
    """Await calls in their order."""
    for call in calls:
        await call()


async def _finish(held: list[Any], chosen: slice) -> None:
    for task in held[chosen]:
        await task


def _run(event_loop: asyncio.AbstractEventLoop, call: Callable[[], Awaitable[Any]]) -> Any:
    return event_loop.run_until_complete(call())


def new_event_loop(name: str | None) -> asyncio.AbstractEventLoop:
    """Return Python's own event loop or uvloop's; raise `UnsupportedError` without uvloop."""
    if name != "uvloop":
        return asyncio.new_event_loop()
    try:
        import uvloop
    except ImportError as error:
        raise MissingPackageError("--event-loop uvloop", "uvloop", "pip install uvloop") from error
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop

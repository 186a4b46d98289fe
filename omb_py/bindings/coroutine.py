"""Coroutines over MPI: mpi4py's requests are awaited, as in MPI4Dask (arXiv 2101.08878)."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from mpi4py import MPI

from omb_py.bindings import BoundCall
from omb_py.bindings.buffer import BufferBinding
from omb_py.bindings.transports.coroutines import AsyncBinding, AsyncCall, AsyncCalls
from omb_py.core.calls import Call, Iteration, Step, Window
from omb_py.core.dataclass import replace
from omb_py.core.errors import UnsupportedError, UsageError
from omb_py.core.memory import Local
from omb_py.core.options import Options

TAGS_APART = 1000
"""Between the tags of coroutines that are in flight together."""

POINT_TO_POINT = ("send", "ssend", "recv")
COLLECTIVES = (
    "allgather allgatherv allreduce alltoall alltoallv alltoallw barrier bcast exscan gather "
    "gatherv reduce reduce_scatter reduce_scatter_block scan scatter scatterv".split()
)


class Progress(ABC):
    """How requests come to an end while coroutines wait for them."""

    @abstractmethod
    async def wait(self, requests: Sequence[MPI.Request]) -> None:
        """Return when all requests are complete."""

    def close(self) -> None:  # noqa: B027 - some have nothing to close
        """Nothing is waited for any more."""


class BusyPoll(Progress):
    """Each coroutine tests its own requests, and lets nothing else run meanwhile."""

    async def wait(self, requests: Sequence[MPI.Request]) -> None:
        test = MPI.Request.Testall
        while not test(requests):
            pass


class Poll(Progress):
    """Each coroutine tests its own requests, and lets others run in between."""

    async def wait(self, requests: Sequence[MPI.Request]) -> None:
        test, pause = MPI.Request.Testall, asyncio.sleep
        while not test(requests):
            await pause(0)


class Awaited(NamedTuple):
    """Requests, and the future that a coroutine awaits until they are complete."""

    requests: Sequence[MPI.Request]
    future: asyncio.Future[None]

    def outcome(self) -> Callable[[], None] | None:
        """What completes the future, by an error where one has failed; None until then."""
        try:
            done = MPI.Request.Testall(self.requests)
        except MPI.Exception as error:
            return partial(self.future.set_exception, error)
        return partial(self.future.set_result, None) if done else None


class Poller(Progress):
    """One task tests the requests of all, as long as there are any; others wait for futures."""

    def __init__(self) -> None:
        self._waiting: list[Awaited] = []
        self._task: asyncio.Task[None] | None = None

    async def wait(self, requests: Sequence[MPI.Request]) -> None:
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self._waiting.append(Awaited(requests, future))
        if self._task is None:
            self._task = loop.create_task(self._poll())
        await future

    async def _poll(self) -> None:
        while self._waiting:
            for one in list(self._waiting):
                if (complete := one.outcome()) is not None:
                    self._waiting.remove(one)
                    complete()
            await asyncio.sleep(0)
        self._task = None


class ProgressThread(Progress):
    """A thread tests the requests of all, and wakes the event loop."""

    def __init__(self) -> None:
        self._waiting: list[Awaited] = []
        self._changed = threading.Condition()
        self._ended = False
        threading.Thread(target=self._poll, name="omb-py: MPI progress", daemon=True).start()

    async def wait(self, requests: Sequence[MPI.Request]) -> None:
        future = asyncio.get_running_loop().create_future()
        with self._changed:
            self._waiting.append(Awaited(requests, future))
            self._changed.notify()
        await future

    def close(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify()

    def _poll(self) -> None:
        while not self._ended:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._ended)
                waiting = list(self._waiting)
            for one in waiting:
                if (complete := one.outcome()) is not None:
                    with self._changed:
                        self._waiting.remove(one)
                    one.future.get_loop().call_soon_threadsafe(complete)


MODES: dict[str, Callable[[], Progress]] = {
    "busy": BusyPoll,
    "poll": Poll,
    "poller": Poller,
    "thread": ProgressThread,
}


class CoroutineBinding(AsyncBinding):
    """``request = comm.Isend(...)``, then ``await`` until it is complete."""

    name = "coroutine"
    serves_threads = False
    own_options = ("event_loop", "progress_mode", "in_flight")

    def __init__(self, comm: MPI.Intracomm, options: Options) -> None:
        super().__init__(comm, options)
        self._mode = options.progress_mode or "poll"
        if self._mode == "thread" and MPI.Query_thread() < MPI.THREAD_MULTIPLE:
            raise UsageError(
                "--progress-mode thread calls MPI from two threads: add --thread-level multiple"
            )
        self._progress = MODES[self._mode]()
        self._buffer = BufferBinding(comm, options)

    def awaitable(self, step: Step) -> AsyncCall:
        if isinstance(step, Local):
            return partial(_made, step.run)
        if isinstance(step, Window):
            starts = [self._buffer.start(group) for group in step.groups]
            return partial(_window, starts, self._progress.wait)
        function = step.function
        if function in ("wait", "waitall") and step.cell is not None:
            held = self._buffer.cells.held(step.cell)
            chosen = slice(None) if function == "waitall" else slice(step.index, step.index + 1)
            return partial(_held, held, chosen, self._progress.wait)
        if function == "sendrecv":
            to, sent, source, received = step.values
            outgoing, incoming = step.messages
            pair = (
                Call("irecv", (incoming,), source, received),
                Call("isend", (outgoing,), to, sent),
            )
            starts = [self._buffer.start((call,)) for call in pair]
            return partial(_window, starts, self._progress.wait)
        if step.cell is None and function in (*POINT_TO_POINT, *COLLECTIVES):
            start = self._buffer.bind_call(replace(step, function=f"i{function}"))
            return partial(_one, start, self._progress.wait)
        return partial(_made, self._buffer.bind_call(step))

    def sequence(self, round_: Iteration) -> AsyncCalls:
        count = self.options.in_flight or 1
        if count == 1:
            return super().sequence(round_)
        calls = [step for step in round_.steps if isinstance(step, Call) and step.peer is not None]
        if len(calls) < len(round_.steps):
            raise UnsupportedError(
                "--in-flight is for ping-pongs between two ranks: of other messages, windows and "
                "non-blocking calls are in flight together"
            )
        together = [
            tuple(self.awaitable(replace(call, tag=call.tag + i * TAGS_APART)) for call in calls)
            for i in range(count)
        ]
        return (partial(_together, together),) if calls else ()

    def functions(self, round_: Iteration) -> tuple[str, ...]:
        blocking = (*POINT_TO_POINT, *COLLECTIVES)
        return tuple(f"i{name}" if name in blocking else name for name in super().functions(round_))

    def describe(self) -> dict[str, str]:
        found = {"progress_mode": self._mode, "in_flight": str(self.options.in_flight or 1)}
        return super().describe() | found

    def release(self) -> None:
        super().release()
        self._buffer.release()

    def close(self) -> None:
        self._progress.close()
        super().close()


async def _made(call: BoundCall) -> None:
    call()


async def _one(start: BoundCall, wait: Callable[..., Any]) -> None:
    await wait([start()])


async def _held(held: list[Any], chosen: slice, wait: Callable[..., Any]) -> None:
    await wait(held[chosen])


async def _window(starts: Sequence[Callable[[], list[Any]]], wait: Callable[..., Any]) -> None:
    await wait([request for start in starts for request in start()])


async def _together(sequences: Sequence[AsyncCalls]) -> None:
    await asyncio.gather(*map(_sequence, sequences))


async def _sequence(calls: AsyncCalls) -> None:
    for call in calls:
        await call()


BINDING = CoroutineBinding

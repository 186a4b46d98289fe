"""Coroutines over MPI: mpi4py's requests are awaited, as in MPI4Dask (arXiv 2101.08878)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from mpi4py import MPI

from omb_py.bindings import BoundCall, waited_for
from omb_py.bindings.buffer import BufferBinding
from omb_py.bindings.transports.coroutines import (
    AsyncBinding,
    AsyncCall,
    call_at_once,
)
from omb_py.core.calls import Iteration, Step, Window, parts_of_sendrecv
from omb_py.core.dataclass import replace
from omb_py.core.memory import Local
from omb_py.core.options import Options

BLOCKING = (
    "send ssend recv allgather allgatherv allreduce alltoall alltoallv alltoallw barrier bcast "
    "exscan gather gatherv reduce reduce_scatter reduce_scatter_block scan scatter scatterv".split()
)
"""Functions that are called in their non-blocking form, whose request is awaited."""


async def completed(requests: Sequence[MPI.Request]) -> None:
    """Return when all requests are complete; other coroutines run between two tests."""
    test, pause = MPI.Request.Testall, asyncio.sleep
    while not test(requests):
        await pause(0)


class CoroutineBinding(AsyncBinding):
    """``request = comm.Isend(...)``, then ``await`` until it is complete."""

    name = "coroutine"
    serves_threads = False

    def __init__(self, comm: MPI.Intracomm, options: Options) -> None:
        super().__init__(comm, options)
        self._buffer = BufferBinding(comm, options)

    def awaitable(self, step: Step) -> AsyncCall:
        if isinstance(step, Local):
            return partial(call_at_once, step.run)
        if isinstance(step, Window):
            starts = [self._buffer.start(group) for group in step.groups]
            return partial(_window, starts)
        function = step.function
        if function in ("wait", "waitall") and step.slot is not None:
            return partial(_held, self._buffer.held(step), waited_for(step))
        if function == "sendrecv":
            starts = [self._buffer.start((call,)) for call in parts_of_sendrecv(step)]
            return partial(_window, starts)
        if step.slot is None and function in BLOCKING:
            start = self._buffer.bind_call(replace(step, function=f"i{function}"))
            return partial(_one, start)
        return partial(call_at_once, self._buffer.bind_call(step))

    def functions(self, iteration: Iteration) -> tuple[str, ...]:
        names = super().functions(iteration)
        return tuple(f"i{name}" if name in BLOCKING else name for name in names)

    def release(self) -> None:
        super().release()
        self._buffer.release()


async def _one(start: BoundCall) -> None:
    await completed([start()])


async def _held(held: list[Any], chosen: slice) -> None:
    await completed(held[chosen])


async def _window(starts: Sequence[Callable[[], list[Any]]]) -> None:
    await completed([request for start in starts for request in start()])


BINDING = CoroutineBinding

"""asyncio's streams over TCP: what coroutines of one process talk to others by."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from omb_py.bindings import waited_for
from omb_py.bindings.tcp import connected
from omb_py.bindings.transports import Connections
from omb_py.bindings.transports.coroutines import AsyncBinding, AsyncCall, call_at_once
from omb_py.bindings.transports.sockets import filled
from omb_py.core.calls import Call, Step, Window, parts_of_sendrecv
from omb_py.core.errors import OmbError, UnsupportedError
from omb_py.core.job import Job
from omb_py.core.job.by_mpi import job_of
from omb_py.core.memory import Local, Memory
from omb_py.core.options import Options

Link: TypeAlias = tuple[bool, int]
"""True for sends, and the peer: the messages of one link are moved in order."""


class StreamTransport(Connections):
    """A stream to each rank. What arrives is bytes, which are copied to their place."""

    serialization = "none"

    def __init__(self, job: Job, options: Options, event_loop: asyncio.AbstractEventLoop) -> None:
        self._address, streams = connected(job, options)
        self._event_loop = event_loop
        self._streams = {
            peer: event_loop.run_until_complete(_opened(stream)) for peer, stream in streams.items()
        }

    def prepared(self, memory: Memory, binding: str) -> memoryview:
        return filled(super().prepared(memory, binding))

    async def send(self, peer: int, data: memoryview) -> None:
        """Send data; return when it may be changed and the send is complete."""
        _, writer = self._streams[peer]
        writer.write(data)
        await writer.drain()

    async def receive(self, peer: int, data: memoryview) -> None:
        """Receive the next message into ``data``, which has its length."""
        reader, _ = self._streams[peer]
        try:
            data[:] = await reader.readexactly(len(data))
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise OmbError(f"the connection to rank {peer} is closed: see what ended it") from error

    def close(self) -> None:
        writers = [writer for _, writer in self._streams.values()]
        self._event_loop.run_until_complete(_closed(writers))

    def describe(self) -> dict[str, str]:
        return {"address": self._address}


async def _opened(stream: socket.socket) -> tuple[Any, Any]:
    reader, writer = await asyncio.open_connection(sock=stream)
    writer.transport.set_write_buffer_limits(high=0)  # so that drain leaves nothing to send
    return reader, writer


async def _closed(writers: Sequence[asyncio.StreamWriter]) -> None:
    for writer in writers:
        writer.close()
    await asyncio.gather(*(writer.wait_closed() for writer in writers), return_exceptions=True)


class AsyncioBinding(AsyncBinding):
    """Messages by ``writer.write(array); await writer.drain()``, ``reader.readexactly(n)``.

    Messages to one rank, and those from one, are sent and received in order.
    """

    name = "asyncio"
    needs_mpi = False
    point_to_point = True
    serves_threads = False
    own_options = ("interface",)

    def __init__(self, comm: Any, options: Options) -> None:
        super().__init__(comm, options)
        job = job_of(comm)
        self.rank = job.rank
        self.transport = StreamTransport(job, options, self.event_loop)
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
        return {"serialization": self.transport.serialization} | self.transport.describe()

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


async def _finish(held: list[Any], chosen: slice) -> None:
    for task in held[chosen]:
        await task


BINDING = AsyncioBinding

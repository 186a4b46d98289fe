"""asyncio's streams over TCP: what coroutines of one process talk to others by."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from typing import Any

from omb_py.bindings.tcp import connected
from omb_py.bindings.transports.coroutines import AsyncTransport, AsyncTransportBinding
from omb_py.bindings.transports.sockets import filled
from omb_py.core.errors import OmbError
from omb_py.core.job import Job
from omb_py.core.memory import Memory
from omb_py.core.options import Options


class StreamTransport(AsyncTransport):
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
        _, writer = self._streams[peer]
        writer.write(data)
        await writer.drain()

    async def receive(self, peer: int, data: memoryview) -> None:
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


class AsyncioBinding(AsyncTransportBinding):
    """Messages by ``writer.write(array); await writer.drain()``, ``reader.readexactly(n)``."""

    name = "asyncio"
    connect = StreamTransport


BINDING = AsyncioBinding

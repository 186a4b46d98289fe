"""ucxx's own coroutines: what Dask's workers and others in an event loop call."""

from __future__ import annotations

import asyncio
from typing import Any

from omb_py.bindings.transports.coroutines import AsyncTransport, AsyncTransportBinding
from omb_py.bindings.transports.ucx import (
    Array,
    choose_interface,
    not_connected,
    tags_of,
    ucxx,
    versions,
)
from omb_py.core.job import Job
from omb_py.core.memory import Memory
from omb_py.core.options import Options


class UcxEndpoints(AsyncTransport):
    """An endpoint to each rank by the address of its worker; a message's tag is its sender.

    What makes progress is ucxx's own task or thread, chosen by ``UCXPY_PROGRESS_MODE``.
    """

    serialization = "none"

    def __init__(self, job: Job, options: Options, event_loop: asyncio.AbstractEventLoop) -> None:
        choose_interface(job, options)
        self._tags, self._event_loop = tags_of(job), event_loop
        self._sent = self._tags[job.rank]
        self._endpoints = event_loop.run_until_complete(self._connected(job))

    async def _connected(self, job: Job) -> list[Any]:
        ucxx.init()
        addresses = job.allgather(bytes(memoryview(ucxx.get_worker_address())))
        try:
            return [
                await ucxx.create_endpoint_from_worker_address(
                    ucxx.get_ucx_address_from_buffer(address), endpoint_error_handling=False
                )
                for address in addresses
            ]
        except ucxx.exceptions.UCXError as error:
            raise not_connected(error) from error

    def prepared(self, memory: Memory, binding: str) -> Any:
        return Array(memory.array)

    async def send(self, peer: int, data: Any) -> None:
        await self._endpoints[peer].send(data, tag=self._sent, force_tag=True)

    async def receive(self, peer: int, data: Any) -> None:
        await self._endpoints[peer].recv(data, tag=self._tags[peer], force_tag=True)

    def close(self) -> None:
        for endpoint in self._endpoints:
            endpoint.abort()
        self._endpoints.clear()  # ucxx ends once nothing refers to one
        self._event_loop.run_until_complete(_end())

    def describe(self) -> dict[str, str]:
        return versions() | {"progress_mode": str(ucxx.core._get_ctx().progress_mode)}


async def _end() -> None:
    ucxx.stop_notifier_thread()
    ucxx.reset()


class UcxAsyncBinding(AsyncTransportBinding):
    """Messages by ``await endpoint.send(Array(array))``, ``await endpoint.recv(Array(array))``."""

    name = "ucxx_async"
    connect = UcxEndpoints


BINDING = UcxAsyncBinding

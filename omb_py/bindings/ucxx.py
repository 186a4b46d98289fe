"""UCX without MPI, through RAPIDS' ucxx: messages with tags between the workers of all ranks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import Any

from omb_py.bindings import BoundCall
from omb_py.bindings.transports import Transport, TransportBinding
from omb_py.bindings.transports.ucx import (
    Array,
    choose_interface,
    libucxx,
    not_connected,
    tags_of,
    versions,
)
from omb_py.core.job import Job
from omb_py.core.memory import Memory
from omb_py.core.options import Options

POLLS = 1000
"""Number of polls of the worker for a message before other processes may run."""


class UcxTransport(Transport):
    """A UCX endpoint to each rank, by the address of its worker; a message's tag is its sender.

    Messages move only while this rank waits, as in an MPI program: it polls the worker.
    """

    serialization = "none"

    def __init__(self, job: Job, options: Options) -> None:
        choose_interface(job, options)
        self._context = libucxx.UCXContext(feature_flags=(libucxx.Feature.TAG,))
        self._worker = libucxx.UCXWorker(self._context)
        self._progress = self._worker.progress
        self._tags = [libucxx.UCXXTag(tag) for tag in tags_of(job)]
        self._sent = self._tags[job.rank]
        addresses = job.allgather(bytes(memoryview(self._worker.address)))
        try:
            self._endpoints = [
                libucxx.UCXEndpoint.create_from_worker_address(
                    self._worker,
                    libucxx.UCXAddress.create_from_buffer(address),
                    endpoint_error_handling=False,
                )
                for address in addresses
            ]
        except libucxx.UCXError as error:
            raise not_connected(error) from error
        self._sends = [endpoint.tag_send for endpoint in self._endpoints]
        self._receives = [endpoint.tag_recv for endpoint in self._endpoints]

    def prepared(self, memory: Memory, binding: str) -> Any:
        return Array(memory.array)

    def sends(self, peer: int, messages: Sequence[Any]) -> BoundCall:
        return self._bound([partial(self._sends[peer], data, self._sent) for data in messages])

    def receives(self, peer: int, messages: Sequence[Any]) -> BoundCall:
        receive, tag = self._receives[peer], self._tags[peer]
        return self._bound([partial(receive, data, tag) for data in messages])

    def start_send(self, peer: int, data: Any) -> Any:
        return self._sends[peer](data, self._sent)

    def start_receive(self, peer: int, data: Any) -> Any:
        return self._receives[peer](data, self._tags[peer])

    def wait(self, started: Sequence[Any]) -> None:
        for request in started:
            self._finish(request)

    def describe(self) -> dict[str, str]:
        return versions()

    def _bound(self, starts: Sequence[BoundCall]) -> BoundCall:
        finish = self._finish
        if len(starts) == 1:
            (start,) = starts
            return lambda: finish(start())
        return lambda: self.wait([start() for start in starts])

    def _finish(self, request: Any) -> None:
        progress, polls = self._progress, 0
        while not request.completed:
            progress()
            polls += 1
            if polls > POLLS:
                os.sched_yield()  # the sender may wait for this core
        request.check_error()


class UcxBinding(TransportBinding):
    """``endpoint.tag_send(Array(array), tag)`` and ``tag_recv``, and the worker polled for them."""

    name = "ucxx"
    connect = UcxTransport


BINDING = UcxBinding

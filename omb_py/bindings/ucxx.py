"""UCX without MPI, through RAPIDS' ucxx: messages with tags between the workers of all ranks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import Any

from omb_py.bindings import BoundCall
from omb_py.bindings.transports import KEY_BYTES, Transport, TransportBinding, mark
from omb_py.core.errors import MissingPackageError, UnsupportedError, installing
from omb_py.core.job import Job
from omb_py.core.job.address import address_of, interface_of
from omb_py.core.memory import Memory
from omb_py.core.options import Options

os.environ.setdefault("UCX_WARN_UNUSED_ENV_VARS", "n")  # UCX warns of variables that ucxx sets
try:
    import ucxx
    from ucxx._lib import libucxx
    from ucxx._lib.arr import Array
except ModuleNotFoundError as error:
    raise MissingPackageError("binding ucxx", "ucxx", installing("ucxx")) from error
except OSError as error:
    raise UnsupportedError(
        f"ucxx cannot load its UCX next to that of the MPI library ({error}): import ucxx before "
        "mpi4py.MPI in programs, or start the ranks with torchrun"
    ) from error

TAG_BYTES = 8

POLLS = 1000
"""Number of polls of the worker for a message before other processes may run."""


def choose_interface(job: Job, options: Options) -> None:
    """Set the network of UCX, before its context is made: ``--interface``, or only loopback if all
    ranks are on one host; collective."""
    if options.interface is not None:
        os.environ.setdefault("UCX_NET_DEVICES", options.interface)
    elif (own := address_of(job, None)) == "127.0.0.1":
        os.environ.setdefault("UCX_NET_DEVICES", interface_of(own) or "all")


def tags_of(job: Job) -> list[int]:
    """Return the tag of each rank's messages, unique to this job: UCX takes any sender's."""
    key = job.bcast(os.urandom(KEY_BYTES))
    marks = (mark(key, b"", rank, rank) for rank in range(job.ranks))
    return [int.from_bytes(one[:TAG_BYTES], "little") for one in marks]


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
            raise UnsupportedError(
                f"UCX cannot connect the ranks ({error}): choose other transports by UCX_TLS, or "
                "--interface"
            ) from error
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
        return {
            "ucxx": ucxx.__version__,
            "ucx": ".".join(map(str, ucxx.get_ucx_version())),
            "ucx_tls": str(libucxx.get_current_options().get("TLS", "")),
            "ucx_net_devices": os.environ.get("UCX_NET_DEVICES", "all"),
        }

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

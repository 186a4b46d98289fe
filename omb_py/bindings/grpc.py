"""gRPC: each rank serves the others, which send it messages by calls."""

from __future__ import annotations

import hmac
import os
import queue
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # else it logs the end of each connection
import grpc

from omb_py.bindings import BoundCall
from omb_py.bindings.transports import KEY_BYTES, Transport, TransportBinding, mark
from omb_py.core.errors import OmbError
from omb_py.core.job import Job
from omb_py.core.job.address import address_of
from omb_py.core.options import Options

METHOD = "/omb_py.Messages/unary"
MARK = "omb-py-mark"
NUMBER_BYTES = 8
"""Before each message, since calls may overtake each other."""

CHANNEL = (("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1))


class Service(grpc.GenericRpcHandler):  # type: ignore[misc]
    """The method of a rank, for calls with the mark of another rank; others find none."""

    def __init__(self, handlers: Sequence[Any], marks: Sequence[str]) -> None:
        """``handlers`` and ``marks`` are those for the calls of each rank."""
        self._handlers = handlers
        self._marks = marks

    def service(self, details: Any) -> Any:
        given = dict(details.invocation_metadata).get(MARK, "")
        sender = given.partition(" ")[0]
        if not (sender.isdigit() and int(sender) < len(self._marks)):
            return None
        known = hmac.compare_digest(given.encode(), self._marks[int(sender)].encode())
        return self._handlers[int(sender)] if known and details.method == METHOD else None


class GrpcTransport(Transport):
    """A channel to each rank, and a server whose calls put messages into a queue per sender.

    A unary call for each message is answered when it has arrived. Messages are plain bytes, without
    protocol buffers; received data is copied to its place.
    """

    serialization = "none: gRPC's frames, identity serializers"

    def __init__(self, job: Job, options: Options) -> None:
        self._rank = job.rank
        self._arrived: list[queue.SimpleQueue[Any]] = [
            queue.SimpleQueue() for _ in range(job.ranks)
        ]
        address = address_of(job, options.interface)
        self._threads = ThreadPoolExecutor(2 * job.ranks + 2)
        self._server = grpc.server(self._threads, options=CHANNEL)
        key, rank, ranks = job.bcast(os.urandom(KEY_BYTES)), job.rank, range(job.ranks)
        marks = [_mark(key, sender, rank) for sender in ranks]
        own = [((MARK, _mark(key, rank, receiver)),) for receiver in ranks]
        handlers = [_handler(arrived) for arrived in self._arrived]
        self._server.add_generic_rpc_handlers((Service(handlers, marks),))
        port = self._server.add_insecure_port(f"{address}:0")
        self._server.start()
        places = [place.decode() for place in job.allgather(f"{address}:{port}".encode())]
        self._channels = [grpc.insecure_channel(place, options=CHANNEL) for place in places]
        self._sent = [0] * job.ranks
        self._early: list[dict[int, Any]] = [{} for _ in range(job.ranks)]
        self._received = [0] * job.ranks
        calls = [channel.unary_unary(METHOD) for channel in self._channels]
        self._unary = [partial(call, metadata=one) for call, one in zip(calls, own, strict=True)]
        self._futures = [
            partial(call.future, metadata=one) for call, one in zip(calls, own, strict=True)
        ]

    def sends(self, peer: int, messages: Sequence[memoryview]) -> BoundCall:
        if len(messages) > 1:
            return lambda: self.wait([self.start_send(peer, data) for data in messages])
        unary, (data,) = self._unary[peer], messages

        def call() -> None:
            try:
                unary(self._numbered(peer, data))
            except grpc.RpcError as error:
                raise self._lost(peer, error) from error

        return call

    def receives(self, peer: int, messages: Sequence[memoryview]) -> BoundCall:
        def call() -> None:
            for data in messages:
                self.receive(peer, data)

        return call

    def receive(self, peer: int, data: memoryview) -> None:
        """Receive the next message from a rank."""
        number = self._received[peer]
        self._received[peer] += 1
        early, message = self._early[peer], None
        while message is None:
            if number in early:
                message = early.pop(number)
            else:
                place, arrived = self._arrived[peer].get()
                early[place] = arrived
        if len(message) != len(data):
            raise OmbError(
                f"rank {peer} sent {len(message)} bytes where {len(data)} were expected: start all "
                "ranks with the same options"
            )
        data[:] = message

    def start_send(self, peer: int, data: memoryview) -> Any:
        return peer, self._futures[peer](self._numbered(peer, data))

    def start_receive(self, peer: int, data: memoryview) -> Any:
        return peer, data

    def wait(self, started: Sequence[Any]) -> None:
        for peer, what in started:
            if isinstance(what, memoryview):
                self.receive(peer, what)
        for peer, what in started:
            if isinstance(what, grpc.Future):
                try:
                    what.result()
                except grpc.RpcError as error:
                    raise self._lost(peer, error) from error

    def close(self) -> None:
        for channel in self._channels:
            channel.close()
        self._server.stop(None).wait()
        self._threads.shutdown()

    def describe(self) -> dict[str, str]:
        return {"grpc": grpc.__version__}

    def _numbered(self, peer: int, data: memoryview) -> bytes:
        """Return the next message to a rank."""
        number = self._sent[peer]
        self._sent[peer] += 1
        return b"".join((number.to_bytes(NUMBER_BYTES, "little"), data))

    def _lost(self, peer: int, error: Any) -> OmbError:
        return OmbError(f"gRPC cannot send to rank {peer} ({error.code().name}): see what ended it")


def _handler(arrived: queue.SimpleQueue[Any]) -> Any:
    """Return the handler of one rank's calls, which puts numbers and data into ``arrived``."""

    def take(message: bytes, context: Any) -> bytes:
        number = int.from_bytes(message[:NUMBER_BYTES], "little")
        arrived.put((number, memoryview(message)[NUMBER_BYTES:]))
        return b""

    return grpc.unary_unary_rpc_method_handler(take)


def _mark(key: bytes, sender: int, receiver: int) -> str:
    return f"{sender} {mark(key, b'', sender, receiver).hex()}"


class GrpcBinding(TransportBinding):
    """``stub(bytes(array))`` for each message."""

    name = "grpc"
    connect = GrpcTransport


BINDING = GrpcBinding

"""gRPC: each rank serves the others, which send it messages by calls."""

from __future__ import annotations

import hmac
import os
import queue
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # else it logs the end of each connection
import grpc

from omb_py.bindings import BoundCall
from omb_py.bindings.transports import KEY_BYTES, Transport, TransportBinding, mark
from omb_py.core.errors import OmbError
from omb_py.core.job import Job
from omb_py.core.job.network import address_of
from omb_py.core.options import Options

SERVICE = "omb_py.Messages"
MARK = "omb-py-mark"
NUMBER_BYTES = 8
"""Before each message of a call of its own, since calls may overtake each other."""

CHANNEL = (("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1))
END = object()


class Service(grpc.GenericRpcHandler):  # type: ignore[misc]
    """The methods of a rank, for calls with the mark of another rank; others find none."""

    def __init__(self, methods: Sequence[dict[str, Any]], marks: Sequence[str]) -> None:
        """``methods`` and ``marks`` are those for the calls of each rank."""
        self._methods = methods
        self._marks = marks

    def service(self, details: Any) -> Any:
        given = dict(details.invocation_metadata).get(MARK, "")
        sender = given.partition(" ")[0]
        if not (sender.isdigit() and int(sender) < len(self._marks)):
            return None
        known = hmac.compare_digest(given.encode(), self._marks[int(sender)].encode())
        return self._methods[int(sender)].get(details.method) if known else None


class GrpcTransport(Transport):
    """A channel to each rank, and a server whose calls put messages into a queue per sender.

    ``unary`` makes a call for each message, whose answer confirms its arrival; ``stream`` sends all
    messages to a rank in one call, and does not wait for any. Messages are plain bytes, without
    protocol buffers; received data is copied to its place.
    """

    serialization = "none: gRPC's frames, identity serializers"

    def __init__(self, job: Job, options: Options) -> None:
        self._rank = job.rank
        self._call = options.grpc_call or "unary"
        self._arrived: list[queue.SimpleQueue[Any]] = [
            queue.SimpleQueue() for _ in range(job.ranks)
        ]
        address = address_of(job, options.interface)
        self._threads = ThreadPoolExecutor(2 * job.ranks + 2)
        self._server = grpc.server(self._threads, options=CHANNEL)
        key, rank, ranks = job.bcast(os.urandom(KEY_BYTES)), job.rank, range(job.ranks)
        marks = [_mark(key, sender, rank) for sender in ranks]
        own = [((MARK, _mark(key, rank, receiver)),) for receiver in ranks]
        methods = [self._methods(arrived) for arrived in self._arrived]
        self._server.add_generic_rpc_handlers((Service(methods, marks),))
        port = self._server.add_insecure_port(f"{address}:0")
        self._server.start()
        places = [place.decode() for place in job.allgather(f"{address}:{port}".encode())]
        self._channels = [grpc.insecure_channel(place, options=CHANNEL) for place in places]
        self._sent = [0] * job.ranks
        self._early: list[dict[int, Any]] = [{} for _ in range(job.ranks)]
        self._received = [0] * job.ranks
        method = f"/{SERVICE}/{self._call}"
        calls = [channel.unary_unary(method) for channel in self._channels]
        self._unary = [partial(call, metadata=one) for call, one in zip(calls, own, strict=True)]
        self._futures = [
            partial(call.future, metadata=one) for call, one in zip(calls, own, strict=True)
        ]
        self._outgoing: list[queue.SimpleQueue[Any]] = []
        self._streams = []
        for peer, channel in enumerate(self._channels if self._call == "stream" else ()):
            outgoing: queue.SimpleQueue[Any] = queue.SimpleQueue()
            stream = channel.stream_unary(method)
            messages = iter(outgoing.get, END)
            self._streams.append(stream.future(messages, metadata=own[peer]))
            self._outgoing.append(outgoing)

    def sends(self, peer: int, messages: Sequence[memoryview]) -> BoundCall:
        if len(messages) > 1 or self._outgoing:
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
        if self._outgoing:
            self._outgoing[peer].put(bytes(data))
            return peer, None
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
        for outgoing in self._outgoing:
            outgoing.put(END)
        for channel in self._channels:
            channel.close()
        self._server.stop(None).wait()
        self._threads.shutdown()

    def describe(self) -> dict[str, str]:
        return {"grpc": grpc.__version__, "grpc_call": self._call}

    def _numbered(self, peer: int, data: memoryview) -> bytes:
        """Return the next message to a rank."""
        number = self._sent[peer]
        self._sent[peer] += 1
        return b"".join((number.to_bytes(NUMBER_BYTES, "little"), data))

    def _methods(self, arrived: queue.SimpleQueue[Any]) -> dict[str, Any]:
        """Return what takes the calls of one rank."""

        def take(message: bytes, context: Any) -> bytes:
            number = int.from_bytes(message[:NUMBER_BYTES], "little")
            arrived.put((number, memoryview(message)[NUMBER_BYTES:]))
            return b""

        def take_all(messages: Iterator[bytes], context: Any) -> bytes:
            for numbered in enumerate(messages):
                arrived.put(numbered)
            return b""

        return {
            f"/{SERVICE}/unary": grpc.unary_unary_rpc_method_handler(take),
            f"/{SERVICE}/stream": grpc.stream_unary_rpc_method_handler(take_all),
        }

    def _lost(self, peer: int, error: Any) -> OmbError:
        return OmbError(f"gRPC cannot send to rank {peer} ({error.code().name}): see what ended it")


def _mark(key: bytes, sender: int, receiver: int) -> str:
    return f"{sender} {mark(key, b'', sender, receiver).hex()}"


class GrpcBinding(TransportBinding):
    """``stub(bytes(array))`` for each message, or ``bytes(array)`` in one call for all."""

    name = "grpc"
    own_options = ("grpc_call", "interface")
    connect = GrpcTransport


BINDING = GrpcBinding

"""gRPC: each rank serves the others, which send it messages by calls."""

from __future__ import annotations

import hmac
import os
import queue
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # else it logs the end of each connection
import grpc

from omb_py.bindings import BoundCall
from omb_py.bindings.transports import KEY_BYTES, Transport, TransportBinding, mark
from omb_py.core.errors import OmbError
from omb_py.core.job.control import Control
from omb_py.core.job.network import address_of
from omb_py.core.options import Options

SERVICE = "omb_py.Messages"
RANK = "omb-py-rank"
NUMBER = "omb-py-number"
MARK = "omb-py-mark"
CHANNEL = (("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1))
END = object()


class Service(grpc.GenericRpcHandler):  # type: ignore[misc]
    """The methods of a rank, for calls with the mark of another rank; others find none."""

    def __init__(self, methods: dict[str, Any], marks: Sequence[str]) -> None:
        self._methods = methods
        self._marks = marks

    def service(self, details: Any) -> Any:
        given = dict(details.invocation_metadata)
        sender, shown = str(given.get(RANK, "")), str(given.get(MARK, ""))
        if not (sender.isdigit() and int(sender) < len(self._marks)):
            return None
        known = hmac.compare_digest(shown.encode(), self._marks[int(sender)].encode())
        return self._methods.get(details.method) if known else None


class GrpcTransport(Transport):
    """A channel to each rank, and a server whose calls put what arrives into a queue per sender.

    ``unary`` makes a call for each message, whose answer says that it has arrived; ``stream`` sends
    all messages to a rank in one call, and does not wait for any. Messages are plain bytes, without
    protocol buffers; what arrives is copied to its place.
    """

    serialization = "none: gRPC's frames, identity serializers"

    def __init__(self, control: Control, options: Options) -> None:
        self._rank = control.rank
        self._call = options.grpc_call or "unary"
        self._arrived: list[queue.SimpleQueue[Any]] = [
            queue.SimpleQueue() for _ in range(control.size)
        ]
        address = address_of(control, options.interface)
        self._threads = ThreadPoolExecutor(2 * control.size + 2)
        self._server = grpc.server(self._threads, options=CHANNEL)
        handlers = {
            "unary": grpc.unary_unary_rpc_method_handler(self._take),
            "stream": grpc.stream_unary_rpc_method_handler(self._take_all),
        }
        key, rank, ranks = control.bcast(os.urandom(KEY_BYTES)), control.rank, range(control.size)
        marks = [mark(key, b"", sender, rank).hex() for sender in ranks]
        self._marks = [mark(key, b"", rank, receiver).hex() for receiver in ranks]
        methods = {f"/{SERVICE}/{name}": handler for name, handler in handlers.items()}
        self._server.add_generic_rpc_handlers((Service(methods, marks),))
        port = self._server.add_insecure_port(f"{address}:0")
        self._server.start()
        places = [place.decode() for place in control.allgather(f"{address}:{port}".encode())]
        self._channels = [grpc.insecure_channel(place, options=CHANNEL) for place in places]
        self._sent = [0] * control.size
        self._early: list[dict[int, bytes]] = [{} for _ in range(control.size)]
        self._received = [0] * control.size
        method = f"/{SERVICE}/{self._call}"
        self._unary = [channel.unary_unary(method) for channel in self._channels]
        self._outgoing: list[queue.SimpleQueue[Any]] = []
        self._streams = []
        for peer, channel in enumerate(self._channels if self._call == "stream" else ()):
            outgoing: queue.SimpleQueue[Any] = queue.SimpleQueue()
            stream = channel.stream_unary(method)
            messages = iter(outgoing.get, END)
            self._streams.append(stream.future(messages, metadata=self._metadata(peer, 0)))
            self._outgoing.append(outgoing)

    def sends(self, peer: int, messages: Sequence[memoryview]) -> BoundCall:
        if len(messages) > 1 or self._outgoing:
            return lambda: self.wait([self.start_send(peer, data) for data in messages])
        unary, (data,) = self._unary[peer], messages

        def call() -> None:
            try:
                unary(bytes(data), metadata=self._numbered(peer))
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
        return peer, self._unary[peer].future(bytes(data), metadata=self._numbered(peer))

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

    def _metadata(self, peer: int, number: int) -> tuple[tuple[str, str], ...]:
        return ((RANK, str(self._rank)), (MARK, self._marks[peer]), (NUMBER, str(number)))

    def _numbered(self, peer: int) -> tuple[tuple[str, str], ...]:
        """The metadata of the next message, since calls may overtake each other."""
        number = self._sent[peer]
        self._sent[peer] += 1
        return self._metadata(peer, number)

    def _take(self, message: bytes, context: Any) -> bytes:
        sender, number = _origin(context)
        self._arrived[sender].put((number, message))
        return b""

    def _take_all(self, messages: Iterator[bytes], context: Any) -> bytes:
        sender, _ = _origin(context)
        for numbered in enumerate(messages):
            self._arrived[sender].put(numbered)
        return b""

    def _lost(self, peer: int, error: Any) -> OmbError:
        return OmbError(f"gRPC cannot send to rank {peer} ({error.code().name}): see what ended it")


def _origin(context: Any) -> tuple[int, int]:
    """Which rank sends, and the number of its message."""
    metadata = dict(context.invocation_metadata())
    return int(metadata[RANK]), int(metadata[NUMBER])


class GrpcBinding(TransportBinding):
    """``stub(bytes(array))`` for each message, or ``bytes(array)`` in one call for all."""

    name = "grpc"
    own_options = ("grpc_call", "interface")
    connect = GrpcTransport


BINDING = GrpcBinding

"""gRPC: each rank serves the others, which send it messages by calls."""

from __future__ import annotations

import os
import queue
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # else it logs the end of each connection
import grpc

from omb_py.bindings.transports import Transport, TransportBinding
from omb_py.core.errors import OmbError
from omb_py.core.job.control import Control
from omb_py.core.job.network import address_of
from omb_py.core.options import Options

SERVICE = "omb_py.Messages"
RANK = "omb-py-rank"
NUMBER = "omb-py-number"
CHANNEL = (("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1))
END = object()


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
        service = grpc.method_handlers_generic_handler(SERVICE, handlers)
        self._server.add_generic_rpc_handlers((service,))
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
        for channel in self._channels if self._call == "stream" else ():
            outgoing: queue.SimpleQueue[Any] = queue.SimpleQueue()
            stream = channel.stream_unary(method)
            messages = iter(outgoing.get, END)
            self._streams.append(stream.future(messages, metadata=self._metadata(0)))
            self._outgoing.append(outgoing)

    def send(self, peer: int, data: memoryview) -> None:
        if self._outgoing:
            self._outgoing[peer].put(bytes(data))
            return
        try:
            self._unary[peer](bytes(data), metadata=self._numbered(peer))
        except grpc.RpcError as error:
            raise self._lost(peer, error) from error

    def receive(self, peer: int, data: memoryview) -> None:
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

    def _metadata(self, number: int) -> tuple[tuple[str, str], ...]:
        return ((RANK, str(self._rank)), (NUMBER, str(number)))

    def _numbered(self, peer: int) -> tuple[tuple[str, str], ...]:
        """The metadata of the next message, since calls may overtake each other."""
        number = self._sent[peer]
        self._sent[peer] += 1
        return self._metadata(number)

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

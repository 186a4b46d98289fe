"""multiprocessing's connections: what Python's own process pools send by."""

from __future__ import annotations

import queue
from collections.abc import Sequence
from multiprocessing.connection import Connection
from threading import Event, Thread
from typing import Any

from omb_py.bindings import BoundCall
from omb_py.bindings.transports import Transport, TransportBinding
from omb_py.bindings.unix import connected
from omb_py.core.errors import OmbError
from omb_py.core.job.control import Control
from omb_py.core.options import Options


class Sender:
    """Sends in order, in a thread of its own, as multiprocessing.Queue does.

    Sends that block would wait for each other where both sides send more than the kernel holds.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._waiting: queue.SimpleQueue[tuple[Any, Event] | None] = queue.SimpleQueue()
        self.last: Event | None = None
        Thread(target=self._send, name="omb-py: sender", daemon=True).start()

    def add(self, data: Any) -> Event:
        """Send after what was added before; the event is set when it is sent."""
        self.last = Event()
        self._waiting.put((data, self.last))
        return self.last

    def end(self) -> None:
        """End the thread, when all is sent."""
        self._waiting.put(None)

    def _send(self) -> None:
        for data, sent in iter(self._waiting.get, None):
            try:
                self._connection.send_bytes(data)
            except OSError:
                return  # whoever receives from there finds out
            sent.set()


class Received:
    """A receive that is done when it is waited for."""

    def __init__(self, transport: ConnectionTransport, peer: int, data: memoryview) -> None:
        self._receive = transport.receive_next, peer, data
        self.done = False

    def finish(self) -> None:
        """Receive it, after those that were started before."""
        receive, peer, data = self._receive
        receive(peer, data)
        self.done = True


class ConnectionTransport(Transport):
    """A `multiprocessing.connection.Connection` to each rank, over a Unix domain socket."""

    serialization = "none: send_bytes, 4 bytes of length (12 from 2 GiB on), then the bytes"

    def __init__(self, control: Control, options: Options) -> None:
        streams = connected(control, "multiprocessing")
        self._connections = {peer: Connection(one.detach()) for peer, one in streams.items()}
        self._senders: dict[int, Sender] = {}
        self._receives: dict[int, list[Received]] = {peer: [] for peer in self._connections}

    def sends(self, peer: int, messages: Sequence[memoryview]) -> BoundCall:
        send, senders = self._connections[peer].send_bytes, self._senders

        def call() -> None:
            sender = senders.get(peer)
            if sender is not None and sender.last is not None:
                sender.last.wait()
                sender.last = None
            try:
                for data in messages:
                    send(data)
            except OSError as error:
                raise self._lost(peer) from error

        return call

    def receives(self, peer: int, messages: Sequence[memoryview]) -> BoundCall:
        waiting, receive = self._receives[peer], self.receive_next

        def call() -> None:
            if waiting:
                self.wait(list(waiting))
            for data in messages:
                receive(peer, data)

        return call

    def receive_next(self, peer: int, data: memoryview) -> None:
        """Receive the next message from a rank, whatever was started before."""
        try:
            count = self._connections[peer].recv_bytes_into(data)
        except (OSError, EOFError) as error:
            raise self._lost(peer) from error
        if count != len(data):
            raise OmbError(
                f"rank {peer} sent {count} bytes where {len(data)} were expected: start all ranks "
                "with the same options"
            )

    def start_send(self, peer: int, data: memoryview) -> Event:
        if peer not in self._senders:
            self._senders[peer] = Sender(self._connections[peer])
        return self._senders[peer].add(data)

    def start_receive(self, peer: int, data: memoryview) -> Received:
        received = Received(self, peer, data)
        self._receives[peer].append(received)
        return received

    def wait(self, started: Sequence[Event | Received]) -> None:
        for one in started:
            if isinstance(one, Received) and not one.done:
                waiting = next(found for found in self._receives.values() if one in found)
                while not one.done:
                    waiting.pop(0).finish()
        for one in started:
            if isinstance(one, Event):
                one.wait()

    def close(self) -> None:
        for sender in self._senders.values():
            sender.end()
        for connection in self._connections.values():
            connection.close()

    def _lost(self, peer: int) -> OmbError:
        return OmbError(f"the connection to rank {peer} is closed: see what ended it")


class MultiprocessingBinding(TransportBinding):
    """``connection.send_bytes(array)`` and ``connection.recv_bytes_into(array)``."""

    name = "multiprocessing"
    own_options = ()
    connect = ConnectionTransport


BINDING = MultiprocessingBinding

"""Stream sockets between all ranks, each pair connected once.

A message is only its bytes, since both sides know their number: bytes before them would shift the
payload against the pages of memory, which costs up to three times the time at 1 MiB. An empty
message is one byte. Sends and receives that block use blocking calls of the kernel; those that are
started are advanced while they are waited for, as far as the kernel takes and gives bytes without
blocking.
"""

from __future__ import annotations

import hmac
import os
import select
import selectors
import socket
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

from omb_py.bindings import BoundCall
from omb_py.bindings.transports import KEY_BYTES, Transport, mark
from omb_py.core.errors import OmbError
from omb_py.core.job import Job

NONCE_BYTES = 16
RANK_BYTES = 8
CONNECT_SECONDS = 60.0
STRANGERS = 128
"""Connections of others that may wait in addition to those of ranks."""


def filled(data: memoryview) -> memoryview:
    """Return the data to send or receive of a message: a byte of its own if it is empty."""
    return data if data.nbytes else memoryview(bytearray(1))


class SocketTransfer:
    """A message under way in one direction, and how many of its bytes are."""

    __slots__ = ("data", "done", "total")

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self.done = 0
        self.total = len(data)


class Connection:
    """A socket to one rank, with what is to be sent and received, in order."""

    def __init__(self, stream: socket.socket, peer: int) -> None:
        self.stream = stream
        self.sends: deque[SocketTransfer] = deque()
        self.receives: deque[SocketTransfer] = deque()
        self._peer = peer

    def advance(self) -> bool:
        """Send and receive what is possible now; whether anything was."""
        moved = False
        for waiting, sends in ((self.sends, True), (self.receives, False)):
            while waiting:
                transfer = waiting[0]
                rest, at_once = transfer.data[transfer.done :], socket.MSG_DONTWAIT
                try:
                    count = (
                        self.stream.send(rest, at_once)
                        if sends
                        else self.stream.recv_into(rest, 0, at_once)
                    )
                except BlockingIOError:
                    break
                except OSError as error:
                    raise self.lost(error) from error
                if count == 0:
                    raise self.lost(None)
                moved = True
                transfer.done += count
                if transfer.done == transfer.total:
                    waiting.popleft()
        return moved

    def receive(self, data: memoryview, done: int = 0) -> None:
        """Receive the bytes of a message after the first ``done``."""
        total = len(data)
        while done < total:
            count = self.stream.recv_into(data[done:])
            if count == 0:
                raise self.lost(None)
            done += count

    def lost(self, error: OSError | None) -> OmbError:
        """Return the error of a connection that has ended."""
        why = f" ({error.strerror})" if error else ""
        return OmbError(f"the connection to rank {self._peer} is closed{why}: see what ended it")


class SocketTransport(Transport):
    """Messages over a stream socket to each other rank, as bytes without a header."""

    serialization = "none"

    def __init__(self, streams: dict[int, socket.socket]) -> None:
        self._connections = {peer: Connection(stream, peer) for peer, stream in streams.items()}
        self._busy: dict[int, Connection] = {}
        """Those with transfers that were started: whatever blocks has to advance them, too."""

    def sends(self, peer: int, messages: Sequence[memoryview]) -> BoundCall:
        connection, busy = self._connections[peer], self._busy
        send, messages = connection.stream.sendall, [filled(data) for data in messages]

        def call() -> None:
            if busy:
                self.wait([self._started(peer, data, True) for data in messages])
                return
            try:
                for data in messages:
                    send(data)
            except OSError as error:
                raise connection.lost(error) from error

        return call

    def receives(self, peer: int, messages: Sequence[memoryview]) -> BoundCall:
        connection, busy = self._connections[peer], self._busy
        receive = connection.stream.recv_into
        sized = [(data, len(data)) for data in map(filled, messages)]

        def call() -> None:
            if busy:
                self.wait([self._started(peer, data, False) for data, _ in sized])
                return
            try:
                for data, size in sized:
                    count = receive(data)
                    if count < size:
                        if count == 0:
                            raise connection.lost(None)
                        connection.receive(data, count)
            except OSError as error:
                raise connection.lost(error) from error

        return call

    def exchange(
        self, to: int, outgoing: memoryview, source: int, incoming: memoryview
    ) -> BoundCall:
        connection, busy = self._connections[to], self._busy
        outgoing, incoming = filled(outgoing), filled(incoming)
        send, size, at_once = connection.stream.send, len(outgoing), socket.MSG_DONTWAIT
        receive = self.receives(source, [incoming])

        def call() -> None:
            done = 0
            if not busy:
                try:
                    done = send(outgoing, at_once)
                except BlockingIOError:
                    pass
                except OSError as error:
                    raise connection.lost(error) from error
                if done == size:
                    receive()
                    return
            both = self._started(to, outgoing, True), self._started(source, incoming, False)
            both[0].done = done
            self.wait(both)

        return call

    def start_send(self, peer: int, data: memoryview) -> SocketTransfer:
        return self._started(peer, filled(data), True)

    def start_receive(self, peer: int, data: memoryview) -> SocketTransfer:
        return self._started(peer, filled(data), False)

    def wait(self, started: Sequence[SocketTransfer]) -> None:
        busy = self._busy
        while not all(transfer.done == transfer.total for transfer in started):
            if sum(connection.advance() for connection in busy.values()) == 0:
                poll = select.poll()
                for connection in busy.values():
                    events = select.POLLOUT if connection.sends else 0
                    events |= select.POLLIN if connection.receives else 0
                    poll.register(connection.stream, events)
                poll.poll()
            for peer, connection in list(busy.items()):
                if not (connection.sends or connection.receives):
                    del busy[peer]

    def close(self) -> None:
        for connection in self._connections.values():
            connection.stream.close()

    def _started(self, peer: int, data: memoryview, sends: bool) -> SocketTransfer:
        transfer, connection = SocketTransfer(data), self._connections[peer]
        (connection.sends if sends else connection.receives).append(transfer)
        self._busy[peer] = connection
        return transfer


def mesh(job: Job, listener: socket.socket, address: str) -> dict[int, socket.socket]:
    """Return a socket to each other rank, by a listener that others reach at ``address``.

    Collective. Each rank connects to those below it, and proves by a key, which comes by ``job``
    and is not sent, that it belongs to this job. Others are not listened to. Raises `OmbError` if a
    rank cannot be reached.
    """
    key = job.bcast(os.urandom(KEY_BYTES))
    addresses = job.allgather(address.encode())
    streams = {}
    for peer in range(job.rank):
        stream = socket.socket(listener.family, socket.SOCK_STREAM)
        stream.settimeout(CONNECT_SECONDS)
        place = addresses[peer].decode()
        host, _, port = place.rpartition(":")
        try:
            stream.connect((host, int(port)))
            nonce = stream.recv(NONCE_BYTES, socket.MSG_WAITALL)
            stream.sendall(_greeting(key, nonce, job.rank, peer))
        except OSError as error:
            raise OmbError(
                f"rank {job.rank} cannot connect to rank {peer} at {place} "
                f"({error.strerror or error}): choose a network that joins all hosts by --interface"
            ) from error
        streams[peer] = stream
    with listener:
        streams |= _accepted(job, listener, key, address)
    for stream in streams.values():
        stream.settimeout(None)
    return streams


def _greeting(key: bytes, nonce: bytes, rank: int, to: int) -> bytes:
    """Return a rank's answer to another one's nonce."""
    return rank.to_bytes(RANK_BYTES, "little") + mark(key, nonce, rank, to)


def _accepted(
    job: Job, listener: socket.socket, key: bytes, address: str
) -> dict[int, socket.socket]:
    """Return a socket to each rank above this one; others who connect are ignored, then closed."""
    missing = set(range(job.rank + 1, job.ranks))
    found: dict[int, socket.socket] = {}
    length = len(_greeting(key, b"", 0, 0))
    deadline = time.monotonic() + CONNECT_SECONDS
    with selectors.DefaultSelector() as selector:
        listener.setblocking(False)
        selector.register(listener, selectors.EVENT_READ)
        while missing:
            ready = selector.select(max(0.0, deadline - time.monotonic()))
            if time.monotonic() > deadline:
                raise OmbError(
                    f"rank {min(missing)} did not connect to rank {job.rank} at {address} "
                    "(timed out): choose a network that joins all hosts by --interface"
                )
            for event, _ in ready:
                stream = event.fileobj
                assert isinstance(stream, socket.socket)
                if stream is listener:
                    _challenge(listener, selector)
                    continue
                nonce, answer = event.data
                if not _answered(stream, answer, length):
                    continue
                selector.unregister(stream)
                rank = int.from_bytes(answer[:RANK_BYTES], "little")
                expected = _greeting(key, nonce, rank, job.rank)
                if rank in missing and hmac.compare_digest(answer, expected):
                    found[rank] = stream
                    missing.remove(rank)
                else:
                    stream.close()
        for waiting in selector.get_map().values():
            if isinstance(waiting.fileobj, socket.socket) and waiting.fileobj is not listener:
                waiting.fileobj.close()
    return found


def _challenge(listener: socket.socket, selector: selectors.BaseSelector) -> None:
    """Accept a connection, and send a nonce to answer, which the selector keeps."""
    with suppress(OSError):
        stream, _ = listener.accept()
        stream.setblocking(False)
        nonce = os.urandom(NONCE_BYTES)
        selector.register(stream, selectors.EVENT_READ, (nonce, bytearray()))
        stream.sendall(nonce)


def _answered(stream: socket.socket, answer: bytearray, length: int) -> bool:
    """Add what has come to an answer of ``length`` bytes; whether no more comes."""
    try:
        part = stream.recv(length - len(answer))
    except BlockingIOError:
        return False
    except OSError:
        return True
    answer += part
    return not part or len(answer) == length

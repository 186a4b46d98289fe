"""Stream sockets between all ranks, each pair connected once.

A message is its length in 8 bytes, then its bytes, sent by one system call. Sends and receives that
block use blocking calls of the kernel; those that are started are advanced while they are waited
for, as far as the kernel takes and gives bytes without blocking.
"""

from __future__ import annotations

import hmac
import os
import select
import socket
import struct
from collections import deque
from collections.abc import Sequence

from omb_py.bindings.transports import Transport
from omb_py.core.errors import OmbError
from omb_py.core.job.control import Control

HEADER = struct.Struct("<q")
KEY_BYTES = 16
CONNECT_SECONDS = 60.0


class Transfer:
    """A message under way in one direction, and how many of its bytes, header included, are."""

    __slots__ = ("data", "done", "header", "total")

    def __init__(self, header: bytearray | bytes, data: memoryview) -> None:
        self.header = header
        self.data = data
        self.done = 0
        self.total = HEADER.size + len(data)

    def rest(self) -> list[memoryview]:
        """The memory of what is still to come."""
        if self.done < HEADER.size:
            return [memoryview(self.header)[self.done :], self.data]
        return [self.data[self.done - HEADER.size :]]

    @property
    def finished(self) -> bool:
        """Whether all is there."""
        return self.done == self.total


class Connection:
    """A socket to one rank, with what is to be sent and received, in order."""

    def __init__(self, stream: socket.socket, peer: int) -> None:
        self.stream = stream
        self.sends: deque[Transfer] = deque()
        self.receives: deque[Transfer] = deque()
        self._peer = peer

    def push(self, transfer: Transfer, flags: int = 0) -> bool:
        """Send some bytes; whether any could be."""
        try:
            transfer.done += self.stream.sendmsg(transfer.rest(), (), flags)
        except BlockingIOError:
            return False
        except OSError as error:
            raise self._lost(error) from error
        return True

    def pull(self, transfer: Transfer, flags: int = 0) -> bool:
        """Receive some bytes; whether there were any."""
        try:
            count = self.stream.recvmsg_into(transfer.rest(), 0, flags)[0]
        except BlockingIOError:
            return False
        except OSError as error:
            raise self._lost(error) from error
        if count == 0:
            raise self._lost(None)
        transfer.done += count
        if transfer.finished:
            (length,) = HEADER.unpack(transfer.header)
            if length != len(transfer.data):
                raise OmbError(
                    f"rank {self._peer} sent {length} bytes where {len(transfer.data)} were "
                    "expected: start all ranks with the same options"
                )
        return True

    def advance(self) -> bool:
        """Send and receive what is possible now; whether anything was."""
        moved = False
        for waiting, move in ((self.sends, self.push), (self.receives, self.pull)):
            while waiting and move(waiting[0], socket.MSG_DONTWAIT):
                moved = True
                if waiting[0].finished:
                    waiting.popleft()
        return moved

    def _lost(self, error: OSError | None) -> OmbError:
        why = f" ({error.strerror})" if error else ""
        return OmbError(f"the connection to rank {self._peer} is closed{why}: see what ended it")


class SocketTransport(Transport):
    """A connection to each other rank."""

    serialization = "none: 8 bytes of length, then the bytes"

    def __init__(self, streams: dict[int, socket.socket]) -> None:
        self._connections = {peer: Connection(stream, peer) for peer, stream in streams.items()}

    def send(self, peer: int, data: memoryview) -> None:
        connection = self._connections[peer]
        if connection.sends:
            self.wait([self.start_send(peer, data)])
            return
        transfer = Transfer(HEADER.pack(len(data)), data)
        while transfer.done < transfer.total:
            connection.push(transfer)

    def receive(self, peer: int, data: memoryview) -> None:
        connection = self._connections[peer]
        if connection.receives:
            self.wait([self.start_receive(peer, data)])
            return
        transfer = Transfer(bytearray(HEADER.size), data)
        while transfer.done < transfer.total:
            connection.pull(transfer)

    def start_send(self, peer: int, data: memoryview) -> Transfer:
        transfer = Transfer(HEADER.pack(len(data)), data)
        self._connections[peer].sends.append(transfer)
        return transfer

    def start_receive(self, peer: int, data: memoryview) -> Transfer:
        transfer = Transfer(bytearray(HEADER.size), data)
        self._connections[peer].receives.append(transfer)
        return transfer

    def wait(self, started: Sequence[Transfer]) -> None:
        while not all(transfer.done == transfer.total for transfer in started):
            busy = [one for one in self._connections.values() if one.sends or one.receives]
            if sum(connection.advance() for connection in busy) == 0:
                poll = select.poll()
                for connection in busy:
                    events = select.POLLOUT if connection.sends else 0
                    events |= select.POLLIN if connection.receives else 0
                    poll.register(connection.stream, events)
                poll.poll()

    def close(self) -> None:
        for connection in self._connections.values():
            connection.stream.close()


def mesh(control: Control, listener: socket.socket, address: str) -> dict[int, socket.socket]:
    """A socket to each other rank, by a listener of each rank that others reach at ``address``.

    Collective. Each rank connects to those below it, and shows that it belongs to this job.
    Raises `OmbError` where a rank cannot be reached.
    """
    key = control.bcast(os.urandom(KEY_BYTES))
    addresses = control.allgather(address.encode())
    streams = {}
    for peer in range(control.rank):
        stream = socket.socket(listener.family, socket.SOCK_STREAM)
        stream.settimeout(CONNECT_SECONDS)
        place = addresses[peer].decode()
        host, _, port = place.rpartition(":")
        try:
            stream.connect((host, int(port)) if listener.family != socket.AF_UNIX else place)
            stream.sendall(key + HEADER.pack(control.rank))
        except OSError as error:
            raise OmbError(
                f"rank {control.rank} cannot connect to rank {peer} at {place} "
                f"({error.strerror or error}): choose a network that joins all hosts by --interface"
            ) from error
        streams[peer] = stream
    listener.settimeout(CONNECT_SECONDS)
    while len(streams) < control.size - 1:
        try:
            stream, _ = listener.accept()
            stream.settimeout(CONNECT_SECONDS)
            greeting = stream.recv(KEY_BYTES + HEADER.size, socket.MSG_WAITALL)
        except OSError as error:
            raise OmbError(
                f"a rank did not connect to rank {control.rank} at {address} "
                f"({error.strerror or error}): choose a network that joins all hosts by --interface"
            ) from error
        if len(greeting) == KEY_BYTES + HEADER.size and hmac.compare_digest(
            greeting[:KEY_BYTES], key
        ):
            streams[HEADER.unpack_from(greeting, KEY_BYTES)[0]] = stream
        else:
            stream.close()
    listener.close()
    for stream in streams.values():
        stream.settimeout(None)
    return streams

"""TCP sockets of Python's own, without any library."""

from __future__ import annotations

import socket

from omb_py.bindings.transports import TransportBinding
from omb_py.bindings.transports.sockets import STRANGERS, SocketTransport, mesh
from omb_py.core.job import Job
from omb_py.core.job.address import address_of
from omb_py.core.options import Options


def connected(job: Job, options: Options) -> tuple[str, dict[int, socket.socket]]:
    """Return this rank's address, and a socket that sends at once to each rank; collective."""
    address = address_of(job, options.interface)
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.create_server((address, 0), family=family, backlog=job.ranks + STRANGERS)
    streams = mesh(job, listener, f"{address}:{listener.getsockname()[1]}")
    for stream in streams.values():
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return address, streams


class TcpTransport(SocketTransport):
    """TCP over the loopback interface, or the network that joins the hosts."""

    def __init__(self, job: Job, options: Options) -> None:
        self._address, streams = connected(job, options)
        super().__init__(streams)

    def describe(self) -> dict[str, str]:
        return {"address": self._address}


class TcpBinding(TransportBinding):
    """``socket.sendall(array)`` and ``recv_into`` over TCP, without Nagle's delay."""

    name = "tcp"
    connect = TcpTransport


BINDING = TcpBinding

"""Unix domain sockets: what processes of one host have without any library."""

from __future__ import annotations

import os
import socket

from omb_py.bindings.transports import TransportBinding
from omb_py.bindings.transports.sockets import STRANGERS, SocketTransport, mesh
from omb_py.core.errors import UnsupportedError
from omb_py.core.job.control import Control
from omb_py.core.options import Options


class UnixTransport(SocketTransport):
    """Stream sockets in Linux's abstract namespace, which leaves no files behind."""

    def __init__(self, control: Control, options: Options) -> None:
        super().__init__(connected(control, "unix"))


def connected(control: Control, binding: str) -> dict[int, socket.socket]:
    """A socket to each other rank, all on one host; collective, raises as `check_one_host`."""
    check_one_host(control, binding)
    name = f"\0omb-py {os.getpid()} {os.urandom(8).hex()}"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(name)
    listener.listen(control.size + STRANGERS)
    return mesh(control, listener, name)


def check_one_host(control: Control, binding: str) -> None:
    """Raise `UnsupportedError` where ranks are on several hosts; collective."""
    host = control.on_host()
    host.free()
    if host.size != control.size:
        raise UnsupportedError(
            f"binding {binding} connects processes of one host, and this job has several: use "
            "--binding tcp"
        )


class UnixBinding(TransportBinding):
    """``socket.sendall(array)`` and ``recv_into`` over Unix domain sockets."""

    name = "unix"
    own_options = ()
    connect = UnixTransport


BINDING = UnixBinding

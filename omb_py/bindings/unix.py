"""Unix domain sockets: what processes of one host have without any library."""

from __future__ import annotations

import os
import socket

from omb_py.bindings.transports import TransportBinding
from omb_py.bindings.transports.sockets import SocketTransport, mesh
from omb_py.core.errors import UnsupportedError
from omb_py.core.job.control import Control
from omb_py.core.options import Options


class UnixTransport(SocketTransport):
    """Stream sockets in Linux's abstract namespace, which leaves no files behind."""

    def __init__(self, control: Control, options: Options) -> None:
        check_one_host(control, "unix")
        name = f"\0omb-py {os.getpid()} {os.urandom(8).hex()}"
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(name)
        listener.listen(control.size)
        super().__init__(mesh(control, listener, name))


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
    """``socket.sendmsg([length, array])`` and ``recvmsg_into`` over Unix domain sockets."""

    name = "unix"
    own_options = ()
    connect = UnixTransport


BINDING = UnixBinding

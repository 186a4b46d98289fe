"""Data that this process sent over TCP, by the kernel's counts of its own connections.

Unlike the counters of a link these exclude other processes. Bytes are those of the streams, without
headers (tcpi_bytes_acked and its neighbours in tcp_info, linux/tcp.h; RFC 4898, tcpEStatsAppHC).
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias

ACKED = struct.Struct("=QQ")
ACKED_AT = 120
AGAIN = struct.Struct("=Q")
AGAIN_AT = 208
"""Offsets in tcp_info of the bytes acknowledged, received, and sent again."""

MOST = 1 << 20
INFO_BYTES = 512


@dataclass(frozen=True)
class ConnectionCounters:
    """Bytes of a process's connections: sent ``within`` its host and ``beyond``, received, and
    sent ``again``."""

    within: int = 0
    beyond: int = 0
    received: int = 0
    again: int = 0

    def row(self) -> dict[str, int]:
        """For a file."""
        return asdict(self)

    def __add__(self, other: ConnectionCounters) -> ConnectionCounters:
        mine, others = asdict(self), asdict(other)
        return ConnectionCounters(**{name: mine[name] + others[name] for name in mine})

    def __sub__(self, other: ConnectionCounters) -> ConnectionCounters:
        mine, others = asdict(self), asdict(other)
        return ConnectionCounters(**{name: max(0, mine[name] - others[name]) for name in mine})


Open: TypeAlias = Mapping[str, ConnectionCounters]
"""The traffic of each connection of a process so far."""


def connections(root: Path) -> Open | None:
    """Return all TCP connections of this process, None if the system does not show them."""
    folder = root / "proc" / "self" / "fd"
    try:
        numbers = [int(name) for name in os.listdir(folder)]
    except (OSError, ValueError):
        return None
    found: dict[str, ConnectionCounters] = {}
    for number in numbers[:MOST]:
        with contextlib.suppress(OSError):
            name = os.readlink(folder / str(number))
            if name.startswith("socket:"):
                found[name] = _of_socket(number)
    return found


def since(before: Open | None, after: Open | None) -> ConnectionCounters | None:
    """Return the traffic between two moments; connections closed between them are not counted."""
    if before is None or after is None:
        return None
    nothing = ConnectionCounters()
    return sum((now - before.get(name, nothing) for name, now in after.items()), nothing)


def _of_socket(number: int) -> ConnectionCounters:
    """Raise `OSError` for a socket that is no TCP connection."""
    with socket.socket(fileno=os.dup(number)) as one:
        info = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, INFO_BYTES)
        if len(info) < ACKED_AT + ACKED.size:
            raise OSError("a kernel that does not count")
        sent, received = ACKED.unpack_from(info, ACKED_AT)
        again = AGAIN.unpack_from(info, AGAIN_AT)[0] if len(info) >= AGAIN_AT + AGAIN.size else 0
        near = _is_here(one.family, one.getpeername()[0])
    return ConnectionCounters(sent if near else 0, 0 if near else sent, received, again)


@cache
def _is_here(family: int, address: str) -> bool:
    """Return whether an address is one of this host: only then can a socket be bound to it."""
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as one:
            one.bind((address, 0))
    except OSError:
        return False
    return True

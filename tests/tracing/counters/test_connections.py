"""TCP connections of a process, counted by the kernel: real ones, between a process and itself."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from omb_py.tracing.counters.connections import ConnectionCounters, connections, since

SENT = 3_000_000
ROOT = Path("/")


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Two ends of a connection over the loopback."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        one = socket.create_connection(server.getsockname())
        other, _ = server.accept()
        with one, other:
            yield one, other


def send(pair: tuple[socket.socket, socket.socket], nbytes: int) -> None:
    """Until all has arrived."""
    one, other = pair
    sender = threading.Thread(target=one.sendall, args=(bytes(nbytes),))
    sender.start()
    while nbytes:
        nbytes -= len(other.recv(1 << 20))
    sender.join()


def test_connection_counts_from_its_start(pair: tuple[socket.socket, socket.socket]) -> None:
    send(pair, 1000)
    before = connections(ROOT)
    send(pair, SENT)
    carried = since(before, connections(ROOT))
    assert carried is not None
    assert (carried.within, carried.beyond, carried.received) == (SENT, 0, SENT)


def test_a_connection_made_since_then_counts_whole(request: pytest.FixtureRequest) -> None:
    before = connections(ROOT)
    send(request.getfixturevalue("pair"), SENT)
    carried = since(before, connections(ROOT))
    assert carried is not None
    assert carried.within in (SENT, SENT + 1)  # a connection's beginning is a byte to the kernel


def test_other_sockets_and_files_are_none() -> None:
    before = connections(ROOT)
    one, other = socket.socketpair()
    with one, other, socket.socket(socket.AF_INET, socket.SOCK_DGRAM), socket.socket():
        one.sendall(bytes(100))
        assert connections(ROOT) == before


def test_where_they_are_not_shown_nothing_is_known(tmp_path: Path) -> None:
    assert connections(tmp_path) is None
    assert since(None, {}) is since({}, None) is None
    assert since({}, {"socket:[1]": ConnectionCounters(5, 6, 7, 8)}) == ConnectionCounters(
        5, 6, 7, 8
    )

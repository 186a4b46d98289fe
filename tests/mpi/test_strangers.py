"""Somebody else connects to what ranks listen at, before the rank that they wait for does."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from omb_py.bindings.transports.sockets import NONCE_BYTES, _greeting
from tests.conftest import Finished, own_temporary_folder
from tests.helpers.pace import slowness
from tests.helpers.waiting import wait_for

PROGRAM = Path(__file__).parent / "programs" / "slow_to_answer.py"
LOOPBACK = ("0100007F", "0000000000000000FFFF00000100007F")
"""127.0.0.1 in the kernel's tables, and as an address of IPv6."""
LISTENS = "0A"
WORDS = "-c -i 20 -x 2 -m 4:64 -M 67108864".split()

needs_grpc = pytest.mark.skipif(find_spec("grpc") is None, reason="grpcio is not installed")
needs_ucxx = pytest.mark.skipif(find_spec("ucxx") is None, reason="ucxx is not installed")


def tcp_listeners(process: int) -> list[tuple[str, int]]:
    """Addresses, as the kernel writes them, and ports at which a process listens."""
    own = set()
    for descriptor in Path(f"/proc/{process}/fd").iterdir():
        try:
            own.add(os.readlink(descriptor))
        except OSError:
            continue  # closed meanwhile
    found = []
    for version in ("tcp", "tcp6"):
        for line in Path(f"/proc/{process}/net/{version}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == LISTENS and f"socket:[{words[9]}]" in own:
                address, _, port = words[1].partition(":")
                found.append((address, int(port, 16)))
    return found


def loopback_listeners(process: int) -> list[int]:
    """Ports on loopback at which a process listens."""
    return [port for address, port in tcp_listeners(process) if address in LOOPBACK]


def knock(family: int, place: Any) -> list[socket.socket]:
    """Connections of a stranger: one is silent, one talks, others say that they are rank 1."""
    forged = _greeting(bytes(32), bytes(NONCE_BYTES), 1, 0)
    found = []
    for said in (b"", os.urandom(7), os.urandom(len(forged)), forged, b"omb-py 1 d 1 2"):
        stranger = socket.socket(family, socket.SOCK_STREAM)
        stranger.connect(place)
        stranger.settimeout(10)
        stranger.sendall(said)
        found.append(stranger)
    return found


def handed(stranger: socket.socket) -> bytes:
    """All that a stranger got until it was refused."""
    got = b""
    try:
        while part := stranger.recv(4096):
            got += part
    except ConnectionError:
        pass
    return got


class Waiting:
    """A job of two ranks, the first of which waits for the second one."""

    def __init__(self, mpi: str, folder: Path, binding: str) -> None:
        self._folder = folder
        self._temporary = own_temporary_folder()
        self._job = subprocess.Popen(
            [mpi, "-n", "2", sys.executable, str(PROGRAM), "bw", "--binding", binding, *WORDS],
            env=self._temporary.__enter__(),
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_for((folder / "0.pid").exists)
        self.root = int((folder / "0.pid").read_text())

    def listeners(self, mpis_own: tuple[int, int]) -> list[int]:
        """The first rank's ports on loopback, once it has some; it listens nowhere else."""
        inside, outside = mpis_own
        places: list[int] = wait_for(lambda: more_than(inside, loopback_listeners(self.root)))
        assert len(tcp_listeners(self.root)) - len(places) == outside
        return places

    def go(self) -> Finished:
        """Let the second rank connect, and wait for the end."""
        began = time.monotonic()
        (self._folder / "go").touch()
        out, error = self._job.communicate(timeout=60)
        self._temporary.__exit__(None, None, None)
        return Finished(self._job.returncode, out, error, time.monotonic() - began)


@pytest.fixture
def mpis_own(mpi: str, tmp_path: Path) -> tuple[int, int]:
    """How many sockets MPI itself listens with on loopback, and elsewhere."""
    (tmp_path / "mpi").mkdir()
    job = Waiting(mpi, tmp_path / "mpi", "buffer")
    wait_for((tmp_path / "mpi" / "0.running").exists)
    inside = len(loopback_listeners(job.root))
    outside = len(tcp_listeners(job.root)) - inside
    job.go()
    return inside, outside


def more_than(count: int, ports: list[int]) -> list[int]:
    """Ports, if there are more than so many."""
    return ports if len(ports) > count else []


def ended_right(done: Finished) -> None:
    assert (done.code, done.out.count("Pass")) == (0, 5), done.err
    assert done.seconds < 55 * slowness()  # without CONNECT_SECONDS for a silent stranger


@pytest.mark.long
@pytest.mark.parametrize("binding", ["tcp", "asyncio"])
def test_tcp_listener_with_strangers_refuses_them(
    mpi: str, tmp_path: Path, mpis_own: tuple[int, int], binding: str
) -> None:
    job = Waiting(mpi, tmp_path, binding)
    places = job.listeners(mpis_own)
    strangers = [one for port in places for one in knock(socket.AF_INET, ("127.0.0.1", port))]
    ended_right(job.go())
    assert max(map(len, map(handed, strangers))) <= NONCE_BYTES


@pytest.mark.long
@needs_grpc
def test_grpc_server_with_strangers_refuses_them(
    mpi: str, tmp_path: Path, mpis_own: tuple[int, int]
) -> None:
    import grpc

    from omb_py.bindings.grpc import MARK, METHOD

    job = Waiting(mpi, tmp_path, "grpc")
    places = job.listeners(mpis_own)
    marks = ("1", "1 " + 64 * "0", "-1 ", "7 x")
    codes = []
    for port in places:
        knock(socket.AF_INET, ("127.0.0.1", port))
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            send = channel.unary_unary(METHOD)
            message = bytes(8) + b"x" * 4
            for given in ((), *(((MARK, one),) for one in marks)):
                with pytest.raises(grpc.RpcError) as failure:
                    send(message, 10, metadata=given)
                codes.append(failure.value.code())
    ended_right(job.go())
    assert codes.count(grpc.StatusCode.UNIMPLEMENTED) == 5, codes


@needs_ucxx
def test_ucx_worker_with_strangers_refuses_them(
    mpi: str, tmp_path: Path, mpis_own: tuple[int, int]
) -> None:
    job = Waiting(mpi, tmp_path, "ucxx")
    places = job.listeners(mpis_own)
    for port in places:
        knock(socket.AF_INET, ("127.0.0.1", port))
    ended_right(job.go())

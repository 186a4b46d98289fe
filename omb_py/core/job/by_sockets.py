"""Ranks that were started without MPI, kept together by TCP.

``torchrun``, and whoever sets the same variables by hand, tells each process its RANK, how many
there are (WORLD_SIZE), and where rank 0 is (MASTER_ADDR, MASTER_PORT):
https://docs.pytorch.org/docs/stable/elastic/run.html. Every rank has two connections to rank 0:
one for what is agreed, and one on which nothing comes until a rank ends the job or dies.
"""

from __future__ import annotations

import os
import selectors
import socket
import sys
import time
from threading import Thread
from typing import Any, NoReturn

from omb_py.core.dataclass import dataclass
from omb_py.core.errors import OneRankError, UsageError
from omb_py.core.job.control import Control
from omb_py.core.mpi import launcher

VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
AGENT_STORE = "TORCHELASTIC_USE_AGENT_STORE"
"""Set to True where torchrun itself serves a key-value store at MASTER_PORT."""

CONNECT_SECONDS = 60.0
RETRY_SECONDS = 0.05
GREETING = b"omb-py 1"
LENGTH_BYTES = 8
LONGEST = 1 << 32
"""Bytes of one piece of data; a longer one was not sent by omb-py."""

ENDED = b"\0"
"""On the second connection: this rank leaves in order. Any other byte is an exit code."""


@dataclass(frozen=True)
class Environment:
    """What the environment says of a process started without MPI."""

    rank: int
    size: int
    address: str
    port: int
    by_agent: bool = False


def environment() -> Environment | None:
    """The environment's, None where it names no rank or an MPI launcher started this process.

    Raises `UsageError` where it contradicts itself.
    """
    if launcher.by_mpi() and not launcher.by_torchrun():
        return None
    given = {name: os.environ[name] for name in VARIABLES if os.environ.get(name)}
    if "RANK" not in given or "WORLD_SIZE" not in given:
        return None
    if missing := [name for name in VARIABLES if name not in given]:
        raise UsageError(
            f"RANK and WORLD_SIZE are set, {' and '.join(missing)} not: set all four for each "
            "process, or start with torchrun or mpiexec"
        )
    numbers = {}
    for name in ("RANK", "WORLD_SIZE", "MASTER_PORT"):
        if not (given[name].isascii() and given[name].isdigit()):
            raise UsageError(f"{name}={given[name]} is no number: set it to one")
        numbers[name] = int(given[name])
    rank, size = numbers["RANK"], numbers["WORLD_SIZE"]
    if rank >= size:
        raise UsageError(f"RANK={rank} is not below WORLD_SIZE={size}: number ranks from 0")
    by_agent = os.environ.get(AGENT_STORE) == "True"
    return Environment(rank, size, given["MASTER_ADDR"], numbers["MASTER_PORT"], by_agent)


class SocketControl(Control):
    """Ranks connected to rank 0 by TCP."""

    def __init__(self, found: Environment) -> None:
        """Connect; raises `OmbError` where that cannot be."""
        self.rank = found.rank
        self.size = found.size
        self._by = "torchrun" if launcher.by_torchrun() else "environment"
        self._leaving = False
        self._host: HostControl | None = None
        if self.rank == 0:
            listener = _listen(found)
            self._peers, self._watched = self._accept(listener)
        else:
            place = _place_of_root(found)
            self._peers = [_connect(place, found, b"d")]
            self._watched = [_connect(place, found, b"w")]
        Thread(target=self._watch, name="omb-py: end of other ranks", daemon=True).start()

    @property
    def communicator(self) -> SocketControl:
        return self

    def gather(self, data: bytes) -> list[bytes]:
        if self.rank:
            self._checked(_send, self._peers[0], data)
            return []
        return [data, *(self._checked(_receive, peer) for peer in self._peers)]

    def bcast(self, data: bytes, root: int = 0) -> bytes:
        if root:
            gathered = self.gather(data if self.rank == root else b"")
            data = gathered[root] if gathered else b""
        if self.rank:
            return bytes(self._checked(_receive, self._peers[0]))
        for peer in self._peers:
            self._checked(_send, peer, data)
        return data

    def on_host(self) -> Control:
        if self._host is None:
            hosts = self.allgather(_host().encode())
            same = [rank for rank, host in enumerate(hosts) if host == hosts[self.rank]]
            self._host = HostControl(self, same)
        return self._host

    def address(self) -> str | None:
        return str(self._peers[0].getsockname()[0]) if self._peers else None

    def abort(self, exit_code: int) -> NoReturn:
        self._end(exit_code)

    def close(self) -> None:
        self._leaving = True
        self.barrier()
        for peer in self._peers:
            peer.close()

    def describe(self) -> dict[str, str]:
        return {"started_by": self._by}

    def _accept(self, listener: socket.socket) -> tuple[list[socket.socket], list[socket.socket]]:
        """Both connections of each other rank, in order."""
        found: dict[tuple[bytes, int], socket.socket] = {}
        deadline = time.monotonic() + CONNECT_SECONDS
        while len(found) < 2 * (self.size - 1):
            listener.settimeout(max(0.01, deadline - time.monotonic()))
            try:
                peer, _ = listener.accept()
            except TimeoutError:
                missing = {*range(1, self.size)} - {rank for _, rank in found}
                raise OneRankError(
                    f"after {CONNECT_SECONDS:.0f} s {len(missing)} of {self.size} ranks had not "
                    f"connected to rank 0, the first of them rank {min(missing, default=0)}: start "
                    "all, with the same WORLD_SIZE, MASTER_ADDR and MASTER_PORT"
                ) from None
            if (key := self._greeted(peer)) is not None and key not in found:
                found[key] = peer
            else:
                peer.close()
        listener.close()
        kinds = ([found[kind, rank] for rank in range(1, self.size)] for kind in (b"d", b"w"))
        data, watched = kinds
        return data, watched

    def _greeted(self, peer: socket.socket) -> tuple[bytes, int] | None:
        """Which connection of which rank this is; None for one that is not a rank of this job."""
        peer.settimeout(CONNECT_SECONDS)
        try:
            greeting = _receive(peer, longest=64)
        except OSError:
            return None
        peer.settimeout(None)
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        words = greeting.removeprefix(GREETING).split()
        if len(words) != 3 or not (words[1].isdigit() and words[2].isdigit()):
            return None
        if int(words[2]) != self.size:
            raise OneRankError(
                f"rank {int(words[1])} has WORLD_SIZE={int(words[2])}, and rank 0 has {self.size}: "
                "set the same for all"
            )
        return words[0], int(words[1])

    def _watch(self) -> None:
        """End this process when another rank ends the job, or is gone without a word."""
        selector = selectors.DefaultSelector()
        for watched in self._watched:
            selector.register(watched, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select():
                peer: Any = key.fileobj
                try:
                    said = peer.recv(1)
                except OSError:
                    said = b""
                if said not in (b"", ENDED):
                    self._end(said[0])
                if self._leaving or said == ENDED:
                    selector.unregister(peer)
                    continue
                rank = self._watched.index(peer) + 1 if self.rank == 0 else 0
                text = f"omb-py: rank {rank} ended without saying why: see what stopped it"
                if self.rank < 2:  # rank 0, or the first of those that lose it
                    print(text, file=sys.stderr, flush=True)
                self._end(1)

    def _end(self, exit_code: int) -> NoReturn:
        self._leaving = True
        for peer in self._watched:
            try:
                peer.sendall(bytes([exit_code]))
            except OSError:
                continue
        os._exit(exit_code)

    def _checked(self, transfer: Any, *arguments: Any) -> Any:
        """A transfer; where the other side is gone, the second connection ends this process."""
        try:
            return transfer(*arguments)
        except OSError:
            time.sleep(launcher.LAUNCHER_SECONDS)
            self._end(1)


class HostControl(Control):
    """Some of the ranks of a `SocketControl`; all of its ranks call the methods together."""

    def __init__(self, whole: SocketControl, members: list[int]) -> None:
        self._whole = whole
        self._members = members
        self.rank = members.index(whole.rank)
        self.size = len(members)

    @property
    def communicator(self) -> HostControl:
        return self

    def gather(self, data: bytes) -> list[bytes]:
        found = self.allgather(data)
        return [] if self.rank else found

    def bcast(self, data: bytes, root: int = 0) -> bytes:
        return self.allgather(data)[root]

    def allgather(self, data: bytes) -> list[bytes]:
        found = self._whole.allgather(data)
        return [found[member] for member in self._members]

    def on_host(self) -> HostControl:
        return self

    def abort(self, exit_code: int) -> NoReturn:
        self._whole.abort(exit_code)


def _host() -> str:
    """What the processes of one host have in common, also where names are the same."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            identity = file.read().strip()
    except OSError:
        identity = ""
    return f"{os.uname().nodename} {identity}"


def _listen(found: Environment) -> socket.socket:
    """Rank 0's socket, which the others can find."""
    port = 0 if found.by_agent else found.port
    family = socket.AF_INET6 if ":" in found.address else socket.AF_INET
    try:
        listener = socket.create_server(("", port), family=family, backlog=2 * found.size)
    except OSError as error:
        raise OneRankError(
            f"rank 0 cannot listen at MASTER_PORT={port} ({error.strerror}): choose another port"
        ) from error
    if found.by_agent:
        _agent_store(found).set(_key(), str(listener.getsockname()[1]))
    return listener


def _place_of_root(found: Environment) -> tuple[str, int]:
    if not found.by_agent:
        return found.address, found.port
    return found.address, int(_agent_store(found).get(_key()))


def _agent_store(found: Environment) -> Any:
    """torchrun's own key-value store."""
    from datetime import timedelta

    from torch.distributed import TCPStore

    patience = timedelta(seconds=CONNECT_SECONDS)
    return TCPStore(found.address, found.port, None, False, patience)


def _key() -> str:
    return f"omb-py {os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}"


def _connect(place: tuple[str, int], found: Environment, kind: bytes) -> socket.socket:
    """A connection to rank 0, which may not listen yet."""
    deadline = time.monotonic() + CONNECT_SECONDS
    while True:
        try:
            peer = socket.create_connection(place, timeout=CONNECT_SECONDS)
            break
        except OSError as error:
            if time.monotonic() > deadline or isinstance(error, socket.gaierror):
                raise OneRankError(
                    f"cannot reach rank 0 at {place[0]}:{place[1]} ({error.strerror or error}): "
                    "check MASTER_ADDR and MASTER_PORT, and that rank 0 runs"
                ) from error
            time.sleep(RETRY_SECONDS)
    peer.settimeout(None)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    _send(peer, b" ".join([GREETING, kind, b"%d" % found.rank, b"%d" % found.size]))
    return peer


def _send(peer: socket.socket, data: bytes) -> None:
    peer.sendall(len(data).to_bytes(LENGTH_BYTES, "little") + data)


def _receive(peer: socket.socket, longest: int = LONGEST) -> bytes:
    length = int.from_bytes(_read(peer, LENGTH_BYTES), "little")
    if length > longest:
        raise OSError("this is no data of omb-py")
    return bytes(_read(peer, length))


def _read(peer: socket.socket, length: int) -> bytearray:
    data = bytearray(length)
    view, done = memoryview(data), 0
    while done < length:
        count = peer.recv_into(view[done:])
        if count == 0:
            raise OSError("the other side has closed the connection")
        done += count
    return data

"""The traffic of a program: what it requested of MPI, and what links carried meanwhile."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import Run, rows_in_text, succeeded

Rows = list[dict[str, str]]

MIB = 1 << 20
CALLS = 10

ALLREDUCES = f"""
from mpi4py import MPI
import numpy as np
vector = np.ones({MIB} // 8)
for _ in range({CALLS}):
    MPI.COMM_WORLD.Allreduce(vector, np.empty_like(vector))
"""

PERSISTENT = f"""
from mpi4py import MPI
import numpy as np
vector = np.ones({MIB} // 8)
comm = MPI.COMM_WORLD
request = comm.Send_init(vector, 1) if comm.rank == 0 else comm.Recv_init(vector, 0)
for number in range({CALLS}):
    if number % 2:
        request.Start()
    else:
        MPI.Prequest.Startall([request])
    request.Wait()
request.Free()
"""

MANY_THINGS = """
from mpi4py import MPI
import numpy as np
world = MPI.COMM_WORLD
for number in range(20):
    part = world.Split(world.rank % 2, world.rank)
    copy = part.Dup()
    copy.Allreduce(np.ones(1000), np.empty(1000))
    part.Free()
    copy.Free()
for number in range(5):
    if world.rank == 0:
        world.Send(np.ones(1000), 1)
    elif world.rank == 1:
        world.Recv(np.empty(1000), 0)
for root in range(world.size):
    world.Bcast(np.ones(1000), root)
world.Ibarrier().Wait()
window = MPI.Win.Allocate(8000, 1, comm=world)
window.Fence()
if world.rank == 0:
    window.Put(np.ones(1000), 3)
window.Fence()
window.Free()
print("done")
"""


@pytest.fixture
def profiled(mpiexec: Run, omb_py: Run, tmp_path: Path) -> Callable[..., Rows]:
    """``profiled(ranks, program)``: the tables of a program that ran well."""

    def start(ranks: int, program: str, *options: str, **environment: str) -> Rows:
        (tmp_path / "program.py").write_text(program)
        words = ("profile", "--traffic", "--force", "--folder", "run", *options, "program.py")
        done = succeeded(mpiexec(ranks, *words, **environment))
        assert done.out.count("done") == program.count("done") * ranks
        shown = succeeded(omb_py("traffic", "run", "--format", "csv"))
        return rows_in_text(shown.out)

    return start


def items(rows: Rows, what: str) -> Rows:
    """The rows of what was asked for."""
    return [row for row in rows if row["table"] == "items" and row["what"] == what]


def test_whatever_a_program_does_it_ends_well(profiled: Callable[..., Rows]) -> None:
    rows = profiled(4, MANY_THINGS)
    (sends,) = items(rows, "messages of the program")
    (puts,) = items(rows, "accesses to windows")
    (bcast,) = items(rows, "MPI_Bcast")
    assert (sends["calls"], sends["asked_bytes"], puts["asked_bytes"]) == ("5", "40000", "8000")
    assert (bcast["calls"], bcast["asked_bytes"]) == ("4", str(4 * 4 * 8000))


def test_killed_rank_leaves_its_first_reading(mpiexec: Run, omb_py: Run, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import os\nfrom mpi4py import MPI\n"
        "if MPI.COMM_WORLD.rank == 1: os.kill(os.getpid(), 9)\nMPI.COMM_WORLD.Barrier()\n"
    )
    assert mpiexec(2, "profile", "--traffic", "--folder", "run", "program.py").code != 0
    done = succeeded(omb_py("traffic", "run"))
    assert "did not come to the end" in done.out
    assert "Traceback" not in done.err


def test_what_persistent_requests_send_was_asked_for(profiled: Callable[..., Rows]) -> None:
    rows = profiled(2, PERSISTENT)
    (row,) = items(rows, "messages of the program")
    assert (row["calls"], row["asked_bytes"]) == ("10", str(CALLS * MIB))
    assert row["between_hosts_bytes"] == "0"


@pytest.mark.long
def test_links_count_what_others_send_too(profiled: Callable[..., Rows]) -> None:
    with own_stream(64 * MIB):
        rows = profiled(4, ALLREDUCES)
    (loopback,) = [row for row in rows if (row["table"], row["link"]) == ("links", "lo")]
    assert int(loopback["sent_bytes"]) > 2 * MIB
    (allreduce,) = items(rows, "MPI_Allreduce")
    assert (allreduce["calls"], allreduce["between_hosts_bytes"]) == (str(CALLS), "0")


@contextmanager
def own_stream(nbytes: int) -> Iterator[None]:
    """So many bytes a second over the loopback meanwhile."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        one = socket.create_connection(server.getsockname())
        other, _ = server.accept()

        def send() -> None:
            part = bytes(MIB)
            while not over.wait(MIB / nbytes):
                one.sendall(part)
            one.close()

        def receive() -> None:
            while other.recv(MIB):
                pass

        threads = [threading.Thread(target=send), threading.Thread(target=receive)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            over.set()
            for thread in threads:
                thread.join()
            other.close()

"""What the library moves for a program, and the algorithms that it shows: counted, never timed."""

from __future__ import annotations

import csv
import io
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from omb_py.algorithms.openmpi import LIBRARY
from omb_py.tracing.counters import kernel
from tests.conftest import Finished
from tests.mpi.vendor import VENDOR

Command = Callable[..., Finished]
Rows = list[dict[str, str]]

MIB = 1 << 20
CALLS = 10

counted = pytest.mark.skipif(VENDOR != "Open MPI", reason=f"{VENDOR} counts no messages")

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
assert world.allreduce(1) == world.size
print("done")
"""


@pytest.fixture
def profiled(mpiexec: Command, omb_py: Command, tmp_path: Path) -> Callable[..., Rows]:
    """``profiled(ranks, program)``: the tables of a program that ran well."""

    def start(ranks: int, program: str, *options: str, **environment: str) -> Rows:
        (tmp_path / "program.py").write_text(program)
        words = ("profile", "--traffic", "--force", "--folder", "run", *options, "program.py")
        done = mpiexec(ranks, *words, **environment)
        assert done.code == 0, done.err
        assert done.out.count("done") == program.count("done") * ranks
        shown = omb_py("traffic", "run", "--format", "csv")
        assert shown.code == 0, shown.err
        return list(csv.DictReader(io.StringIO(shown.out)))

    return start


def items(rows: Rows, what: str) -> Rows:
    """The rows of what was asked for."""
    return [row for row in rows if row["table"] == "items" and row["what"] == what]


@counted
@pytest.mark.parametrize(
    ("word", "sent_by_0"),
    [
        ("linear", {1: (10, 10 * MIB), 2: (10, 10 * MIB), 3: (10, 10 * MIB)}),
        ("recursive_doubling", {1: (10, 10 * MIB), 2: (10, 10 * MIB)}),
        ("ring", {1: (60, 15 * MIB)}),
        ("rabenseifner", {1: (20, 10 * MIB), 2: (20, 5 * MIB)}),
    ],
)
def test_messages_show_the_algorithm(
    profiled: Callable[..., Rows], tmp_path: Path, word: str, sent_by_0: dict[int, tuple[int, int]]
) -> None:
    algorithm = LIBRARY.algorithm("allreduce", word)
    rows = profiled(4, ALLREDUCES, **LIBRARY.variables("allreduce", algorithm))
    (row,) = items(rows, "MPI_Allreduce")
    assert row["algorithm"] == word.replace("_", " ")
    assert (row["calls"], row["call_bytes"]) == (str(CALLS), str(MIB))
    peers = {
        int(row["to"]): (int(row["moved_messages"]), int(row["moved_bytes"]))
        for row in rows
        if row["table"] == "peers" and row["from"] == "0"
    }
    assert peers == sent_by_0
    (together,) = items(rows, "in all")
    assert together["moved_bytes"] == row["moved_bytes"]
    seen = json.loads((tmp_path / "run" / "traffic-000000.json").read_text())["collectives"]
    assert [len(kind["looks"]) for kind in seen] == [3]


def test_whatever_a_program_does_it_ends_well(
    profiled: Callable[..., Rows], tmp_path: Path
) -> None:
    """Communicators that were freed have been fatal to the library's own count."""
    rows = profiled(4, MANY_THINGS)
    (sends,) = items(rows, "messages of the program")
    (puts,) = items(rows, "accesses to windows")
    (bcast,) = items(rows, "MPI_Bcast")
    assert (sends["asked_bytes"], puts["asked_bytes"]) == ("40000", "8000")
    assert (bcast["calls"], bcast["asked_bytes"]) == ("4", str(4 * 4 * 8000))
    if VENDOR == "Open MPI":
        assert (sends["moved_messages"], sends["moved_bytes"]) == ("5", "40000")
        assert bcast["algorithm"] not in ("", "none known", "not sampled")
        # on two ranks the messages of two algorithms are the same
        parts = {row["algorithm"] for row in items(rows, "MPI_Allreduce")}
        assert len(parts) == 1
        assert "none known" not in parts
    else:
        assert (sends["moved_bytes"], bcast["algorithm"]) == ("", "not reported")
        said = (tmp_path / "run" / "traffic-000000.json").read_text()
        assert "as it was built, its MPI_T has no performance variable" in said


def test_what_a_rank_writes_to_storage_is_counted_by_the_kernel(
    profiled: Callable[..., Rows], tmp_path: Path
) -> None:
    before = kernel.storage(Path("/"))
    assert before is not None
    with (tmp_path / "own").open("wb") as own:
        own.write(bytes(MIB))
        own.flush()
        os.fsync(own.fileno())
    after = kernel.storage(Path("/"))
    assert after is not None
    if after[1] - before[1] < MIB:
        pytest.skip("the file system of temporary files is in memory")
    program = f"""
from mpi4py import MPI
file = MPI.File.Open(MPI.COMM_WORLD, "data", MPI.MODE_CREATE | MPI.MODE_WRONLY)
if MPI.COMM_WORLD.rank == 1:
    file.Write_at(0, bytes(8 * {MIB}))
file.Close()
print("done")
"""
    rows = [row for row in profiled(2, program) if row["table"] == "files"]
    assert [(row["from"], row["what"], row["asked_bytes"]) for row in rows] == [
        ("1", "written", str(8 * MIB))
    ]
    assert 8 * MIB <= int(rows[0]["moved_bytes"]) < 10 * MIB  # its record is written, too


@counted
def test_another_communicator_with_an_old_handle_is_not_mixed_up(
    profiled: Callable[..., Rows],
) -> None:
    program = """
from mpi4py import MPI
import numpy as np
world = MPI.COMM_WORLD
for number in range(12):
    part = world.Split(world.rank // 2 if number % 2 else world.rank % 2)
    part.Bcast(np.ones(1000 + number), 1)
    part.Free()
print("done")
"""
    rows = items(profiled(4, program), "MPI_Bcast")
    assert sum(int(row["calls"]) for row in rows) == 24
    assert {row["moved_messages"] for row in rows} == {"2"}
    assert "none known" not in {row["algorithm"] for row in rows}


def test_a_rank_that_is_killed_leaves_what_was_read_at_the_beginning(
    mpiexec: Command, omb_py: Command, tmp_path: Path
) -> None:
    (tmp_path / "program.py").write_text(
        "import os\nfrom mpi4py import MPI\n"
        "if MPI.COMM_WORLD.rank == 1: os.kill(os.getpid(), 9)\nMPI.COMM_WORLD.Barrier()\n"
    )
    assert mpiexec(2, "profile", "--traffic", "--folder", "run", "program.py").code != 0
    done = omb_py("traffic", "run")
    assert done.code == 0, done.err
    assert "did not come to the end" in done.out
    assert "Traceback" not in done.err


def test_ranks_of_one_host_share_memory(profiled: Callable[..., Rows]) -> None:
    rows = profiled(4, ALLREDUCES)
    (way,) = [row for row in rows if row["table"] == "paths"]
    assert (way["what"], way["path"]) == ("within", "shared memory")
    (allreduce,) = items(rows, "MPI_Allreduce")
    assert (allreduce["path"], allreduce["between_hosts_bytes"]) == ("shared memory", "0")


@pytest.mark.parametrize("level", ["mpi4py", "pmpi"])
def test_what_persistent_requests_send_was_asked_for(
    profiled: Callable[..., Rows], level: str
) -> None:
    rows = profiled(2, PERSISTENT, "--intercept", level)
    (row,) = items(rows, "messages of its persistent requests")
    assert (row["calls"], row["asked_bytes"], row["moved_bytes"]) == ("10", str(CALLS * MIB), "")
    (pair,) = [row for row in rows if (row["table"], row["from"]) == ("peers", "0")]
    assert (pair["to"], pair["asked_messages"]) == ("1", str(CALLS))
    assert pair["asked_bytes"] == str(CALLS * MIB)
    (way,) = [row for row in rows if row["table"] == "paths"]
    assert way["path"] == "shared memory"


def test_what_others_send_on_the_loopback_is_not_taken_for_the_ranks(
    profiled: Callable[..., Rows],
) -> None:
    with own_stream(64 * MIB):
        rows = profiled(4, ALLREDUCES)
    (way,) = [row for row in rows if row["table"] == "paths"]
    (loopback,) = [row for row in rows if (row["table"], row["wire"]) == ("wires", "lo")]
    assert int(loopback["sent_bytes"]) > 2 * MIB
    assert (way["what"], way["path"]) == ("within", "shared memory")


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


@counted
def test_tcp_within_a_host_is_seen_on_its_loopback(profiled: Callable[..., Rows]) -> None:
    rows = profiled(2, ALLREDUCES, OMPI_MCA_btl="self,tcp", OMPI_MCA_pml="ob1")
    (way,) = [row for row in rows if row["table"] == "paths"]
    assert way["path"] == "lo"
    moved, sent = int(way["moved_bytes"]), int(way["sent_bytes"])
    assert moved == CALLS * 2 * MIB
    assert sent >= moved
    (own,) = [row for row in rows if row["wire"] == "TCP of the ranks"]
    assert moved <= int(own["sent_bytes"]) <= sent


@counted
def test_a_user_who_counts_otherwise_is_left_alone(profiled: Callable[..., Rows]) -> None:
    rows = profiled(2, ALLREDUCES, OMPI_MCA_pml_monitoring_enable="2")
    (row,) = items(rows, "MPI_Allreduce")
    assert (row["algorithm"], row["moved_bytes"]) == ("not reported", "")

"""Efficiencies of programs on real ranks: every wait finds what it waits for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from omb_py.tracing.efficiency.runs import Run, load
from tests.conftest import Finished

PROGRAM = """
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
right, left = (rank + 1) % size, (rank - 1) % size
out, into, small = np.zeros(1000), np.zeros(1000), np.zeros(10)
for turn in range(3):
    comm.Sendrecv(out, right, 3, into, left, 3)
    MPI.Request.Waitall([comm.Issend(out, right, 5), comm.Irecv(into, left, MPI.ANY_TAG)])
    comm.Isendrecv(out, right, 7, into, left, 7).Wait()
    comm.Bcast(out, root=1)
    comm.Reduce(out, into, root=2)
    comm.Scan(out, into)
    request = comm.Iallreduce(out, into)
    request.Wait()
    assert comm.bcast(turn, root=0) == turn
    comm.gather(rank, root=1)
    if rank == 0:
        for peer in range(1, size):
            comm.Send(small, peer, 11)
            comm.Recv(small, MPI.ANY_SOURCE, 12)
    else:
        status = MPI.Status()
        comm.Probe(MPI.ANY_SOURCE, 11, status)
        comm.Recv(small, status.source, 11)
        comm.Ssend(small, 0, 12)
half = comm.Split(rank % 2, -rank)
half.Allreduce(out, into)
persistent = [comm.Send_init(out, right, 9), comm.Recv_init(into, left, 9)]
for turn in range(3):
    MPI.Prequest.Startall(persistent)
    MPI.Request.Waitall(persistent)
if rank == 0:
    comm.Send(small, 1, 20)
if rank == 1:
    comm.Mprobe(0, 20).Recv(small)
comm.Dup().Barrier()
"""

CHAIN = """
import time
from mpi4py import MPI

comm = MPI.COMM_WORLD
if comm.rank > 0:
    comm.recv(source=comm.rank - 1)
time.sleep(0.1)
if comm.rank < comm.size - 1:
    comm.send(None, comm.rank + 1)
"""

Recorded = Callable[..., Run]


@pytest.fixture
def recorded(mpiexec: Callable[..., Finished], tmp_path: Path) -> Recorded:
    """``recorded(ranks, program, *options)`` runs a program's text and looks at its record."""

    def start(ranks: int, program: str, *options: str) -> Run:
        (tmp_path / "program.py").write_text(program)
        words = ("--folder", "run", "--timeline", "run.json", *options, "program.py")
        done = mpiexec(ranks, "profile", *words)
        assert done.code == 0, done.err
        (found,) = load([str(tmp_path / "run")])
        return found

    return start


def test_all_that_ranks_wait_for_is_found(recorded: Recorded) -> None:
    run = recorded(4, PROGRAM)
    assert run.measured.notes == ()
    factors = run.efficiency
    assert factors.serialisation is not None
    assert factors.transfer is not None
    product = factors.load_balance * factors.serialisation * factors.transfer
    assert factors.parallel == pytest.approx(product, abs=1e-12)
    assert 0 < factors.parallel <= factors.communication <= factors.transfer <= 1


def test_serial_work_on_an_ideal_network_takes_as_long(
    recorded: Recorded,
) -> None:
    run = recorded(3, CHAIN, "--cpu-time")
    assert run.times.ideal is not None
    assert 0.3 <= run.times.ideal <= run.times.elapsed
    assert min(run.times.outside) >= 0.1
    assert run.measured.processor is not None
    assert run.measured.processor.outside

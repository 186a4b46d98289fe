"""Habits of other people's programs that a profile once left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from omb_py.tracing.profile.store import load
from tests.conftest import MPIEXEC, OMB_PY, run, succeeded

pytestmark = pytest.mark.usefixtures("mpi")

BUFFERED_AND_PARTITIONED = """
from mpi4py import MPI
comm = MPI.COMM_WORLD
data = bytearray(8)
if comm.rank == 0:
    MPI.Attach_buffer(bytearray(64 + MPI.BSEND_OVERHEAD))
    comm.Bsend(data, 1)
    MPI.Detach_buffer()
    request = comm.Psend_init(data, 4, 1, tag=1)
else:
    comm.Recv(data, 0)
    request = comm.Precv_init(data, 4, 0, tag=1)
request.Start()
if comm.rank == 0:
    request.Pready(0)
    request.Pready_range(1, 2)
    request.Pready_list([3])
request.Wait()
request.Free()
"""


def test_waits_for_buffers_and_ready_partitions_are_counted(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(BUFFERED_AND_PARTITIONED)
    succeeded(run([MPIEXEC, "-n", "2", OMB_PY, "profile", "program.py"], {}, tmp_path, 120))
    sender = load([str(tmp_path / "omb-profile")]).members[0]
    found = {(cell.routine, cell.calls) for cell in sender.cells or ()}
    one = ("Bsend", "Buffer_detach", "Pready", "Pready_range", "Pready_list", "Wait")
    assert found >= {(f"MPI_{name}", 1) for name in one}

"""Efficiencies of a program on real ranks."""

from __future__ import annotations

from pathlib import Path

import pytest

from omb_py.tracing.efficiency import load
from tests.conftest import Run, succeeded

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


def test_serial_work_is_lost_to_communication(mpiexec: Run, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(CHAIN)
    succeeded(mpiexec(3, "profile", "--events", "1000", "--folder", "run", "program.py"))
    (run,) = load([str(tmp_path / "run")])
    assert run.elapsed >= 0.3
    assert min(run.outside) >= 0.1
    assert run.parallel == pytest.approx(run.load_balance * run.communication, abs=1e-12)
    assert 0 < run.parallel <= run.communication <= 1
    assert run.serialisation is not None
    assert run.transfer is not None
    assert run.serialisation * run.transfer == pytest.approx(run.communication)
    assert max(run.outside) / run.serialisation >= 0.3, "on an ideal network, too, ranks take turns"
    assert run.cpu is not None
    assert run.cpu > 0

"""Real ranks watched while they run: who holds up the others, who was killed."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.conftest import MPIEXEC, OMB_PY, Run, own_temporary_folder

pytestmark = pytest.mark.usefixtures("mpi")

SECONDS = 60
Finding: TypeAlias = Callable[..., dict[str, Any]]

LATE = """
import time
from pathlib import Path
from mpi4py import MPI

comm = MPI.COMM_WORLD
while comm.rank == 2 and not Path("go").exists():
    time.sleep(0.05)
comm.Barrier()
"""

PREPARED = """
import time
from array import array
from pathlib import Path
from mpi4py import MPI

comm = MPI.COMM_WORLD
one, total = array("d", [1.0]), array("d", [0.0])
request = comm.Allreduce_init(one, total)
while comm.rank == 2 and not Path("go").exists():
    time.sleep(0.05)
comm.Reduce(one, total, root=0)
while comm.rank == 1 and not Path("go").exists():
    time.sleep(0.05)
request.Start()
request.Wait()
request.Free()
"""

CHAIN = """
import time
from pathlib import Path
from mpi4py import MPI

comm, token = MPI.COMM_WORLD, bytearray(8)
if comm.rank < comm.size - 1:
    comm.Recv(token, source=comm.rank + 1)
while comm.rank == comm.size - 1 and not Path("go").exists():
    time.sleep(0.05)
if comm.rank > 0:
    comm.Send(token, dest=comm.rank - 1)
"""

CIRCLE = """
from mpi4py import MPI

comm, token = MPI.COMM_WORLD, bytearray(8)
other = (comm.rank + 1) % comm.size
CALL
"""

FAILED = """
import time
from pathlib import Path
from mpi4py import MPI

comm, token = MPI.COMM_WORLD, bytearray(8)
if comm.rank == 0:
    comm.Recv(token, source=1)
else:
    for call in (comm.Send, comm.Sendrecv_replace):
        try:
            call(token, comm.size)
        except MPI.Exception:
            pass
    while not Path("go").exists():
        time.sleep(0.05)
    comm.Send(token, dest=0)
"""

KILLED = """
import os, signal, time
from mpi4py import MPI

comm = MPI.COMM_WORLD
if comm.rank == 1:
    time.sleep(1)
    os.kill(os.getpid(), signal.SIGKILL)
comm.Recv(bytearray(8), source=1)
"""


@contextmanager
def job(folder: Path, program: str, ranks: int, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A program on real ranks, profiled; whatever is left of it at the end is killed."""
    (folder / "program.py").write_text(program)
    command = [MPIEXEC, "-n", str(ranks), OMB_PY]
    command += ["profile", "--quiet", *options, "program.py"]
    with own_temporary_folder() as environment:
        started = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            yield started
        finally:
            started.terminate()
            try:
                started.communicate(timeout=SECONDS)
            except subprocess.TimeoutExpired:
                started.kill()
                started.communicate()


def goes_on(started: subprocess.Popen[str], folder: Path) -> None:
    """Let a job go on that waits for a file, and end well."""
    (folder / "go").touch()
    out, _ = started.communicate(timeout=SECONDS)
    assert started.returncode == 0, out


@pytest.fixture
def finding(omb_py: Run) -> Finding:
    """``finding(concern, …)`` watches until there is a finding with all of these values.

    On a busy machine ranks come late, one after the other: the first finding may lack some.
    """

    def until(concern: str, **values: object) -> dict[str, Any]:
        end, out = time.monotonic() + SECONDS, ""
        while time.monotonic() < end:
            done = omb_py("watch", "--once", "--json", "--interval", "0.5", "--wait", str(SECONDS))
            assert done.code == 0, done.err
            out = done.out
            for one in json.loads(out)["findings"]:
                if one["concern"] == concern and values.items() <= one.items():
                    found: dict[str, Any] = one
                    return found
        raise AssertionError(out)

    return until


@pytest.mark.long
@pytest.mark.product(strength=0)
def test_late_rank_is_named(finding: Finding, omb_py: Run, tmp_path: Path) -> None:
    with job(tmp_path, LATE, 4) as started:
        found = finding("waiting", ranks=[2], waiting=[0, 1, 3])
        assert "wait in MPI_Barrier" in found["text"]
        assert "for rank 2, which is outside MPI" in found["text"]
        goes_on(started, tmp_path)
    assert "4 ranks, all ended" in omb_py("watch", "--once").out


@pytest.mark.long
@pytest.mark.product(strength=0)
def test_prepared_collective_is_not_begun(finding: Finding, tmp_path: Path) -> None:
    with job(tmp_path, PREPARED, 3) as started:
        finding("waiting", ranks=[2], waiting=[0])
        goes_on(started, tmp_path)


@pytest.mark.long
@pytest.mark.any_library
def test_chain_of_receives_is_shown(finding: Finding, tmp_path: Path) -> None:
    with job(tmp_path, CHAIN, 3) as started:
        found = finding("waiting", ranks=[2], waiting=[0, 1])
        assert found["text"].endswith("0 for 1 for 2")
        goes_on(started, tmp_path)


@pytest.mark.long
@pytest.mark.any_library
@pytest.mark.parametrize(
    "call",
    ["comm.Recv(token, other)", "comm.recv(source=other)", "comm.irecv(source=other).wait()"],
)
def test_a_deadlock_is_named(finding: Finding, tmp_path: Path, call: str) -> None:
    with job(tmp_path, CIRCLE.replace("CALL", call), 3):
        finding("deadlock", ranks=[0, 1, 2])


@pytest.mark.long
@pytest.mark.any_library
def test_failed_rank_is_outside_mpi(finding: Finding, tmp_path: Path) -> None:
    with job(tmp_path, FAILED, 2) as started:
        found = finding("waiting", ranks=[1], waiting=[0])
        assert "for rank 1, which is outside MPI" in found["text"]
        goes_on(started, tmp_path)


@pytest.mark.long
def test_a_rank_that_was_killed_is_named_and_ends_the_watch(omb_py: Run, tmp_path: Path) -> None:
    with job(tmp_path, KILLED, 3):
        done = omb_py("watch", "--interval", "0.3", "--wait", str(SECONDS), timeout=SECONDS)
    assert done.code == 0
    assert "rank 1 on" in done.out
    assert "was killed: last seen outside MPI" in done.out

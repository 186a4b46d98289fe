"""Profiled programs that go on with MPI in exit handlers and threads end as they do without."""

from __future__ import annotations

import re
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest

from omb_py.tracing.records import reading
from omb_py.tracing.records.layout import path_in
from omb_py.tracing.records.run import open_run
from tests.conftest import MPIEXEC, OMB_PY, Finished, run, succeeded
from tests.mpi.vendor import VENDOR

pytestmark = pytest.mark.usefixtures("mpi")

HANDLER_SENDS = """
import atexit
from mpi4py import MPI
comm = MPI.COMM_WORLD
if comm.rank == 1:
    atexit.register(lambda: [comm.send("stop", r) for r in range(comm.size) if r != 1])
    print("done", flush=True)
else:
    comm.recv(source=1)
"""

HANDLER_COUNTS = """
import atexit
from mpi4py import MPI
comm = MPI.COMM_WORLD
def last():
    comm.Barrier(); comm.Barrier()
    if comm.rank == 0: print("handler", MPI.Is_finalized(), flush=True)
atexit.register(last)
comm.Barrier()
"""

THREAD_GOES_ON = """
import threading, time
from mpi4py import MPI
comm = MPI.COMM_WORLD
def go():
    time.sleep(0.5)
    comm.Barrier()
    comm.gather(comm.rank)
    if comm.rank == 0: print("thread", MPI.Is_finalized(), flush=True)
threading.Thread(target=go).start()
"""

DASK_MPI = """
from dask_mpi import initialize
initialize(dashboard=False, nthreads=1)
from distributed import Client
import dask.array as da
with Client() as c:
    x = da.ones((400, 400), chunks=(200, 200)); print((x + x.T).sum().compute())
"""

SCHWIMMBAD = """
import sys
from schwimmbad import MPIPool
def worker(t): return t * t
pool = MPIPool()
if not pool.is_master():
    pool.wait(); sys.exit(0)
print(sum(pool.map(worker, list(range(100)))), flush=True)
"""

MPI4PY_FFT = """
import numpy as np
from mpi4py import MPI
from mpi4py_fft import PFFT, newDistArray
comm = MPI.COMM_WORLD
fft = PFFT(comm, [12, 8, 6], axes=(0, 1, 2), dtype=float)
made = newDistArray(fft, False)
made[:] = np.random.default_rng(comm.rank).random(made.shape)
back = fft.backward(fft.forward(made.copy()))
if comm.allreduce(np.allclose(back, made), MPI.LAND) and comm.rank == 0: print("same")
"""

PROGRAMS = {
    "handler sends": (3, HANDLER_SENDS, "done", ("MPI_Send", 2)),
    "handler counts": (2, HANDLER_COUNTS, "handler False", ("MPI_Barrier", 6)),
    "thread goes on": (3, THREAD_GOES_ON, "thread False", ("MPI_Barrier", 3)),
    "dask-mpi": (4, DASK_MPI, "320000.0", ("MPI_Barrier", 4)),
    "schwimmbad": (3, SCHWIMMBAD, "328350", ("MPI_Ssend", 100)),
    "schwimmbad closed": (3, f"{SCHWIMMBAD}pool.close()\n", "328350", ("MPI_Ssend", 100)),
    "mpi4py-fft": (3, MPI4PY_FFT, "same", ("MPI_Alltoallw", 12)),
}
"""Ranks, program, its output, and how often all ranks together call a routine."""


def profiled(folder: Path, ranks: int, text: str, *options: str) -> Finished:
    (folder / "program.py").write_text(text)
    command = [MPIEXEC, "-n", str(ranks), OMB_PY, "profile", *options, "program.py"]
    return run(command, {}, folder, 120)


def plain(folder: Path, ranks: int, text: str) -> Finished:
    (folder / "program.py").write_text(text)
    return run([MPIEXEC, "-n", str(ranks), sys.executable, "program.py"], {}, folder, 120)


def calls(folder: Path) -> Counter[str]:
    """Calls of all ranks by routine."""
    found: Counter[str] = Counter()
    for record in open_run(folder / "omb-profile").records:
        for cell in record.cells:
            found[record.name(int(cell["routine"]))] += int(cell["calls"])
    return found


@pytest.mark.long
@pytest.mark.parametrize("name", PROGRAMS)
def test_calls_after_the_last_line_are_counted(tmp_path: Path, name: str) -> None:
    ranks, text, output, (routine, count) = PROGRAMS[name]
    if name == "mpi4py-fft" and find_spec("mpi4py_fft") is None:
        pytest.skip("mpi4py-fft is built where FFTW is")
    if name == "schwimmbad closed" and VENDOR == "MPICH":
        pytest.skip("MPICH kills ranks that finalize with messages left, also without profile")
    done = succeeded(profiled(tmp_path, ranks, text))
    assert done.out.split() == output.split()
    assert calls(tmp_path)[routine] == count
    assert all(record.complete for record in open_run(tmp_path / "omb-profile").records)
    assert (tmp_path / "omb-profile" / "profile.txt").exists()


ENDING = """
import atexit, os, sys
from mpi4py import MPI
comm = MPI.COMM_WORLD
def last():
    if not MPI.Is_finalized(): comm.Barrier()
    if rank == 0: print("handler", flush=True)
rank = comm.rank
atexit.register(last)
comm.Barrier()
"""

ENDS = {
    "text": "sys.exit('some text')",
    "code": "sys.exit(3)",
    "exception": "raise ValueError('of all ranks')",
    "finalized": "MPI.Finalize()",
    "finalized, then exception": "MPI.Finalize(); raise ValueError('of all ranks')",
    "finalized in a handler": "atexit.register(MPI.Finalize)",
    "forked": "pid = os.fork()\nif pid == 0: atexit.unregister(last); sys.exit(5)\nos.wait()",
    "_exit": "if rank == 0: print('left', flush=True)\ncomm.Barrier(); os._exit(0)",
}
"""Ways to end a program, all ranks alike."""


@pytest.mark.long
@pytest.mark.parametrize("end", ENDS)
def test_output_and_code_are_those_without_profile(tmp_path: Path, end: str) -> None:
    if end == "forked" and VENDOR == "Open MPI":
        pytest.skip("a forked child of Open MPI 5 does not end")
    text = f"{ENDING}{ENDS[end]}\n"
    expected = plain(tmp_path, 2, text)
    done = profiled(tmp_path, 2, text)
    assert done.code == expected.code
    assert sorted(done.out.split()) == sorted(expected.out.split())
    assert done.err.count("Traceback") == expected.err.count("Traceback")
    assert done.err.count("some text") == expected.err.count("some text")
    at_end = 0 if "inalized" in end else 2
    assert calls(tmp_path)["MPI_Barrier"] == 2 + at_end
    complete = [record.complete for record in open_run(tmp_path / "omb-profile").records]
    assert complete == [end != "_exit"] * 2
    assert (tmp_path / "omb-profile" / "profile.txt").exists() == (end != "_exit")


def test_calls_before_an_abort_are_counted(tmp_path: Path) -> None:
    text = """
from mpi4py import MPI
comm = MPI.COMM_WORLD
for _ in range(5): MPI.COMM_SELF.Barrier()
if comm.rank == 1: comm.Abort(7)
comm.recv(source=1)
"""
    done = profiled(tmp_path, 2, text)
    assert done.code == 7
    aborted = reading.read(path_in(str(tmp_path / "omb-profile"), 1))
    assert int(aborted.cells["calls"].sum()) == 5
    assert not aborted.complete


def test_an_exit_code_under_mpi4py_ends_the_job(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import sys\nfrom mpi4py import MPI\n"
        "if MPI.COMM_WORLD.rank == 1: sys.exit(3)\n"
        "MPI.COMM_WORLD.Barrier()\n"
    )
    words = ["profile", "-m", "mpi4py", "program.py"]
    done = run([MPIEXEC, "-n", "2", OMB_PY, *words], {}, tmp_path, 60)
    assert done.code == 3
    assert "note: rank 1 ends the job; the profile so far: omb-py profile show" in done.err


def test_a_profile_that_cannot_be_written_fails(tmp_path: Path) -> None:
    text = """
import os
from mpi4py import MPI
MPI.COMM_WORLD.Barrier()
if MPI.COMM_WORLD.rank == 0: os.mkdir("omb-profile/profile.txt")
print("done", MPI.COMM_WORLD.rank)
"""
    done = profiled(tmp_path, 2, text)
    assert done.code == 1
    assert "profile.txt" in done.sentences[-1]
    assert "Traceback" not in done.err
    assert sorted(re.findall(r"done|\d", done.out)) == ["0", "1", "done", "done"]


def test_nothing_is_started_at_exit(tmp_path: Path) -> None:
    """Python 3.12 and later start no threads and no processes once a program ends."""
    text = """
import atexit, os, threading
from mpi4py import MPI
def refuse(*words, **named): raise RuntimeError("at interpreter shutdown")
def last(): threading.Thread.start = os.fork = refuse
atexit.register(last)
MPI.COMM_WORLD.Barrier()
"""
    succeeded(profiled(tmp_path, 1, text, "--events", "1000", "--traffic"))
    assert (tmp_path / "omb-profile" / "profile.txt").exists()

"""What ranks publish of their waits while they wait, with the calls that Python programs make."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from omb_py.tracing.records.layout import ANYONE, NOBODY
from tests.conftest import Run, succeeded

PROGRAM = """
import json, sys, threading, time
from mpi4py import MPI
from omb_py.tracing.records.reading import read

comm, any, waitall = MPI.COMM_WORLD, MPI.ANY_SOURCE, MPI.Request.Waitall
one, large = bytearray(1), bytearray(1 << 24)

def threaded():
    reader = threading.Thread(target=comm.recv, kwargs={"source": 1})
    reader.start()
    reader.join()

def generalized():
    request = MPI.Grequest.Start()
    threading.Timer(1.5, request.Complete).start()
    request.Wait()

def persistent():
    request = comm.Recv_init(one, 1)
    request.Start()
    request.Wait()
    request.Free()

def forgotten():
    for _ in range(100):
        comm.isend(None, MPI.PROC_NULL)
        comm.isend(None, 0, tag=7)
    comm.recv(source=1)

def probe():
    comm.Probe(source=1)
    comm.recv(source=1)

def exchange():
    comm.send(comm.recv(source=0), 0)

send, nothing = lambda: comm.send(None, 0), lambda: None
byte = lambda: comm.Send(bytearray(1), 0)
two = lambda: (byte(), byte())
STEPS = {
    "recv": (lambda: comm.recv(source=1), send),
    "recv any": (comm.recv, send),
    "irecv wait": (lambda: comm.irecv(source=1).wait(), send),
    "sendrecv": (lambda: comm.sendrecv(None, 1, source=1), exchange),
    "Irecv Wait": (lambda: comm.Irecv(one, 1).Wait(), byte),
    "Waitall": (lambda: waitall([comm.Irecv(bytearray(1), 1) for _ in range(2)]), two),
    "Waitall any": (lambda: waitall([comm.Irecv(bytearray(1), r) for r in (1, any)]), two),
    "Waitany": (lambda: MPI.Request.Waitany([comm.Irecv(one, 1)]), byte),
    "Isend Wait": (lambda: comm.Isend(large, 1).Wait(), lambda: comm.Recv(large, 0)),
    "Probe": (probe, send),
    "Ibarrier Wait": (lambda: comm.Ibarrier().Wait(), lambda: comm.Ibarrier().Wait()),
    "persistent": (persistent, byte),
    "forgotten isend": (forgotten, send),
    "generalized": (generalized, nothing),
    "thread": (threaded, send),
}

def waiting(last):
    while True:
        time.sleep(0.05)
        record = read("omb-profile/rank-000000.record", events=False)
        threads = record.threads
        inside = [thread for thread in threads if thread.routine]
        if inside and inside[-1].began != last and time.monotonic_ns() - inside[-1].began > 3e8:
            now = inside[-1]
            label = now.communicator.label if now.communicator else ""
            print(json.dumps([now.routine, now.operation, now.peers, label, len(threads)]))
            return now.began

last = 0
for wait, release in STEPS.values():
    if comm.rank == 0:
        wait()
    else:
        last = waiting(last)
        release()
"""

WORLD = "COMM_WORLD"
WAITS = {
    "recv": ["MPI_Mprobe", "", [1]],
    "recv any": ["MPI_Mprobe", "", [ANYONE]],
    "irecv wait": ["MPI_Wait", "MPI_Irecv", [1]],
    "sendrecv": ["MPI_Mprobe", "", [1]],
    "Irecv Wait": ["MPI_Wait", "MPI_Irecv", [1]],
    "Waitall": ["MPI_Waitall", "MPI_Irecv", [1]],
    "Waitall any": ["MPI_Waitall", "MPI_Irecv", [1, ANYONE]],
    "Waitany": ["MPI_Waitany", "MPI_Irecv", [1]],
    "Isend Wait": ["MPI_Wait", "MPI_Isend", [1]],
    "Probe": ["MPI_Probe", "", [1]],
    "Ibarrier Wait": ["MPI_Wait", "MPI_Ibarrier", [NOBODY]],
    "persistent": ["MPI_Wait", "MPI_Recv (started)", [1]],
    "forgotten isend": ["MPI_Mprobe", "", [1]],
    "generalized": ["MPI_Wait", "", [NOBODY]],
    "thread": ["MPI_Mprobe", "", [1]],
}


@pytest.mark.parametrize("options", [(), ("--events", "1000")], ids=["tallies", "events"])
def test_a_waiting_rank_names_what_it_waits_for(
    mpiexec: Run, tmp_path: Path, options: tuple[str, ...]
) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    done = succeeded(mpiexec(2, "profile", "--quiet", *options, "program.py"))
    found = [json.loads(line) for line in done.out.splitlines()]
    assert dict(zip(WAITS, (line[:3] for line in found), strict=True)) == WAITS
    labels = [line[3] for line in found]
    assert labels == ["" if name == "generalized" else WORLD for name in WAITS]
    assert [line[4] for line in found][-2:] == [1, 2]

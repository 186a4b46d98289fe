"""What observing costs: the same ping-pong with and without, alternately.

    python -m perf.profile_overhead [--ranks 2] [--launches 6] [--bytes 1]

prints the one-way time of mpi4py's Send and Recv between two ranks, and the times of an exchange by
Isend and Irecv, of a barrier and of an allreduce of 8 bytes (of these two alone on one rank), as
they are, profiled, and profiled with events or call sites: the median over launches
of the minimum of several repetitions in each, and how far each is from the median without.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

BIN = Path(sys.executable).parent
OBSERVED = {
    "as it is": None,
    "profiled": [],
    "events": ["--events", "100000"],
    "call sites": ["--call-sites"],
}
PINGPONG = """
import json, sys, time
from mpi4py import MPI
comm = MPI.COMM_WORLD
peer = 1 - comm.Get_rank()
memory = memoryview(bytearray(int(sys.argv[1])))
iterations, repetitions = int(sys.argv[2]), 7

def blocking(n, Send=comm.Send, Recv=comm.Recv):
    begin = time.perf_counter()
    if peer == 1:
        for _ in range(n):
            Send(memory, peer); Recv(memory, peer)
    else:
        for _ in range(n):
            Recv(memory, peer); Send(memory, peer)
    return (time.perf_counter() - begin) / n / 2e-6

def nonblocking(n):
    begin = time.perf_counter()
    for _ in range(n):
        requests = [comm.Irecv(memory, peer), comm.Isend(memory, peer)]
        MPI.Request.Waitall(requests)
    return (time.perf_counter() - begin) / n / 1e-6

def barrier(n):
    begin = time.perf_counter()
    for _ in range(n):
        comm.Barrier()
    return (time.perf_counter() - begin) / n / 1e-6

def allreduce(n):
    sent, received = [bytearray(8), MPI.DOUBLE], [bytearray(8), MPI.DOUBLE]
    begin = time.perf_counter()
    for _ in range(n):
        comm.Allreduce(sent, received)
    return (time.perf_counter() - begin) / n / 1e-6

found = {}
between = (blocking, nonblocking) if comm.Get_size() == 2 else ()
for work in (*between, barrier, allreduce):
    times = []
    for _ in range(repetitions):
        comm.Barrier()
        times.append(work(iterations))
    found[work.__name__] = min(times)
if comm.Get_rank() == 0:
    print("RESULT", json.dumps(found))
"""


def launch(
    options: list[str] | None, ranks: int, nbytes: int, iterations: int, folder: Path
) -> dict[str, float]:
    """The minimum microseconds of each kind of exchange in one job."""
    observed = (
        [] if options is None else [str(BIN / "omb-py"), "profile", "-q", "--force", *options]
    )
    python = [] if observed else [sys.executable]
    command = [str(BIN / "mpiexec"), "-n", str(ranks), *python, *observed, "pingpong.py"]
    words = [*command, str(nbytes), str(iterations)]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        if line.startswith("RESULT "):
            found: dict[str, float] = json.loads(line.removeprefix("RESULT "))
            return found
    raise SystemExit(done.stderr)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--launches", type=int, default=6)
    parser.add_argument("--iterations", type=int, default=20000)
    parser.add_argument("--bytes", type=int, default=1)
    parser.add_argument("--ranks", type=int, default=2, choices=(1, 2))
    asked = parser.parse_args()
    found: dict[str, list[dict[str, float]]] = {name: [] for name in OBSERVED}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pingpong.py").write_text(PINGPONG)
        for _ in range(asked.launches):
            for name, options in OBSERVED.items():
                one = launch(options, asked.ranks, asked.bytes, asked.iterations, folder)
                found[name].append(one)
    print(f"{asked.bytes} bytes, {asked.ranks} ranks, {asked.launches} launches alternately; us")
    first = found[next(iter(OBSERVED))]
    for kind in first[0]:
        base = median(one[kind] for one in first)
        for name, launches in found.items():
            times = [one[kind] for one in launches]
            middle, spread = median(times), f"{min(times):.3f}..{max(times):.3f}"
            print(f"{kind:<12} {name:<18} {middle:8.3f}  {middle - base:+8.3f}   {spread}")


if __name__ == "__main__":
    os.environ.setdefault("OMPI_ALLOW_RUN_AS_ROOT", "1")
    main()

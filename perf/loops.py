"""Hand-written mpi4py loops beside the suite's own, interleaved in one job of two ranks.

Prints ``NAME MICROSECONDS_PER_CALL ...`` with one number per round. ``hand`` is a plain loop timed
as a whole, ``hand_sampled`` one that reads the clock around every iteration, ``omb_py`` the suite's
loop over its bound calls.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable
from time import perf_counter

import mpi4py

mpi4py.rc.thread_level = "single"

from mpi4py import MPI  # noqa: E402

from omb_py.benchmarks import Case, find_benchmark  # noqa: E402
from omb_py.bindings.buffer import BufferBinding  # noqa: E402
from omb_py.buffers.numpy import BUFFER  # noqa: E402
from omb_py.core.calls.loop import PythonLoop, no_garbage_collection  # noqa: E402
from omb_py.core.datatypes import find_types  # noqa: E402
from omb_py.core.job.by_mpi import job_of  # noqa: E402
from omb_py.core.options import Options  # noqa: E402
from omb_py.measure.resources import MpiResources  # noqa: E402

ROUNDS, ITERATIONS, SIZE = int(sys.argv[1]), 10_000, 8

comm = MPI.COMM_WORLD
rank = comm.rank
(char,) = find_types(["mpi_char"])
(integer,) = find_types(["mpi_int"])
outgoing = BUFFER.allocate(SIZE, char).array
incoming = BUFFER.allocate(SIZE, char).array
outgoing[:] = 1
incoming[:] = 2


def hand_latency() -> float:
    start = perf_counter()
    if rank == 0:
        for _ in range(ITERATIONS):
            comm.Send([outgoing, SIZE, MPI.CHAR], 1, 100)
            comm.Recv([incoming, SIZE, MPI.CHAR], 1, 100)
    else:
        for _ in range(ITERATIONS):
            comm.Recv([incoming, SIZE, MPI.CHAR], 0, 100)
            comm.Send([outgoing, SIZE, MPI.CHAR], 0, 100)
    return (perf_counter() - start) / ITERATIONS / 2


def hand_sampled_latency() -> float:
    total = 0.0
    if rank == 0:
        for _ in range(ITERATIONS):
            start = MPI.Wtime()
            comm.Send([outgoing, SIZE, MPI.CHAR], 1, 100)
            comm.Recv([incoming, SIZE, MPI.CHAR], 1, 100)
            total += MPI.Wtime() - start
    else:
        for _ in range(ITERATIONS):
            comm.Recv([incoming, SIZE, MPI.CHAR], 0, 100)
            comm.Send([outgoing, SIZE, MPI.CHAR], 0, 100)
    return total / ITERATIONS / 2


def hand_self() -> float:
    alone = MPI.COMM_SELF
    start = perf_counter()
    for _ in range(ITERATIONS):
        alone.Allreduce([outgoing, 2, MPI.INT], [incoming, 2, MPI.INT], MPI.SUM)
    return (perf_counter() - start) / ITERATIONS


def hand_sampled_self() -> float:
    alone = MPI.COMM_SELF
    total = 0.0
    for _ in range(ITERATIONS):
        start = MPI.Wtime()
        alone.Allreduce([outgoing, 2, MPI.INT], [incoming, 2, MPI.INT], MPI.SUM)
        total += MPI.Wtime() - start
    return total / ITERATIONS


def suite(name: str, on: MPI.Intracomm, calls: int) -> Callable[[], float]:
    benchmark = find_benchmark(name)
    datatype = integer if benchmark.reduces else char
    resources = MpiResources(job_of(on), Options())
    case = Case(on.rank, on.size, SIZE, datatype, 64, BUFFER, Options(), resources)
    binding = BufferBinding(on, Options())
    exchanges = benchmark.plan(case).iterations
    loop = PythonLoop([binding.bound(exchange).calls for exchange in exchanges])
    seconds = array("d", bytes(8 * ITERATIONS))

    def run() -> float:
        loop.run(0, seconds)
        return sum(seconds) / ITERATIONS / calls

    return run


CONTENDERS: dict[str, Callable[[], float]] = {
    "latency.hand": hand_latency,
    "latency.hand_sampled": hand_sampled_latency,
    "latency.omb_py": suite("latency", comm, 2),
    "self_allreduce.hand": hand_self,
    "self_allreduce.hand_sampled": hand_sampled_self,
    "self_allreduce.omb_py": suite("allreduce", MPI.COMM_SELF, 1),
}
times: dict[str, list[float]] = {name: [] for name in CONTENDERS}
with no_garbage_collection():
    for _ in range(ROUNDS):
        for name, contender in CONTENDERS.items():
            comm.Barrier()
            times[name].append(contender() * 1e6)
if rank == 0:
    for name, values in times.items():
        print(name, *(f"{value:.4f}" for value in values))

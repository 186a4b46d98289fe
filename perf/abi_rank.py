"""One rank of a job of perf/abi.py: measures what it is asked to over a socket, and sleeps between.

Usage: mpiexec -n 2 python -m perf.abi_rank SOCKET FOLDER_OF_LIBRARIES
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import sys
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from omb_py.core.calls.loop import Pace, no_garbage_collection
from omb_py.core.options import Options
from omb_py.measure.launch import Launch, launch

if TYPE_CHECKING:
    from mpi4py import MPI

    from omb_py.benchmarks import Plan

BARE = (
    *("comm_rank", "type_size", "get_count", "isend_wait"),
    *("send_first", "send_last", "send_own", "waitall"),
)
BINDINGS = ("C", "native", "buffer")
BENCHMARKS = {"latency": 2, "bw": 64, "allreduce": 1}
"""Those measured, and the messages or calls of an iteration whose time is given."""

NAMES = (*BARE, *(f"{benchmark} {binding}" for benchmark in BENCHMARKS for binding in BINDINGS))
"""What is measured; the driver asks by number."""

CALLS = 20_000
ITERATIONS = {"latency": 2_000, "bw": 60, "allreduce": 2_000}
WINDOW, SIZE = BENCHMARKS["bw"], 8
OPTIONS = Options(window=WINDOW, debug=True)
END = 255

Measured = Callable[[], float]
"""Nanoseconds of one call or message."""


def bare(library: ctypes.CDLL, name: str, comm: MPI.Intracomm) -> Measured:
    """A call that moves nothing, from C."""
    from mpi4py import MPI

    function = library[name]
    function.restype = ctypes.c_double
    handle = ctypes.c_void_p(MPI._addressof(comm))
    return lambda: float(function(handle, CALLS)) / CALLS * 1e9


def exchanged(launched: Launch, benchmark: str, binding: str) -> Measured:
    """A benchmark of two ranks, through a binding or from C."""
    from omb_py.benchmarks import Case, find_benchmark
    from omb_py.bindings import BINDINGS as REGISTRY
    from omb_py.buffers.numpy import BUFFER
    from omb_py.core.datatypes import find_types
    from omb_py.measure.resources import MpiResources
    from perf.contenders import CBinding

    found = find_benchmark(benchmark)
    job, options = launched.job, OPTIONS
    ranks = job.comm.rank, job.comm.size
    (datatype,) = find_types(["mpi_int" if found.reduces else "mpi_char"])
    resources = MpiResources(job, options)
    case = Case(*ranks, SIZE, datatype, WINDOW, BUFFER, options, resources)
    plan = found.plan(case)
    kind = CBinding if binding == "C" else REGISTRY.load(binding)
    pace = Pace(barrier=benchmark == "allreduce")
    loop = kind(job.comm, options).loop(plan.iterations, pace)
    seconds = array("d", bytes(8 * ITERATIONS[benchmark]))

    def measured(kept: Plan = plan) -> float:  # whose memory the loop in C knows by address
        loop.run(0, seconds)
        return midmean(seconds) / BENCHMARKS[benchmark] * 1e9

    return measured


def midmean(values: Sequence[float]) -> float:
    """The mean of the middle half: like a median, but finer than the clock of some machines."""
    quarter = len(values) // 4
    return fmean(sorted(values)[quarter : len(values) - quarter])


def serve(launched: Launch, address: str, folder: Path) -> None:
    """Measure what is asked for, until the end is; rank 0 answers."""
    comm = launched.job.comm
    library = ctypes.CDLL(str(folder / "abi.so"))
    made = [
        *(bare(library, name, comm) for name in BARE),
        *(exchanged(launched, one, binding) for one in BENCHMARKS for binding in BINDINGS),
    ]
    with socket.socket(socket.AF_UNIX) as driver, no_garbage_collection():
        driver.connect(address)
        driver.sendall(bytes([comm.rank]))
        while (asked := driver.recv(1)) and asked[0] != END:
            comm.Barrier()
            nanoseconds = made[asked[0]]()
            if comm.rank == 0:
                driver.sendall(struct.pack("d", nanoseconds))


def main(address: str, folder: str) -> None:
    """Each rank on a core of its own, the same in all jobs."""
    from omb_py.core.mpi import launcher

    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[launcher.rank() % len(cores)]})
    with launch("latency", OPTIONS) as launched:
        serve(launched, address, Path(folder))


if __name__ == "__main__":
    main(*sys.argv[1:])

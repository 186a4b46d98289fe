"""Binding native beside the same loops in C: one job, one process, by turns.

Usage: python perf/native.py [ROUNDS]   (compiles perf/reference.c with the MPI's own mpicc -O2)

Prints, for latency, windowed bandwidth and allreduce on two ranks, the medians of C and of each
binding, and the ratio to C with the 95 % interval of its median over the rounds.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
BIN = Path(sys.executable).parent
ENVIRONMENT = os.environ | {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_btl": "self,sm",
}
SIZES = tuple(1 << power for power in range(23))
WINDOW = 64
RUNS = {
    "latency": (SIZES, "native"),
    "bw": (SIZES, "native"),
    "allreduce": (SIZES[2:], "native"),
}


def main() -> None:
    """Compile, and start the job of each benchmark."""
    rounds = sys.argv[1] if len(sys.argv) > 1 else "40"
    with tempfile.TemporaryDirectory() as folder:
        library = str(Path(folder) / "libreference.so")
        compiler = [str(BIN / "mpicc"), "-O2", "-shared", "-fPIC", "-o", library]
        subprocess.run([*compiler, str(HERE / "reference.c")], env=ENVIRONMENT, check=True)
        for name in RUNS:
            command = [sys.executable, __file__, "--rank", library, name, rounds]
            subprocess.run([str(BIN / "mpiexec"), "-n", "2", *command], env=ENVIRONMENT, check=True)


def rank(library: str, name: str, rounds: int) -> None:
    """One rank of a job: the C loops as one more binding, compared by `Overhead`."""
    from omb_py.benchmarks import find_benchmark
    from omb_py.bindings import BINDINGS, Binding, BoundCall
    from omb_py.calls import Call, Message, Step, Window
    from omb_py.cli.benchmark import in_job
    from omb_py.loop import Loop, Pace
    from omb_py.measure.overhead import Overhead
    from omb_py.measure.walk import Setting
    from omb_py.options import Options

    class CLoop(Loop):
        def __init__(self, function: Any, comm: int, *arguments: int) -> None:
            self._function = function
            self._comm = ctypes.c_int64(comm)
            self._arguments = arguments

        def run(self, first: int, seconds: array[float]) -> None:
            self._function(
                ctypes.byref(self._comm),
                *self._arguments,
                len(seconds),
                ctypes.c_void_p(seconds.buffer_info()[0]),
            )

    class CBinding(Binding):
        name = "C"

        def bind(self, step: Step) -> BoundCall:
            raise NotImplementedError

        def loop(self, exchanges: Sequence[Sequence[Step]], pace: Pace) -> Loop:
            from mpi4py import MPI

            functions = ctypes.CDLL(library)
            steps = exchanges[0]
            calls = [step.groups[0][0] if isinstance(step, Window) else step for step in steps]
            messages = {
                call.function: operand
                for call in calls
                for operand in call.operands
                if isinstance(operand, Message)
            }
            comm = MPI._handleof(self.comm)
            first = calls[0]
            assert isinstance(first, Call)
            if first.function == "allreduce":
                source, target = first.operands
                count = source.counts[0]
                return CLoop(functions.allreduce, comm, address(source), address(target), count)
            sent = messages.get("send") or messages["isend"]
            received = messages.get("recv") or messages["irecv"]
            if isinstance(steps[0], Window):
                moved, answer = (
                    (messages["isend"], received)
                    if "isend" in messages
                    else (messages["irecv"], sent)
                )
                return CLoop(
                    functions.bandwidth,
                    comm,
                    address(moved),
                    address(answer),
                    moved.memory.nbytes,
                    WINDOW,
                )
            return CLoop(
                functions.latency, comm, address(sent), address(received), sent.memory.nbytes
            )

    def address(message: Message) -> ctypes.c_void_p:
        return ctypes.c_void_p(message.memory.array.ctypes.data)

    sizes, names = RUNS[name]
    options = Options(sizes=sizes, window=WINDOW)
    benchmark = find_benchmark(name)

    def compare(setting: Setting) -> None:
        comm = setting.job.comm
        others = [BINDINGS.load(other)(comm, options) for other in names.split(",")]
        Overhead(setting, [CBinding(comm, options), *others], rounds, optional=False).measure()

    in_job(benchmark, options, debug=True, action=compare)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--rank"]:
        rank(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        main()

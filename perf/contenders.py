"""What omb-py is measured against, as bindings that `Overhead` compares with its own."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
from array import array
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from omb_py.bindings import BINDINGS, Binding, BoundCall, MethodBinding
from omb_py.core.calls import Call, Iteration, Step, Window
from omb_py.core.calls.loop import Loop, Pace
from omb_py.core.job import Job
from omb_py.core.mpi import launcher
from omb_py.core.options import Options
from omb_py.measure.launch import launch
from perf.jobs import BIN, ENVIRONMENT, compile_reference

WINDOW = 64


class CLoop(Loop):
    """A loop of ``reference.c``."""

    def __init__(self, function: Any, comm: int, *arguments: Any) -> None:
        self._function = function
        self._comm = ctypes.c_int64(comm)
        self._arguments = arguments

    def run(self, first: int, seconds: array[float]) -> None:
        address = ctypes.c_void_p(seconds.buffer_info()[0])
        self._function(ctypes.byref(self._comm), *self._arguments, len(seconds), address)


class CBinding(Binding):
    """The same iterations written in C, on the same memory and communicator."""

    name = "C"
    library = os.environ.get("OMB_PY_REFERENCE", "")

    def bind(self, step: Step) -> BoundCall:
        raise NotImplementedError

    def loop(self, rounds: Sequence[Iteration], pace: Pace) -> Loop:
        from mpi4py import MPI

        functions = ctypes.CDLL(self.library)
        comm = MPI._handleof(self.comm)
        steps = [
            step.groups[0][0] if isinstance(step, Window) else step for step in rounds[0].steps
        ]
        calls = [step for step in steps if isinstance(step, Call)]
        first = calls[0]
        messages = [message for call in calls for message in call.messages]
        addresses = [ctypes.c_void_p(message.memory.array.ctypes.data) for message in messages]
        bytes_moved = messages[0].memory.nbytes
        if first.function == "allreduce":
            return CLoop(functions.allreduce, comm, *addresses, messages[0].counts[0])
        if first.function in ("isend", "irecv"):
            return CLoop(functions.bandwidth, comm, *addresses, bytes_moved, WINDOW)
        outgoing_first = addresses if first.function == "send" else addresses[::-1]
        return CLoop(functions.latency, comm, *outgoing_first, bytes_moved)


class ObviousBinding(MethodBinding):
    """A window as most programs write it: arrays alone, requests collected in a list."""

    name = "obvious"

    def bind(self, step: Step) -> BoundCall:
        if not isinstance(step, Window):
            bound: BoundCall = BINDINGS.load("array")(self.comm, self.options).bind(step)
            return bound
        from mpi4py import MPI

        (group,) = step.groups
        call, comm = group[0], self.comm
        (message,) = call.messages
        array, peer, tag = message.memory.array, call.peer, call.tag
        assert peer is not None

        def send() -> None:
            requests = []
            for _ in range(len(group)):
                requests.append(comm.Isend(array, dest=peer, tag=tag))
            MPI.Request.Waitall(requests)

        def receive() -> None:
            requests = []
            for _ in range(len(group)):
                requests.append(comm.Irecv(array, source=peer, tag=tag))
            MPI.Request.Waitall(requests)

        return send if call.function == "isend" else receive

    def bind_call(self, call: Any) -> BoundCall:
        raise NotImplementedError

    def wait_all(self, requests: Sequence[Any]) -> Any:
        raise NotImplementedError


CONTENDERS = {"C": CBinding, "obvious": ObviousBinding}


def compare(benchmark: str, sizes: Sequence[int], names: Sequence[str], rounds: int) -> None:
    """Compile ``reference.c`` with the MPI's own compiler, and run two ranks of `rank`."""
    with tempfile.TemporaryDirectory() as folder:
        library = str(Path(folder) / "libreference.so")
        compile_reference(library, "-shared", "-fPIC")
        arguments = [benchmark, ",".join(map(str, sizes)), ",".join(names), str(rounds)]
        subprocess.run(
            [str(BIN / "mpiexec"), "-n", "2", sys.executable, "-m", "perf.contenders", *arguments],
            env=ENVIRONMENT | {"OMB_PY_REFERENCE": library},
            check=True,
        )


def rank(benchmark: str, sizes: str, names: str, rounds: str) -> None:
    """One rank of a comparison; rank 0 prints it."""
    from omb_py.benchmarks import find_benchmark
    from omb_py.measure.overhead import kind_of_bindings
    from omb_py.measure.run import run

    options = Options(
        sizes=tuple(int(size) for size in sizes.split(",")), window=WINDOW, debug=True
    )

    def members(job: Job, options: Options) -> list[Binding]:
        return [
            (CONTENDERS.get(name) or BINDINGS.load(name))(job.comm, options)
            for name in names.split(",")
        ]

    kind_of = partial(kind_of_bindings, members, int(rounds), False)
    with launch(benchmark, options) as launched:
        run(launched, find_benchmark(benchmark), options, kind_of=kind_of)


if __name__ == "__main__":
    if launcher.rank() != 0:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    rank(*sys.argv[1:])

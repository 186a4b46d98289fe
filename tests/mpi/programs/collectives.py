"""Runs a command of omb-py; rank 0 prints the collective calls of its job, with what made them.

A line has the phase (before the first iteration, or after it), MPI's function, and omb-py's.
"""

import sys
from typing import Any
from unittest.mock import patch

from omb_py.cli import main
from omb_py.core.job.by_mpi import MPIJob
from omb_py.core.mpi import launcher
from omb_py.measure import benchmark
from omb_py.measure.sampling import sample

PRIMITIVES = ("by_mpi.py", "job/__init__.py")
"""Modules that only pass a call on."""

calls: list[str] = []
phase = ["before"]


class Spy:
    """A communicator that notes what is called on it."""

    def __init__(self, comm: Any) -> None:
        self._comm = comm

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._comm, name)
        if not callable(found) or name[0].islower():
            return found

        def noted(*arguments: Any, **more: Any) -> Any:
            calls.append(f"{phase[0]} {name} {caller()}")
            return found(*arguments, **more)

        return noted


def caller() -> str:
    """The function of omb-py that wanted something of its job."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.endswith((*PRIMITIVES, "lib.py")):
        frame = frame.f_back
    return frame.f_code.co_name


def timed(*arguments: Any, **more: Any) -> Any:
    """Sample, and note when."""
    phase[0] = "during"
    found = sample(*arguments, **more)
    phase[0] = "after"
    return found


spied = property(lambda job: Spy(job._comm))
try:
    with patch.object(MPIJob, "comm", spied), patch.object(benchmark, "sample", timed):
        main()
finally:
    if launcher.rank() == 0:
        print(*calls, sep="\n")

"""MPI libraries that take memory on a device, and how each starts ranks.

Intel MPI: the folder of PyPI's impi-rt, unpacked (`make .intel-mpi/.unpacked`), or the one that
OMB_TEST_INTEL_MPI names. An Open MPI with CUDA: the folder that OMB_TEST_CUDA_OPEN_MPI names.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

from omb_py.benchmarks import Benchmark, all_benchmarks

ROOT = Path(__file__).parent.parent
INTEL_MPI = Path(os.environ.get("OMB_TEST_INTEL_MPI", ROOT / ".intel-mpi"))
CUDA_OPEN_MPI = os.environ.get("OMB_TEST_CUDA_OPEN_MPI")
OMB_PY = (sys.executable, "-m", "omb_py")


@dataclass(frozen=True)
class Launcher:
    """An MPI library's way of starting ranks, and the environment that it needs."""

    name: str
    command: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    libraries: tuple[str, ...] = ()

    def run(self, ranks: int, *arguments: str, program: tuple[str, ...] = OMB_PY) -> list[str]:
        """The command line of a job, of omb-py unless told otherwise."""
        return [*self.command, "-n", str(ranks), *program, *arguments]

    def with_libraries(self, *folders: str) -> dict[str, str]:
        """The environment of a job that looks for libraries in ``folders`` first."""
        found = [*folders, *self.libraries, os.environ.get("LD_LIBRARY_PATH", "")]
        return self.environment | {"LD_LIBRARY_PATH": ":".join(filter(None, found))}


def own_launcher() -> Launcher:
    """The launcher of the MPI library from PyPI in this environment; it knows no devices."""
    return Launcher("own", (str(Path(sys.executable).parent / "mpiexec"),))


def aware_launchers() -> list[Launcher]:
    """Launchers of those MPI libraries here that take memory on a device."""
    found = []
    for program in sorted(INTEL_MPI.glob("**/bin/mpiexec.hydra")):
        root = program.parent.parent
        settings = {
            "I_MPI_ROOT": root,
            "I_MPI_OFFLOAD": 1,
            "I_MPI_OFFLOAD_CUDA_LIBRARY": "libcuda.so.1",
            "I_MPI_FABRICS": "shm",
            "MPI4PY_LIBMPI": root / "lib" / "libmpi.so.12",
        }
        environment = {name: str(value) for name, value in settings.items()}
        found.append(Launcher("Intel MPI", (str(program),), environment, (str(root / "lib"),)))
    if CUDA_OPEN_MPI is not None:
        root = Path(CUDA_OPEN_MPI)
        environment = dict.fromkeys(("OPAL_PREFIX", "PRTE_PREFIX", "PMIX_PREFIX"), str(root))
        environment |= {
            "MPI4PY_LIBMPI": str(root / "lib" / "libmpi.so.40"),
            "OMPI_MCA_btl": "self,sm,smcuda",
            "PRTE_ALLOW_RUN_AS_ROOT": "1",
            "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        }
        launch = (str(root / "bin" / "mpiexec"),)
        found.append(Launcher("Open MPI", launch, environment, (str(root / "lib"),)))
    return found


def on_two_ranks() -> list[Benchmark]:
    """The benchmarks with data of any length that two ranks can do and no file is needed for."""
    needs_more = {"topology", "nodes", "file"}
    return [
        benchmark
        for benchmark in all_benchmarks()
        if benchmark.sized and benchmark.elements is None and not benchmark.options & needs_more
    ]

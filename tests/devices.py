"""What tests of devices need: the stand-in for the driver, and MPI libraries that know devices.

The suite is run on real MPI libraries. The driver is `tests/fakecuda`, whose memory kills whoever
reads it as if it were the host's.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from tests.conftest import BIN

ROOT = Path(__file__).parent.parent
INTEL_MPI = Path(os.environ.get("OMB_TEST_INTEL_MPI", ROOT / ".intel-mpi"))
"""Folder into which `make` unpacks PyPI's impi-rt."""

CUDA_OPEN_MPI = os.environ.get("OMB_TEST_CUDA_OPEN_MPI")
"""Folder of an Open MPI with CUDA, where the machine has one."""


@dataclass(frozen=True)
class Launcher:
    """An MPI library's way of starting ranks, and the environment that it needs."""

    name: str
    command: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    libraries: tuple[str, ...] = ()

    def run(self, ranks: int, *arguments: str) -> list[str]:
        """The command line of a job."""
        return [*self.command, "-n", str(ranks), str(BIN / "omb-py"), *arguments]

    def with_driver(self, driver: Path) -> dict[str, str]:
        """The environment of a job that finds the stand-in before any real driver."""
        return self.environment | {
            "LD_LIBRARY_PATH": ":".join([str(driver.parent), *self.libraries])
        }


def own_launcher() -> Launcher:
    """The launcher of the MPI library from PyPI in this environment; it knows no devices."""
    return Launcher("own", (str(BIN / "mpiexec"),))


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
        found.append(Launcher("Intel MPI", (str(program),), environment))
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


def libraries() -> list[str]:
    """The buffers that run on the stand-in here: our own arrays, and real ones if installed."""
    from importlib.util import find_spec

    packages = {"raw": "numpy", "numba": "numba_cuda", "pycuda": "pycuda"}
    return [name for name, package in packages.items() if find_spec(package) is not None]

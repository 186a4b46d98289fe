"""What tests of devices need: MPI libraries, and array libraries that run on the stand-in.

The driver is `tests/fakes/cuda_driver`, whose memory kills whoever reads it as if it were the
host's.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from perf.launchers import OMB_PY, Launcher, aware_launchers, own_launcher
from tests import ROOT
from tests.conftest import PLUGIN, Finished, Run, run
from tests.helpers.battery import Start

__all__ = [
    "Launcher",
    "aware_launchers",
    "jobs_on",
    "libraries",
    "on_stand_ins",
    "own_launcher",
    "with_cupy",
    "with_driver",
    "with_nccl4py",
    "with_rocm",
]

FAKES = ROOT / "tests" / "fakes"
WAITING = {"I_MPI_THREAD_YIELD": "3"}
"""Has ranks of Intel MPI sleep while they wait: else they keep busy cores from each other."""


def with_driver(launcher: Launcher, driver: Path) -> dict[str, str]:
    """The environment of a job that finds the stand-in before any real driver."""
    return launcher.with_libraries(str(driver.parent)) | WAITING


def with_cupy() -> dict[str, str]:
    """The environment of a job that finds the stand-in for CuPy."""
    return {"PYTHONPATH": f"{FAKES}:{PLUGIN}"}


def with_rocm() -> dict[str, str]:
    """The environment of a job that finds the stand-in for CuPy as a build for ROCm."""
    return with_cupy() | {"OMB_FAKE_ROCM": "1"}


def with_nccl4py() -> dict[str, str]:
    """The environment of a job that finds the stand-in for nccl4py, and CuPy's without NCCL."""
    path = f"{FAKES / 'nccl4py'}:{with_cupy()['PYTHONPATH']}"
    return {"PYTHONPATH": path, "OMB_FAKE_NO_NCCL": "1"}


def on_stand_ins(driver: Path, launcher: Launcher | None = None, **environment: str) -> Start:
    """Starts jobs of a battery with the stand-in for the driver, with this MPI or another."""
    found = own_launcher() if launcher is None else launcher

    def start(ranks: int, program: tuple[str, ...]) -> tuple[list[str], dict[str, str]]:
        return found.run(ranks, program=program), with_driver(found, driver) | environment

    return start


def jobs_on(
    driver: Path,
    folder: Path,
    environment: Mapping[str, str],
    program: tuple[str, ...] = OMB_PY,
    last: tuple[str, ...] = (),
) -> Run:
    """``job(ranks, *words, **environment)`` runs a program on the stand-in for the driver."""
    started = on_stand_ins(driver, None, **environment)

    def job(ranks: int, *words: str, **more: str) -> Finished:
        command, settings = started(ranks, (*program, *words, *last))
        return run(command, settings | more, folder, timeout=60)

    return job


def libraries() -> list[str]:
    """The buffers that run on the stand-in here: our own arrays, and real ones if installed."""
    from importlib.util import find_spec

    packages = {"raw": "numpy", "numba": "numba_cuda", "pycuda": "pycuda"}
    return [name for name, package in packages.items() if find_spec(package) is not None]

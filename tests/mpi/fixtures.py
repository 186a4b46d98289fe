"""The batteries of this environment's MPI: on the host, and on stand-ins for a device."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import OMB_PY, Finished, Run, run
from tests.helpers.battery import Battery, lines_of
from tests.helpers.devices import on_stand_ins, with_cupy, with_nccl4py, with_rocm

START = ("--with-ft", "ulfm")
"""What Open MPI's launcher needs for a job that outlives its ranks."""


def sentences_of(job: Finished) -> list[str]:
    """What ranks said; MPI_Finalize may hang after a failure, which is no error."""
    return [one for one in job.sentences if "MPI_Finalize" not in one]


def assert_goes_well(job: Finished) -> None:
    """A job that outlives its ranks has done all that it should."""
    assert (job.code, sentences_of(job)) == (0, []), job.err


@pytest.fixture
def outliving(mpi: str, tmp_path: Path) -> Run:
    """``outliving(ranks, *arguments)`` runs the command in a job that outlives its ranks."""

    def start(ranks: int, *arguments: str, **environment: str) -> Finished:
        command = [mpi, *START, "-n", str(ranks), OMB_PY, *arguments]
        return run(command, environment, tmp_path, timeout=100)

    return start


@pytest.fixture(scope="session")
def battery(
    request: pytest.FixtureRequest, mpi: str, tmp_path_factory: pytest.TempPathFactory
) -> Battery:
    """``battery(line)`` is what came of a command line, run with many others in one job."""
    return Battery(lines_of(request, "battery"), tmp_path_factory.mktemp("battery"))


@pytest.fixture(scope="session")
def staged(
    request: pytest.FixtureRequest, mpi: str, driver: Path, tmp_path_factory: pytest.TempPathFactory
) -> Battery:
    """The battery on the stand-in for the CUDA driver."""
    lines, folder = lines_of(request, "staged"), tmp_path_factory.mktemp("staged")
    return Battery(lines, folder, on_stand_ins(driver))


@pytest.fixture(scope="session")
def on_cupy(
    request: pytest.FixtureRequest, mpi: str, driver: Path, tmp_path_factory: pytest.TempPathFactory
) -> Battery:
    """The battery on the stand-ins for the CUDA driver and for CuPy."""
    lines, folder = lines_of(request, "on_cupy"), tmp_path_factory.mktemp("cupy")
    return Battery(lines, folder, on_stand_ins(driver, None, **with_cupy()))


@pytest.fixture(scope="session")
def on_rocm(
    request: pytest.FixtureRequest, mpi: str, hip: Path, tmp_path_factory: pytest.TempPathFactory
) -> Battery:
    """The battery on the stand-ins for HIP and for a CuPy of ROCm; there is no CUDA driver."""
    lines, folder = lines_of(request, "on_rocm"), tmp_path_factory.mktemp("rocm")
    return Battery(lines, folder, on_stand_ins(hip, None, **with_rocm()))


@pytest.fixture(scope="session")
def on_nccl4py(
    request: pytest.FixtureRequest, mpi: str, driver: Path, tmp_path_factory: pytest.TempPathFactory
) -> Battery:
    """The battery on the stand-ins for the CUDA driver, CuPy and nccl4py."""
    lines, folder = lines_of(request, "on_nccl4py"), tmp_path_factory.mktemp("nccl4py")
    return Battery(lines, folder, on_stand_ins(driver, None, **with_nccl4py()))

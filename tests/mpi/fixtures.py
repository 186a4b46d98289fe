"""The batteries of this environment's MPI: on the host, and on stand-ins for a device."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.conftest import OMB_PY, Finished, Run, run
from tests.helpers.battery import Battery, Start, lines_of, own_job
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


Batteries: TypeAlias = Callable[..., Battery]


@pytest.fixture(scope="session")
def batteries(
    request: pytest.FixtureRequest, mpi: str, tmp_path_factory: pytest.TempPathFactory
) -> Batteries:
    """``batteries(name, start)`` is the battery of the tests with a fixture, for that fixture."""

    def made(name: str, start: Start = own_job) -> Battery:
        return Battery(lines_of(request, name), tmp_path_factory.mktemp(name), start)

    return made


@pytest.fixture(scope="session")
def battery(batteries: Batteries) -> Battery:
    """``battery(line)`` is what came of a command line, run with many others in one job."""
    return batteries("battery")


@pytest.fixture(scope="session")
def staged(batteries: Batteries, driver: Path) -> Battery:
    """The battery on the stand-in for the CUDA driver."""
    return batteries("staged", on_stand_ins(driver))


@pytest.fixture(scope="session")
def on_cupy(batteries: Batteries, driver: Path) -> Battery:
    """The battery on the stand-ins for the CUDA driver and for CuPy."""
    return batteries("on_cupy", on_stand_ins(driver, None, **with_cupy()))


@pytest.fixture(scope="session")
def on_rocm(batteries: Batteries, hip: Path) -> Battery:
    """The battery on the stand-ins for HIP and for a CuPy of ROCm; there is no CUDA driver."""
    return batteries("on_rocm", on_stand_ins(hip, None, **with_rocm()))


@pytest.fixture(scope="session")
def on_nccl4py(batteries: Batteries, driver: Path) -> Battery:
    """The battery on the stand-ins for the CUDA driver, CuPy and nccl4py."""
    return batteries("on_nccl4py", on_stand_ins(driver, None, **with_nccl4py()))

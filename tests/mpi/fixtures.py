"""The batteries of this environment's MPI: on the host, and on stand-ins for a device."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.battery import Battery, lines_of
from tests.helpers.devices import on_stand_ins, with_cupy


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

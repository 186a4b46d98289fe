"""The battery of this environment's MPI."""

from __future__ import annotations

import pytest

from tests.battery import Battery, lines_of


@pytest.fixture(scope="session")
def battery(
    request: pytest.FixtureRequest, mpi: str, tmp_path_factory: pytest.TempPathFactory
) -> Battery:
    """``battery(line)`` is what came of a command line, run with many others in one job."""
    return Battery(lines_of(request, "battery"), tmp_path_factory.mktemp("battery"))

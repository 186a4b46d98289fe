"""Applications on device memory: staged through the host, on stand-ins for the driver and CuPy.

This shows that kernels keep the arrays of the device apart from those of the host, call nothing
that CuPy lacks, and copy what MPI moves; never what a device does with it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import PLUGIN, Finished, run
from tests.devices import own_launcher, with_driver
from tests.mpi.test_applications import SMALL, problems

STANDINS = Path(__file__).parent.parent / "standins"
QUICK = ("-i", "1", "-x", "0")


@pytest.fixture
def job(mpi: str, driver: Path, tmp_path: Path) -> Callable[..., Finished]:
    """``job(ranks, *arguments)`` runs an application with the stand-ins for driver and CuPy."""

    def start(ranks: int, *arguments: str) -> Finished:
        own = own_launcher()
        settings = with_driver(own, driver) | {"PYTHONPATH": f"{STANDINS}:{PLUGIN}"}
        command = own.run(ranks, *arguments, "--buffer", "cupy")
        return run(command, settings, tmp_path, timeout=60)

    return start


@pytest.mark.parametrize("problem", [one for name in SMALL for one in problems(name)])
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_the_host_is_kept_apart(job: Callable[..., Finished], problem: str, ranks: int) -> None:
    done = job(ranks, *problem.split(), *QUICK, "--staging")
    assert done.code == 0, done.err
    assert "Pass" in done.out


def test_without_staging_a_library_that_knows_no_devices_is_not_given_one(
    job: Callable[..., Finished],
) -> None:
    done = job(2, "matmul", *QUICK)
    assert done.code == 5
    assert "does not take memory on a device" in done.err
    assert "Traceback" not in done.err

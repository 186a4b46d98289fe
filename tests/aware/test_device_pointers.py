"""Addresses on a device, given to MPI libraries that know devices.

Intel MPI comes from PyPI (`make` unpacks it); an Open MPI with CUDA is used where
OMB_TEST_CUDA_OPEN_MPI names its folder. The device is the stand-in of `tests/fakecuda`, on which
no kernel of theirs runs: Intel MPI adds up long vectors by one, so reductions stay short.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from omb_py.benchmarks import all_benchmarks
from tests.conftest import Finished, rows_of, run
from tests.devices import Launcher, aware_launchers, libraries, with_driver

QUICK = ("-i", "4", "-x", "1", "-u", "1")
SIZED = [benchmark.name for benchmark in all_benchmarks() if benchmark.sized]
REDUCING = {benchmark.name for benchmark in all_benchmarks() if benchmark.reduces}
LAUNCHERS = aware_launchers() or [
    pytest.param(None, marks=pytest.mark.skip("no MPI library here takes memory on a device"))
]


@pytest.fixture(params=LAUNCHERS, ids=lambda launcher: launcher.name if launcher else "none")
def launcher(request: pytest.FixtureRequest) -> Launcher:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def job(launcher: Launcher, driver: Path, tmp_path: Path) -> Callable[..., Finished]:
    """``job(ranks, *arguments)`` runs the suite with an MPI library that knows devices."""

    def start(ranks: int, *arguments: str, **environment: str) -> Finished:
        settings = with_driver(launcher, driver) | environment
        return run(launcher.run(ranks, *arguments), settings, tmp_path, timeout=60)

    return start


@pytest.mark.parametrize("name", SIZED)
@pytest.mark.parametrize("binding", ["buffer", "native"])
def test_data_goes_from_device_to_device(
    job: Callable[..., Finished], name: str, binding: str
) -> None:
    sizes = ("--sizes", "8,60,4000" if name in REDUCING else "8,60,100000")
    done = job(2, name, "--buffer", "raw", "--binding", binding, "-c", *sizes, *QUICK)
    assert done.code == 0, done.err
    assert [row[-1] for row in done.rows] == ["Pass"] * 3


@pytest.mark.parametrize("name", libraries())
@pytest.mark.parametrize("binding", ["buffer", "array", "prebound", "native"])
def test_every_library_in_every_form(job: Callable[..., Finished], name: str, binding: str) -> None:
    for benchmark in ("latency", "bw", "allreduce", "alltoallv"):
        chosen = ("--buffer", name, "--binding", binding, "-c", "--sizes", "0,8,4096")
        done = job(2, benchmark, *chosen, *QUICK)
        assert done.code == 0, done.err
        assert {row[-1] for row in done.rows} == {"Pass"}


@pytest.mark.parametrize("places", [("D", "D"), ("D", "H"), ("H", "D"), ("MD", "D"), ("MH", "H")])
def test_mixed_ends(job: Callable[..., Finished], places: tuple[str, str]) -> None:
    for benchmark in ("latency", "bw", "bibw"):
        done = job(2, benchmark, *places, "--buffer", "raw", "-c", "--sizes", "8,1048576", *QUICK)
        assert done.code == 0, done.err
        assert [row[-1] for row in done.rows] == ["Pass"] * 2


def test_the_library_is_asked_and_can_be_overruled(job: Callable[..., Finished]) -> None:
    refused = job(2, "latency", "--buffer", "raw", "--gpu-aware", "no")
    assert refused.code == 1
    assert "does not take memory on a device (--gpu-aware no)" in refused.err


def test_staging_can_be_measured_beside_it(job: Callable[..., Finished], tmp_path: Path) -> None:
    for staging in ((), ("--staging",)):
        arguments = ("--buffer", "raw", *staging, "--sizes", "8,65536", "--output", "rows.csv")
        assert job(2, "latency", *arguments, *QUICK).code == 0
    rows = rows_of(tmp_path / "rows.csv")
    assert [row["staged"] for row in rows] == ["False", "False", "True", "True"]


def test_operations_that_crash_are_refused(
    job: Callable[..., Finished], launcher: Launcher
) -> None:
    arguments = ("--buffer", "raw", "--binding", "persistent", "-c", "--sizes", "8", *QUICK)
    done = job(2, "allreduce", *arguments)
    if launcher.name == "Open MPI":
        assert done.code == 1
        assert "crashes in MPI_Allreduce_init" in done.err
    else:
        assert done.code == 0, done.err
    assert job(2, "bcast", *arguments).code == 0


def test_other_devices_and_more_ranks(job: Callable[..., Finished]) -> None:
    for name in ("allgather", "bcast", "alltoall", "reduce"):
        arguments = ("--buffer", "raw", "-c", "--sizes", "8,2048", *QUICK)
        done = job(3, name, *arguments, OMB_FAKE_DEVICES="3")
        assert done.code == 0, done.err
        assert [row[-1] for row in done.rows] == ["Pass"] * 2

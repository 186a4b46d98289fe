"""Addresses on a device, given to MPI libraries that know devices.

Intel MPI comes from PyPI (`make` unpacks it); an Open MPI with CUDA is used where
OMB_TEST_CUDA_OPEN_MPI names its folder. The device is the stand-in of `tests/fakecuda`, on which
no kernel of theirs runs: Intel MPI adds up long vectors by one, so reductions stay short.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from omb_py.benchmarks import Benchmark
from tests.battery import Battery, Line, lines_of, passes
from tests.conftest import Finished, rows_of, run
from tests.devices import Launcher, aware_launchers, libraries, with_driver
from tests.mpi.lines import WITH_DATA, lines
from tests.mpi.own_lines import in_place, own_lines

QUICK = ("-i", "4", "-x", "1", "-u", "1")
HOST_ONLY = (
    "allgather_persistent gather_persistent scatter_persistent neighbor_allgather "
    "neighbor_allgatherv ineighbor_allgather ineighbor_allgatherv cas_latency rput_latency rput_bw "
    "rget_latency rget_bw mprobe partitioned_latency partitioned_bw file_write file_read "
    "file_write_all file_read_all"
)
"""What Intel MPI 2021.19 crashes in, or moves wrong data by, with memory on a device."""

LAUNCHERS = aware_launchers() or [
    pytest.param(None, marks=pytest.mark.skip("no MPI library here takes memory on a device"))
]


@pytest.fixture(
    scope="module", params=LAUNCHERS, ids=lambda launcher: launcher.name if launcher else "none"
)
def aware_mpi(request: pytest.FixtureRequest) -> Launcher:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def job(aware_mpi: Launcher, driver: Path, tmp_path: Path) -> Callable[..., Finished]:
    """``job(ranks, *arguments)`` runs the suite with an MPI library that knows devices."""

    def start(ranks: int, *arguments: str, **environment: str) -> Finished:
        settings = with_driver(aware_mpi, driver) | environment
        return run(aware_mpi.run(ranks, *arguments), settings, tmp_path, timeout=60)

    return start


@pytest.fixture(scope="module")
def aware(
    request: pytest.FixtureRequest,
    aware_mpi: Launcher,
    driver: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Battery:
    """The battery with an MPI library that knows devices."""

    def start(ranks: int, program: tuple[str, ...]) -> tuple[list[str], dict[str, str]]:
        return aware_mpi.run(ranks, program=program), with_driver(aware_mpi, driver)

    return Battery(lines_of(request, "aware"), tmp_path_factory.mktemp("aware"), start)


def on_device(binding: str) -> list[Line]:
    """Every benchmark with its messages on the stand-in, reductions short ones."""

    def some(benchmarks: list[Benchmark], largest: str) -> list[Line]:
        options = f"--buffer raw -c -i 4 -x 1 -u 1 --binding {binding}"
        return lines(benchmarks, options, f"--sizes 8,60,{largest}")

    usable = [benchmark for benchmark in WITH_DATA if benchmark.name not in HOST_ONLY.split()]
    reducing = [benchmark for benchmark in usable if benchmark.reduces]
    others = [benchmark for benchmark in usable if not benchmark.reduces]
    return some(reducing, "4000") + some(others, "100000")


@pytest.mark.parametrize("line", on_device("buffer") + on_device("native"), ids=str)
def test_data_goes_from_device_to_device(aware: Battery, line: Line) -> None:
    passes(aware(line))


OWN = own_lines("--buffer raw -c -i 4 -x 1 -u 1", (2, 3)) + own_lines(
    "--buffer raw -c -i 4 -x 1 -u 1 --binding native", (2, 3)
)


@pytest.mark.parametrize("line", OWN + in_place(OWN), ids=str)
def test_own_algorithms_add_up_on_the_device(aware: Battery, line: Line) -> None:
    passes(aware(line), rows=4)


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
    assert refused.code == 5
    assert "does not take memory on a device (--gpu-aware no)" in refused.err


def test_staging_can_be_measured_beside_it(job: Callable[..., Finished], tmp_path: Path) -> None:
    for staging in ((), ("--staging",)):
        arguments = ("--buffer", "raw", *staging, "--sizes", "8,65536", "--output", "rows.csv")
        assert job(2, "latency", *arguments, *QUICK).code == 0
    rows = rows_of(tmp_path / "rows.csv")
    assert [row["staged"] for row in rows] == ["False", "False", "True", "True"]


def test_operations_that_crash_are_refused(
    job: Callable[..., Finished], aware_mpi: Launcher
) -> None:
    arguments = ("--buffer", "raw", "--binding", "persistent", "-c", "--sizes", "8", *QUICK)
    done = job(2, "allreduce", *arguments)
    if aware_mpi.name == "Open MPI":
        assert done.code == 5
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

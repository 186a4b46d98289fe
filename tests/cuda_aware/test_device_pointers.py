"""Addresses on a device, given to MPI libraries that know devices.

Intel MPI comes from PyPI (`make` unpacks it); an Open MPI with CUDA is used where
OMB_TEST_CUDA_OPEN_MPI names its folder. The device is the stand-in of `tests/fakes/cuda_driver`,
on which no kernel of theirs runs: Intel MPI adds up long vectors by one, so reductions stay short.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from omb_py.benchmarks import Benchmark, find_benchmark
from tests.helpers.battery import Battery, Line, each_line, line, lines_of, passes, refused
from tests.helpers.devices import Launcher, aware_launchers, libraries, on_stand_ins, with_cupy
from tests.mpi.lines import WITH_DATA, lines
from tests.mpi.own_lines import in_place, own_lines

CHECKED = "-c -i 4 -x 1 -u 1"
RAW = f"--buffer raw {CHECKED}"
HOST_ONLY = (
    "allgather_persistent gather_persistent scatter_persistent neighbor_allgather "
    "neighbor_allgatherv ineighbor_allgather ineighbor_allgatherv cas_latency rput_latency rput_bw "
    "rget_latency rget_bw mprobe partitioned_latency partitioned_bw file_write file_read "
    "file_write_all file_read_all"
)
"""What Intel MPI 2021.19 crashes in, or moves wrong data by, with memory on a device."""

LAUNCHERS: Sequence[object] = aware_launchers() or [
    pytest.param(None, marks=pytest.mark.skip("no MPI library here takes memory on a device"))
]


@pytest.fixture(
    scope="module", params=LAUNCHERS, ids=lambda launcher: launcher.name if launcher else "none"
)
def aware_mpi(request: pytest.FixtureRequest) -> Launcher:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def aware(
    request: pytest.FixtureRequest,
    aware_mpi: Launcher,
    driver: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Battery:
    """The battery with an MPI library that knows devices."""
    lines, folder = lines_of(request, "aware"), tmp_path_factory.mktemp("aware")
    return Battery(lines, folder, on_stand_ins(driver, aware_mpi, **with_cupy()))


def on_device(binding: str) -> list[Line]:
    """Every benchmark with its messages on the stand-in, reductions short ones."""

    def some(benchmarks: list[Benchmark], largest: str) -> list[Line]:
        return lines(benchmarks, f"{RAW} --binding {binding}", f"--sizes 8,60,{largest}")

    usable = [benchmark for benchmark in WITH_DATA if benchmark.name not in HOST_ONLY.split()]
    reducing = [benchmark for benchmark in usable if benchmark.reduces]
    others = [benchmark for benchmark in usable if not benchmark.reduces]
    return some(reducing, "4000") + some(others, "100000")


@pytest.mark.long
@pytest.mark.product
@each_line(on_device("buffer"), on_device("native"))
def test_data_goes_from_device_to_device(aware: Battery, line: Line) -> None:
    passes(aware(line), broken=True)


OWN = own_lines(RAW, (2, 3))
IN_C = own_lines(f"{RAW} --binding native", (2, 3))
ADDING = [one for one in IN_C if find_benchmark(one.arguments[0]).reduces]
OWN += [one for one in IN_C if one not in ADDING]


@pytest.mark.long
@pytest.mark.product
@each_line(OWN, in_place(OWN))
def test_own_algorithms_add_up_on_the_device(aware: Battery, line: Line) -> None:
    passes(aware(line), rows=4)


@pytest.mark.long
@pytest.mark.product
@each_line(ADDING)
def test_a_loop_of_c_adds_nothing_on_a_device(aware: Battery, line: Line) -> None:
    refused(aware(line), "binding native C, add Python")


@pytest.mark.product
@each_line(
    line(2, f"{benchmark} --buffer {name} --binding {binding} {CHECKED} --sizes 0,8,4096")
    for benchmark in ("latency", "bw", "allreduce", "alltoallv")
    for name in libraries()
    for binding in ("buffer", "array", "prebound", "native")
)
def test_every_library_in_every_form(aware: Battery, line: Line) -> None:
    passes(aware(line), rows=2)


@each_line(
    line(2, f"{benchmark} {places} {RAW} --sizes 8,1048576")
    for benchmark in ("latency", "bw -W 8", "bibw -W 8")
    for places in ("D D", "D H", "H D", "MD D", "MH H")
)
def test_bandwidths_and_latencies_pass_between_host_and_device(aware: Battery, line: Line) -> None:
    passes(aware(line), rows=2)


@each_line(line(2, "latency --buffer raw --gpu-aware no"))
def test_the_library_is_asked_and_can_be_overruled(aware: Battery, line: Line) -> None:
    refused(aware(line), "memory on a device (--gpu-aware no)")


@pytest.mark.parametrize(
    ("line", "staged"),
    [
        (line(2, f"latency --buffer raw {staging} --sizes 8,65536 -i 4 -x 1"), bool(staging))
        for staging in ("", "--staging")
    ],
    ids=str,
)
def test_staging_can_be_measured_beside_it(aware: Battery, line: Line, staged: bool) -> None:
    assert [row["staged"] for row in aware(line).measured] == [staged, staged]


@each_line(
    line(2, f"{name} {RAW} --binding persistent --sizes 8") for name in ("allreduce", "bcast")
)
def test_operations_that_crash_are_refused(aware: Battery, aware_mpi: Launcher, line: Line) -> None:
    if aware_mpi.name == "Open MPI" and line.arguments[0] == "allreduce":
        refused(aware(line), "MPI_Allreduce_init crashes there")
    else:
        passes(aware(line))


def test_other_devices_and_more_ranks(aware_mpi: Launcher, driver: Path, tmp_path: Path) -> None:
    lines = [
        line(3, f"{name} {RAW} --sizes 8,2048")
        for name in ("allgather", "bcast", "alltoall", "reduce")
    ]
    of_three = on_stand_ins(driver, aware_mpi, OMB_FAKE_DEVICES="3")
    battery = Battery(lines, tmp_path, of_three)
    for one in lines:
        passes(battery(one), rows=2)

"""Buffer cupy and binding nccl, on a stand-in for CuPy (`tests/fakes`), which needs a GPU."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Run, rows_of, run, succeeded
from tests.helpers.battery import Battery, Line, completed, each_line, line, passes, refused
from tests.helpers.devices import jobs_on, own_launcher, with_cupy, with_driver, with_nccl4py
from tests.helpers.refusals import assert_refused

QUICK = ("-i", "4", "-x", "1", "-u", "1")
CHECKED = "--buffer cupy -c -i 4 -x 1 -u 1"
ADDED = ("int64", "float32", "float64", "uint8")
NCCL = (
    *("allreduce", "allgather", "bcast", "reduce", "reduce_scatter", "reduce_scatter_block"),
    *("alltoall", "gather", "scatter", "sendrecv", "latency", "bw", "bibw", "multi_lat", "mbw_mr"),
)


@pytest.fixture
def job(mpi: str, driver: Path, tmp_path: Path) -> Run:
    return jobs_on(driver, tmp_path, with_cupy(), last=("--buffer", "cupy"))


@pytest.mark.long
@each_line(line(2, f"{name} --binding nccl {CHECKED} --sizes 8,4096") for name in NCCL)
def test_nccl_moves_the_right_data(on_cupy: Battery, line: Line) -> None:
    passes(on_cupy(line), rows=2)


@pytest.mark.long
@each_line(
    (line(2, f"{name} --binding nccl {CHECKED} --sizes 8,4096") for name in NCCL),
    line(3, f"reduce -k fixed:2 --binding nccl {CHECKED} --sizes 12,1200"),
)
def test_nccl4py_moves_the_right_data(on_nccl4py: Battery, line: Line) -> None:
    passes(on_nccl4py(line), rows=2)


@each_line(
    line(3, f"{words} --exchange pairs --buffer cupy --binding nccl --repeats 1")
    for words in ("transpose_sum --size 37", "merge --rows 900", "dispatch --tokens 99")
)
def test_applications_exchange_by_nccl(on_cupy: Battery, line: Line) -> None:
    (whole,) = completed(on_cupy(line)).measured
    assert whole["check"] == "Pass"


@each_line(
    line(3, f"{words} --binding nccl {CHECKED} --sizes 12,1200")
    for words in ("reduce -k fixed:2", "bcast")
)
def test_any_rank_is_the_root(on_cupy: Battery, line: Line) -> None:
    passes(on_cupy(line), rows=2)


TRAINED = "train --model resnet20 --samples 8 --batch 4 --epochs 2 --repeats 1 --no-references"


@each_line(line(2, f"{TRAINED} --binding nccl --buffer cupy"))
def test_training_over_nccl_is_right(on_cupy: Battery, line: Line) -> None:
    record = completed(on_cupy(line))
    assert record.measured[0]["check"] == "Pass"
    started = [row for row in record.rows if row["part"] == "Epoch 1: communicator"]
    assert [row["time_s"] > 0 for row in started] == [True]


@each_line(line(2, f"allreduce --binding nccl {CHECKED} --sizes 64 -T {name}") for name in ADDED)
def test_sums_of_every_type_of_nccl_pass(on_cupy: Battery, line: Line) -> None:
    passes(on_cupy(line))


def test_rows_have_the_time_of_events_and_the_bus_bandwidth(job: Run, tmp_path: Path) -> None:
    arguments = ("--binding", "nccl", "--busbw", "--sizes", "65536", "-i", "50")
    done = succeeded(job(3, "allreduce", *arguments, "--output", "rows.csv"))
    assert "Busbw(GB/s)" in done.out
    (row,) = rows_of(tmp_path / "rows.csv")
    # the stand-in's events are the host's clock, read just outside of what the host times
    assert float(row["event_p50_us"]) == pytest.approx(float(row["sample_p50_us"]), rel=0.1)
    assert float(row["busbw_GBps"]) == pytest.approx(float(row["algbw_GBps"]) * 4 / 3)
    metadata = (tmp_path / "rows.csv").read_text().splitlines()
    assert "# nccl: 2.32.3 (CuPy 14.0-stand-in)" in metadata


def test_metadata_with_nccl4py_names_it(job: Run, tmp_path: Path) -> None:
    arguments = ("--binding", "nccl", "--sizes", "64", *QUICK, "--output", "rows.csv")
    succeeded(job(2, "allreduce", *arguments, **with_nccl4py()))
    metadata = (tmp_path / "rows.csv").read_text().splitlines()
    assert "# nccl: 2.32.3 (nccl4py 0.6.0)" in metadata


@pytest.mark.long
@pytest.mark.parametrize(
    ("packages", "used"), [(with_cupy, "CuPy 14.0-stand-in"), (with_nccl4py, "nccl4py 0.6.0")]
)
def test_info_names_the_package_that_calls_nccl(
    driver: Path, tmp_path: Path, packages: Callable[[], dict[str, str]], used: str
) -> None:
    settings = with_driver(own_launcher(), driver) | packages()
    done = run([sys.executable, "-m", "omb_py", "info"], settings, tmp_path, timeout=60)
    assert f"nccl            ready   nccl 2.32.3 ({used})" in done.out


def test_nccl4py_without_nccl_says_what_to_install(job: Run) -> None:
    alone = with_nccl4py() | {"OMB_FAKE_NCCL4PY_ALONE": "1"}
    done = job(2, "latency", "--binding", "nccl", "--sizes", "64", **alone)
    assert_refused(done, 8, "nccl4py 0.6.0 no NCCL pip install 'nccl4py[cu13]'")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (line(2, "scan --buffer cupy --binding nccl"), "binding nccl scan"),
        (line(2, "allreduce --buffer cupy --binding nccl -l"), "in-place"),
        (line(2, "latency D H --buffer cupy --binding nccl"), "memory on a device"),
        (line(2, "allreduce --buffer cupy --binding nccl -T complex64 --sizes 64"), "complex64"),
        (line(2, "latency --buffer cupy --staging --binding nccl"), "nccl addresses MPI"),
        (line(2, "latency --buffer cupy -T longdouble --sizes 64"), "type longdouble"),
    ],
    ids=str,
)
def test_impossible_on_nccl_refused(on_cupy: Battery, line: Line, words: str) -> None:
    refused(on_cupy(line), words)


@pytest.mark.parametrize(
    ("setting", "code", "words"),
    [
        ("OMB_FAKE_NO_NCCL", 8, "CuPy 14.0-stand-in no NCCL pip install 'nccl4py[cu13]'"),
        ("OMB_FAKE_NCCL_REFUSES", 8, "NCCL connect NCCL_ERROR_INVALID_USAGE"),
    ],
)
def test_missing_or_broken_nccl_refused(job: Run, setting: str, code: int, words: str) -> None:
    done = job(2, "latency", "--binding", "nccl", "--sizes", "64", **{setting: "1"})
    assert_refused(done, code, words)


def test_algorithm_of_nccl_is_set_before_its_communicator(job: Run, tmp_path: Path) -> None:
    """The stand-in can use no other, as NCCL on a machine without the hardware for it."""
    words = ("allreduce", "--binding", "nccl", "--sizes", "64", *QUICK)
    succeeded(job(2, *words, "--coll-algorithm", "tree_ll", "--output", "rows.csv"))
    (row,) = rows_of(tmp_path / "rows.csv")
    assert row["library_algorithm"] == "tree_ll"
    refused = job(2, *words, "--coll-algorithm", "nvls_tree")
    assert_refused(refused, 3, "NCCL nvls_tree MPI_Allreduce of 64 bytes 2 ranks: conditions")
    assert "quietly" not in refused.err


def test_algorithm_of_older_nccl_refused(job: Run) -> None:
    words = ("allreduce", "--binding", "nccl", "--sizes", "64", *QUICK)
    done = job(2, *words, "--coll-algorithm", "tree_ll", OMB_FAKE_NCCL_VERSION="22304")
    assert_refused(done, (2, 3, 5, 8), "NCCL 2.23.4 quietly tree_ll 2.24 or later")


@each_line(
    line(2, f"{name} --staging {CHECKED} --sizes 8,4096")
    for name in ("latency", "allreduce", "alltoallv")
)
def test_buffer_cupy_through_mpi(on_cupy: Battery, line: Line) -> None:
    passes(on_cupy(line), rows=2)


def test_cupy_says_when_its_memory_is_full(job: Run) -> None:
    small = {"OMB_FAKE_MEMORY": str(300 << 10)}
    done = job(2, "latency", "--staging", "--sizes", "8,1048576", *QUICK, **small)
    assert done.code == 3
    assert [row[0] for row in done.rows] == ["8"]
    assert "cupy cannot allocate 1048576 bytes on device 0" in done.err

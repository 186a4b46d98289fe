"""Buffer cupy and binding nccl, on a stand-in for CuPy (`tests/standins`), which needs a GPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import PLUGIN, Finished, rows_of, run
from tests.devices import assert_refused, own_launcher, with_driver

QUICK = ("-i", "4", "-x", "1", "-u", "1")
STANDINS = Path(__file__).parent.parent / "standins"
NCCL = ("allreduce", "allgather", "bcast", "reduce", "reduce_scatter", "reduce_scatter_block")
NCCL += ("alltoall", "latency", "bw", "bibw", "multi_lat", "mbw_mr")


@pytest.fixture
def job(mpi: str, driver: Path, tmp_path: Path) -> Callable[..., Finished]:
    """``job(ranks, *arguments)`` runs the suite with the stand-ins for driver and CuPy."""

    def start(ranks: int, *arguments: str, **environment: str) -> Finished:
        own = own_launcher()
        settings = with_driver(own, driver) | {"PYTHONPATH": f"{STANDINS}:{PLUGIN}"} | environment
        command = own.run(ranks, *arguments, "--buffer", "cupy")
        return run(command, settings, tmp_path, timeout=60)

    return start


@pytest.mark.parametrize("name", NCCL)
def test_nccl_moves_the_right_data(job: Callable[..., Finished], name: str) -> None:
    done = job(2, name, "--binding", "nccl", "-c", "--sizes", "8,4096", *QUICK)
    assert done.code == 0, done.err
    assert [row[-1] for row in done.rows] == ["Pass"] * 2


@pytest.mark.parametrize("name", ["reduce", "bcast"])
def test_any_rank_is_the_root(job: Callable[..., Finished], name: str) -> None:
    root = ("-k", "fixed:2") if name == "reduce" else ()
    done = job(3, name, "--binding", "nccl", "-c", *root, "--sizes", "12,1200", *QUICK)
    assert done.code == 0, done.err
    assert [row[-1] for row in done.rows] == ["Pass"] * 2


@pytest.mark.parametrize("dtype", ["int64", "float32", "float64", "uint8"])
def test_every_type_that_nccl_adds(job: Callable[..., Finished], dtype: str) -> None:
    done = job(2, "allreduce", "--binding", "nccl", "-T", dtype, "-c", "--sizes", "64", *QUICK)
    assert done.code == 0, done.err


def test_rows_have_the_time_of_events_and_the_bus_bandwidth(
    job: Callable[..., Finished], tmp_path: Path
) -> None:
    arguments = ("--binding", "nccl", "--busbw", "--sizes", "65536", "-i", "50")
    done = job(3, "allreduce", *arguments, "--output", "rows.csv")
    assert done.code == 0, done.err
    assert "Busbw(GB/s)" in done.out
    (row,) = rows_of(tmp_path / "rows.csv")
    # the stand-in's events are the host's clock, read just outside of what the host times
    assert float(row["event_p50_us"]) == pytest.approx(float(row["sample_p50_us"]), rel=0.1)
    assert float(row["busbw_GBps"]) == pytest.approx(float(row["algbw_GBps"]) * 4 / 3)
    assert "# nccl: 2.32.3" in (tmp_path / "rows.csv").read_text().splitlines()


@pytest.mark.parametrize(
    ("arguments", "environment", "words"),
    [
        (("gather", "--binding", "nccl"), {}, "binding nccl has no gather"),
        (("allreduce", "--binding", "nccl", "-l"), {}, "no in-place form"),
        (("latency", "D", "H", "--binding", "nccl"), {}, "memory on a device only"),
        (("allreduce", "--binding", "nccl", "-T", "complex64"), {}, "cannot add complex64"),
        (("latency", "--staging", "--binding", "nccl"), {}, "hands no addresses to MPI"),
        (("latency", "-T", "longdouble"), {}, "no elements of type longdouble"),
        (("latency", "--binding", "nccl"), {"OMB_FAKE_NO_NCCL": "1"}, "CuPy finds no NCCL"),
        (
            ("latency", "--binding", "nccl"),
            {"OMB_FAKE_NCCL_REFUSES": "1"},
            "NCCL cannot connect the ranks (NCCL_ERROR_INVALID_USAGE",
        ),
    ],
)
def test_what_cannot_be_done_is_said(
    job: Callable[..., Finished],
    arguments: tuple[str, ...],
    environment: dict[str, str],
    words: str,
) -> None:
    done = job(2, *arguments, "--sizes", "64", "-i", "1", **environment)
    assert_refused(done, words)


def test_buffer_cupy_through_mpi(job: Callable[..., Finished]) -> None:
    for name in ("latency", "allreduce", "alltoallv"):
        done = job(2, name, "--staging", "-c", "--sizes", "8,4096", *QUICK)
        assert done.code == 0, done.err
        assert [row[-1] for row in done.rows] == ["Pass"] * 2


def test_cupy_says_when_its_memory_is_full(job: Callable[..., Finished]) -> None:
    small = {"OMB_FAKE_MEMORY": str(300 << 10)}
    done = job(2, "latency", "--staging", "--sizes", "8,1048576", *QUICK, **small)
    assert done.code == 3
    assert [row[0] for row in done.rows] == ["8"]
    assert "cupy cannot allocate 1048576 bytes on device 0" in done.err

"""Stopping, warm-up and common starts, on real ranks."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from tests.conftest import BIN, Finished, run

BINDINGS = ["buffer", "native"]


def table(job: Finished) -> pd.DataFrame:
    assert job.code == 0, job.err
    return pd.read_csv(io.StringIO(job.out), comment="#")


@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.parametrize(("name", "ranks"), [("latency", 2), ("bw", 2), ("allreduce", 3)])
def test_a_wide_precision_stops_early(
    mpiexec: Callable[..., Finished], name: str, ranks: int, binding: str
) -> None:
    options = ("--precision", "50%", "--max-time", "5", "--binding", binding, "--format", "csv")
    job = mpiexec(ranks, name, "--sizes", "8,65536", *options)
    rows = table(job)
    assert len(rows) == 2
    halves = (rows.median_high_us - rows.median_low_us) / 2 / rows.sample_p50_us
    reached = halves <= 0.5
    assert reached.all() or "--precision was not reached" in job.err
    assert (rows.iterations >= 50).all()
    assert (rows.warmup >= 10).all()


def test_limits_end_what_no_precision_can(mpiexec: Callable[..., Finished]) -> None:
    options = ("--precision", "0.000001%", "--format", "csv", "--sizes", "8")
    job = mpiexec(2, "allreduce", *options, "--max-iterations", "333")
    assert list(table(job).iterations) == [333]
    (note,) = [line for line in job.err.splitlines() if "--precision was not reached" in line]
    assert "at 8 bytes" in note
    job = mpiexec(2, "allreduce", *options, "--max-time", "0.3")
    assert table(job).iterations[0] > 50
    assert job.seconds < 10


def test_time_limits_default_counts_too(mpiexec: Callable[..., Finished]) -> None:
    job = mpiexec(2, "latency", "--sizes", "4194304", "--max-time", "0.02", "--format", "csv")
    assert table(job).iterations[0] < 1000
    assert "not reached" not in job.err


@pytest.mark.parametrize("binding", BINDINGS)
def test_roots_keep_rotating_when_stretches_are_joined(
    mpiexec: Callable[..., Finished], binding: str
) -> None:
    options = ("-k", "rotate", "--precision", "20%", "--max-time", "1", "-x", "auto")
    rows = table(
        mpiexec(3, "gather", "--sizes", "8", *options, "--binding", binding, "--format", "csv")
    )
    assert rows.iterations[0] >= 50


@pytest.mark.parametrize("binding", BINDINGS)
def test_starts_are_counted_for_counted_iterations(
    mpiexec: Callable[..., Finished], binding: str
) -> None:
    options = ("--sync", "clock", "--precision", "30%", "--max-time", "1", "--binding", binding)
    rows = table(mpiexec(2, "allreduce", "--sizes", "8", *options, "--format", "csv"))
    assert rows.late_starts[0] <= rows.iterations[0]
    assert rows.iterations[0] >= 50


def test_slow_iterations_are_few_when_time_is_short(mpiexec: Callable[..., Finished]) -> None:
    options = ("--binding", "pickle", "--sizes", "4194304", "-x", "3", "--max-time", "0.03")
    rows = table(mpiexec(2, "latency", *options, "--format", "csv"))
    assert rows.iterations[0] < 50


def test_automatic_warm_up_is_counted(mpiexec: Callable[..., Finished]) -> None:
    rows = table(mpiexec(2, "latency", "--sizes", "8", "-x", "auto", "--format", "csv"))
    assert rows.warmup[0] >= 30
    assert rows.iterations[0] == 10_000


def test_the_interval_encloses_the_median(mpiexec: Callable[..., Finished]) -> None:
    rows = table(mpiexec(2, "allreduce", "-m", "1:4096", "-i", "50", "--format", "csv"))
    assert (rows.median_low_us <= rows.sample_p50_us).all()
    assert (rows.sample_p50_us <= rows.median_high_us).all()
    assert (rows.slowest_mean_us >= rows.sample_mean_us * (1 - 1e-6)).all()
    assert (rows.slowest_max_us >= rows.sample_max_us * (1 - 1e-6)).all()


def test_one_timed_rank_has_no_slowest(mpiexec: Callable[..., Finished]) -> None:
    rows = table(mpiexec(2, "latency", "--sizes", "8", "-i", "4", "--format", "csv"))
    assert rows.slowest_mean_us.isna().all()
    assert rows.median_low_us.isna().all()


def test_stats_are_columns_of_the_text(mpiexec: Callable[..., Finished]) -> None:
    job = mpiexec(2, "bcast", "--sizes", "8", "-i", "20", "--stats", "-z50,99.9")
    heading = next(line for line in job.out.splitlines() if line.startswith("# Size"))
    for name in ("Median(us)", "95% from(us)", "Std Dev(us)", "Slowest P50(us)", "P99.9 Tail"):
        assert name in heading
    assert len(job.rows[0]) == 2 + 10 + 2


@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.parametrize(("name", "ranks"), [("allreduce", 2), ("barrier", 2), ("mbw_mr", 2)])
def test_common_starts(
    mpiexec: Callable[..., Finished], name: str, ranks: int, binding: str
) -> None:
    options = ("--sync", "clock", "-i", "200", "--binding", binding, "--format", "csv")
    sizes = ("--sizes", "8,4096") if name != "barrier" else ()
    rows = table(mpiexec(ranks, name, *sizes, *options))
    assert set(rows.sync) == {"clock"}
    assert (rows.late_starts < 200).all()
    assert (rows.late_starts >= 0).all()
    assert (rows.clock_error_us == 0).all()


def test_late_starts_are_a_column_of_the_text(mpiexec: Callable[..., Finished]) -> None:
    job = mpiexec(2, "bcast", "--sizes", "8", "-i", "20", "--sync", "clock")
    assert "Late Starts" in job.out
    assert 0 <= int(job.rows[0][2]) <= 20


def test_without_common_starts_nothing_is_late(mpiexec: Callable[..., Finished]) -> None:
    rows = table(mpiexec(2, "allreduce", "--sizes", "8", "-i", "20", "--format", "csv"))
    assert set(rows.sync) == {"barrier"}
    assert rows.late_starts.isna().all()


OTHER_CLOCK = ["unshare", "--time", "--monotonic", "3600", "--fork"]
ALIGN = """
import mpi4py
mpi4py.rc.thread_level = "single"
from mpi4py import MPI
from time import sleep
from omb_py.clock import SharedClock
clock = SharedClock(MPI.COMM_WORLD)
first = clock.align()
sleep(1.1)
second = clock.align()
clock.free()
text = f"{first.seconds} {first.error} {second.seconds} {second.error} {second.drift}"
for rank in range(MPI.COMM_WORLD.size):
    MPI.COMM_WORLD.Barrier()
    if rank == MPI.COMM_WORLD.rank:
        print(f"{rank} {text}", flush=True)
        sleep(0.1)
"""


def can_have_another_clock() -> bool:
    try:
        return (
            subprocess.run([*OTHER_CLOCK, "true"], capture_output=True, check=False).returncode == 0
        )
    except FileNotFoundError:
        return False


NEEDS_CLOCKS = pytest.mark.skipif(
    not can_have_another_clock(), reason="this user may not make time namespaces"
)


@NEEDS_CLOCKS
def test_an_hour_between_two_clocks_is_found(mpi: str, tmp_path: Path) -> None:
    program = [sys.executable, "-c", ALIGN]
    launch = [mpi, "-n", "2", *program, ":", "-n", "2", *OTHER_CLOCK, *program]
    job = run(launch, {}, tmp_path, timeout=60)
    assert job.code == 0, job.err
    found = [
        [float(cell) for cell in line.split()] for line in sorted(job.out.splitlines()) if line
    ]
    assert [row[0] for row in found] == [0, 1, 2, 3]
    for row in found[:2]:
        assert row[1:] == [0, 0, 0, 0, 0]
    for row in found[2:]:
        assert abs(row[1] + 3600) <= row[2]
        assert abs(row[3] + 3600) <= row[4]
        assert row[2] < 0.1
        assert abs(row[5]) < 0.1


@NEEDS_CLOCKS
@pytest.mark.parametrize("binding", BINDINGS)
def test_ranks_with_clocks_an_hour_apart_start_together(
    mpi: str, tmp_path: Path, binding: str
) -> None:
    program = [str(BIN / "omb-py"), "allreduce", "--sizes", "8", "-i", "100", "--sync", "clock"]
    program += ["--binding", binding, "--format", "csv"]
    launch = [mpi, "-n", "1", *program, ":", "-n", "1", *OTHER_CLOCK, *program]
    rows = table(run(launch, {}, tmp_path, timeout=60))
    assert rows.late_starts[0] < 100
    assert 0 < rows.clock_error_us[0] < 1e5
    assert rows.sample_p50_us[0] < 1e6

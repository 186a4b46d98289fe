"""Stopping, warm-up and common starts, on real ranks."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from tests.conftest import OMB_PY, run, succeeded
from tests.helpers.battery import Battery, Line, Record, each_line, line, refused

BINDINGS = ["buffer", "native"]


def lines(ranks: int, text: str, bindings: list[str] = BINDINGS) -> list[Line]:
    """A command line by each of some bindings."""
    return [line(ranks, f"{text} --binding {binding}") for binding in bindings]


def table(record: Record) -> pd.DataFrame:
    """The rows of a command line, of which there is at least one."""
    assert record.code == 0, record.error
    assert record.rows
    return pd.DataFrame(record.rows)


WIDE = "--sizes 8,65536 --precision 50% --max-time 1"


@each_line(lines(2, f"latency {WIDE}"), lines(2, f"bw {WIDE}"), lines(3, f"allreduce {WIDE}"))
def test_a_wide_precision_stops_early(battery: Battery, line: Line) -> None:
    rows = table(battery(line))
    assert len(rows) == 2
    halves = (rows.median_high_us - rows.median_low_us) / 2 / rows.sample_p50_us
    reached = halves <= 0.5
    assert reached.all() or "--precision was not reached" in battery(line).err
    assert (rows.warmup >= 10).all()


NEVER = "allreduce --sizes 8 --precision 0.000001%"
ITERATIONS = {
    line(2, f"{NEVER} --max-iterations 333"): range(333, 334),
    line(2, f"{NEVER} --max-time 0.3"): range(1, 1 << 60),
    line(2, "latency --sizes 4194304 --max-time 0.02"): range(1, 1000),
    line(2, "latency --sizes 4194304 -x 3 --max-time 0.03 --binding pickle"): range(1, 50),
    line(2, "latency --sizes 8 -x auto -i 500"): range(500, 501),
    **{
        one: range(1, 1 << 60)
        for one in lines(3, "gather --sizes 8 -k rotate --precision 20% --max-time 1 -x auto")
    },
}
"""Iterations that a limit, a precision or neither leaves; of joined stretches roots rotate on."""


@each_line(ITERATIONS)
def test_iterations_end_at_their_limit(battery: Battery, line: Line) -> None:
    (row,) = table(battery(line)).itertuples()
    assert row.iterations in ITERATIONS[line]
    assert row.warmup >= 30 or "auto" not in line.arguments or "gather" in line.arguments
    notes = [text for text in battery(line).err.splitlines() if "not reached" in text]
    if "0.000001%" in line.arguments:
        assert "--precision was not reached" in notes[0]
        assert "at 8 bytes" in notes[0]
        assert len(notes) == 1
    elif "--precision" not in line.arguments:
        assert notes == []


@each_line(lines(2, "allreduce --sizes 8 --sync clock --precision 30% --max-time 1"))
def test_starts_are_counted_for_counted_iterations(battery: Battery, line: Line) -> None:
    rows = table(battery(line))
    assert 0 <= rows.late_starts[0] <= rows.iterations[0]


@each_line(line(2, "allreduce -m 1:4096 -i 200"))
def test_the_interval_encloses_the_median(battery: Battery, line: Line) -> None:
    rows = table(battery(line))
    known = rows[rows.median_low_us.notna()]  # samples of a busy machine may be all alike
    assert len(known) > 0
    assert (known.median_low_us <= known.sample_p50_us).all()
    assert (known.sample_p50_us <= known.median_high_us).all()
    assert (rows.slowest_mean_us >= rows.sample_mean_us * (1 - 1e-6)).all()
    assert (rows.slowest_max_us >= rows.sample_max_us * (1 - 1e-6)).all()


@each_line(line(2, "latency --sizes 8 -i 4"))
def test_one_timed_rank_has_no_slowest(battery: Battery, line: Line) -> None:
    rows = table(battery(line))
    assert rows.slowest_mean_us.isna().all()
    assert rows.median_low_us.isna().all()


@each_line(line(2, "bcast --sizes 8 -i 20 --stats -z50,99.9"))
def test_stats_are_columns_of_the_text(battery: Battery, line: Line) -> None:
    *_, heading, row = battery(line).out.splitlines()
    for name in ("Median(us)", "95% from(us)", "Std Dev(us)", "Slowest P50(us)", "P99.9 Tail"):
        assert name in heading
    assert len(row.split()) == 2 + 10 + 2


COMMON = "--sync clock -i 200"


@each_line(
    lines(2, f"allreduce --sizes 8,4096 {COMMON}"),
    lines(2, f"barrier {COMMON}"),
    lines(2, f"mbw_mr --sizes 8,4096 {COMMON}"),
)
def test_common_starts(battery: Battery, line: Line) -> None:
    rows = table(battery(line))
    assert set(rows.sync) == {"clock"}
    assert (rows.late_starts <= 200).all()
    assert (rows.late_starts >= 0).all()
    assert (rows.clock_error_us == 0).all()
    assert (rows.completion_p50_us >= rows.sample_p50_us).all()
    assert (rows.completion_p99_us >= rows.completion_p50_us).all()


COLD = "--cold --sizes 1024 -i 5 -x 1"


@each_line(
    *(line(2, f"latency {COLD} --binding {name}") for name in ("buffer", "native", "pickle")),
    line(2, f"latency {COLD} --binding tcp"),
    line(2, f"allreduce {COLD} --sync clock"),
    line(2, f"ibcast {COLD} -c"),
)
def test_caches_are_flushed_before_each_iteration(battery: Battery, line: Line) -> None:
    record = battery(line)
    rows = table(record)
    assert rows.cold.all()
    assert ", cold)" in record.out


@each_line(line(2, "latency_mt --cold -t 2"))
def test_several_threads_do_not_flush_caches(battery: Battery, line: Line) -> None:
    refused(battery(line), "--cold is for one thread a rank")


@each_line(line(2, "bcast --sizes 8 -i 20 --sync clock"))
def test_late_starts_are_a_column_of_the_text(battery: Battery, line: Line) -> None:
    out = battery(line).out
    assert "Late Starts" in out
    _, _, late, completion = out.splitlines()[-1].split()
    assert 0 <= int(late) <= 20
    assert float(completion) > 0


@each_line(line(2, "allreduce --sizes 8 -i 20"))
def test_without_common_starts_nothing_is_late(battery: Battery, line: Line) -> None:
    rows = table(battery(line))
    assert set(rows.sync) == {"barrier"}
    assert rows.late_starts.isna().all()


OTHER_CLOCK = ["unshare", "--time", "--monotonic", "3600", "--fork"]
ALIGN = """
import mpi4py
mpi4py.rc.thread_level = "single"
from mpi4py import MPI
from time import sleep
from omb_py.core.mpi.clock import SharedClock
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


@pytest.mark.long
@NEEDS_CLOCKS
def test_an_hour_between_two_clocks_is_found(mpi: str, tmp_path: Path) -> None:
    program = [sys.executable, "-c", ALIGN]
    launch = [mpi, "-n", "2", *program, ":", "-n", "2", *OTHER_CLOCK, *program]
    job = succeeded(run(launch, {}, tmp_path, timeout=240))
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


@pytest.mark.long
@NEEDS_CLOCKS
@pytest.mark.parametrize("binding", BINDINGS)
def test_ranks_start_together_on_any_clocks(mpi: str, tmp_path: Path, binding: str) -> None:
    program = [OMB_PY, "allreduce", "--sizes", "8", "-i", "100", "--sync", "clock"]
    program += ["--binding", binding, "--format", "csv"]
    launch = [mpi, "-n", "1", *program, ":", "-n", "1", *OTHER_CLOCK, *program]
    job = succeeded(run(launch, {}, tmp_path, timeout=240))
    rows = pd.read_csv(io.StringIO(job.out), comment="#")
    assert rows.late_starts[0] <= 100
    assert 0 < rows.clock_error_us[0] < 1e5
    assert rows.sample_p50_us[0] < 1e6

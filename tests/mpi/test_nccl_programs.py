"""nccl-tests' programs by their names on real ranks: definitions, checks and failures."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from omb_py.benchmarks import find_benchmark
from omb_py.cli import NCCL_PROGRAMS
from omb_py.core.options import Options
from omb_py.results.nccl import OF_BLOCKS, PROGRAMS
from tests.conftest import Finished, Run, rows_in_text, run, succeeded
from tests.helpers import torchrun
from tests.helpers.devices import jobs_on, with_cupy
from tests.helpers.reading import read, read_file
from tests.helpers.refusals import assert_refused
from tests.helpers.torchrun import needs_torchrun

NAMES = [name for name in NCCL_PROGRAMS if not name.endswith("_mpi")]
SIZES = ("-b", "16", "-e", "64K", "-f", "16", "-n", "4", "-w", "1", "-c", "2")
UNCHECKED = ("alltoall_perf", "sendrecv_perf")


def rows_of(done: Finished) -> list[dict[str, Any]]:
    """The results in a program's text, by our own reader, which must have nothing to say."""
    found = read("job.log", succeeded(done).out.encode())
    assert all("no bytes" in problem.text for problem in found.problems)
    return found.rows


def check(name: str, done: Finished, ranks: int, binding: str) -> None:
    """Assert that a program's rows are right by the definitions, and complete."""
    program = name.removesuffix("_perf")
    benchmark = find_benchmark(PROGRAMS[program])
    rows = rows_of(done)
    assert {row["benchmark"] for row in rows} == {benchmark.name}
    assert {(row["ranks"], row["binding"]) for row in rows} == {(ranks, binding)}
    assert [row["in_place"] for row in rows] == [False, True] * (len(rows) // 2)
    largest = max(row["bytes"] for row in rows)
    part = 65536 // 4 // ranks * 4 // 16 * 16
    whole = part * ranks if program == "reduce_scatter" else 1 << 16
    assert largest == (part if program in OF_BLOCKS else whole)
    for row in rows:
        unchecked = row["in_place"] and name in UNCHECKED
        assert row.get("validation") == (None if unchecked else "Pass")
        if benchmark.traffic is not None:
            size, factor = benchmark.traffic(Options(), row["bytes"], ranks)
            assert row["algbw_GBps"] == pytest.approx(size / row["latency_us"] / 1e3, 0.02, 0.006)
            assert row["busbw_GBps"] == pytest.approx(row["algbw_GBps"] * factor, 0.01, 0.015)
    assert "# Out of bounds values : 0 OK" in done.out


@pytest.mark.product
@pytest.mark.parametrize("name", NAMES)
def test_programs_measure_by_mpi_in_place_and_out_of_place(mpiexec: Run, name: str) -> None:
    check(name, mpiexec(3, name, *SIZES, timeout=60), 3, "buffer")


@needs_torchrun
@pytest.mark.long
@pytest.mark.product
@pytest.mark.parametrize("name", [one for one in NAMES if one != "reduce_scatter_perf"])
def test_programs_measure_by_torch_and_gloo(name: str, tmp_path: Path) -> None:
    done = torchrun.run(name, *SIZES, folder=tmp_path, ranks=3)
    check(name, done, 3, "torch")
    assert "backend=gloo" in done.out.splitlines()[0]


@pytest.mark.long
@pytest.mark.product
@pytest.mark.parametrize("name", NAMES)
def test_programs_measure_by_nccl(name: str, mpi: str, driver: Path, tmp_path: Path) -> None:
    job = jobs_on(driver, tmp_path, with_cupy(), last=("--binding", "nccl"))
    check(name, job(3, name, *SIZES), 3, "nccl")


def test_the_factor_of_the_bus_bandwidth_is_that_of_omb_pys_own_command(mpiexec: Run) -> None:
    row, _ = rows_of(mpiexec(3, "all_reduce_perf", "-b", "4M", "-e", "4M", "-n", "5"))
    words = ("--sizes", "4194304", "-T", "float32", "-i", "5", "--busbw", "--format", "csv")
    (own,) = rows_in_text(succeeded(mpiexec(3, "allreduce", *words)).out)
    assert (own["benchmark"], int(own["bytes"])) == (row["benchmark"], row["bytes"])
    factor = float(own["busbw_GBps"]) / float(own["algbw_GBps"])
    assert factor == pytest.approx(4 / 3)
    assert row["busbw_GBps"] == pytest.approx(row["algbw_GBps"] * factor, abs=0.02)


def test_json_and_text_have_the_same_rows(mpiexec: Run, tmp_path: Path) -> None:
    words = ("-b", "1K", "-e", "64K", "-f", "4", "-d", "all", "-J", "out.json")
    done = succeeded(mpiexec(2, "all_gather_perf", *words))
    text, document = read("job.log", done.out.encode()), read_file(tmp_path / "out.json")
    assert not document.problems
    numbers = ("latency_us", "algbw_GBps", "busbw_GBps")
    for ours, theirs in zip(text.rows, document.rows, strict=True):
        for name in numbers:  # the text has two decimals
            assert ours[name] == pytest.approx(theirs[name], abs=0.0051)
        others = ours.keys() - {*numbers, "line", "run"}
        assert {name: ours[name] for name in others} == {name: theirs[name] for name in others}
    assert {row["buffer"] for row in document.rows} == {"numpy"}


def test_a_json_file_that_is_there_is_kept(mpiexec: Run, tmp_path: Path) -> None:
    (tmp_path / "out.json").write_text("mine")
    done = succeeded(mpiexec(1, "reduce_perf", "-b", "64", "-e", "64", "-J", "out.json"))
    assert done.out.startswith("# Writing JSON output to out.json.0\n")
    assert (tmp_path / "out.json").read_text() == "mine"
    assert read_file(tmp_path / "out.json.0").rows


def test_every_rank_in_turn_is_the_root(mpiexec: Run) -> None:
    done = mpiexec(3, "broadcast_perf", "-b", "64", "-e", "128", "-f", "2", "-r", "-1", "-N", "2")
    rows = [line.split() for line in succeeded(done).out.splitlines() if line[:1] == " "]
    assert [(row[0], row[4]) for row in rows] == [
        (size, root) for root in ("0", "1", "2") for size in ("64", "128") * 2
    ]


def test_one_flipped_byte_is_one_wrong_element_and_the_job_fails(mpiexec: Run) -> None:
    words = ("-b", "64", "-e", "128", "-f", "2", "--binding", "corrupting")
    done = mpiexec(2, "all_reduce_perf", *words)
    rows = [line.split() for line in done.out.splitlines() if not line.startswith("#") and line]
    assert [(row[0], row[8], row[12]) for row in rows] == [("64", "1", "1"), ("128", "1", "1")]
    assert "# Out of bounds values : 4 FAILED" in done.out
    assert_refused(done, 1, "4 times a rank found wrong data #wrong 'omb-py allreduce -c'")


def test_too_low_a_bandwidth_fails_after_all_rows(mpiexec: Run) -> None:
    words = ("-b", "64", "-e", "64")
    done = mpiexec(2, "all_reduce_perf", *words, NCCL_TESTS_MIN_BW="1000000")
    assert re.search(r"Avg bus bandwidth    : \S+ FAILED\n", done.out)
    assert_refused(done, 1, "NCCL_TESTS_MIN_BW=1e+06")
    assert " OK\n" in succeeded(mpiexec(2, "all_reduce_perf", *words, NCCL_TESTS_MIN_BW="0")).out


def test_ranks_with_other_options_are_refused_by_one_rank(mpi: str, tmp_path: Path) -> None:
    program = [sys.executable, "-m", "omb_py", "all_reduce_perf", "-b"]
    command = [mpi, "-n", "1", *program, "1M", ":", "-n", "1", *program, "2M"]
    done = run(command, {}, tmp_path, timeout=60)
    assert_refused(done, 2, "rank 1 command line 2M 1M")


def test_a_root_that_is_not_there_is_refused_by_one_rank(mpiexec: Run) -> None:
    assert_refused(mpiexec(2, "reduce_perf", "-r", "2"), 2, "-r no rank 2 1")


@pytest.mark.parametrize("blocking", ["0", "1", "2", "3"])
@pytest.mark.parametrize("average", ["0", "1", "2", "3"])
def test_every_way_to_wait_and_to_average_has_times(
    mpiexec: Run, blocking: str, average: str
) -> None:
    words = ("-b", "1K", "-e", "1K", "-z", blocking, "-a", average, "-m", "2", "-c", "0")
    rows = rows_of(mpiexec(2, "all_reduce_perf", *words))
    assert all(0 < row["latency_us"] < 1e6 and "validation" not in row for row in rows)


@pytest.mark.long
@needs_torchrun
def test_ranks_that_srun_starts_meet_without_mpi(tmp_path: Path) -> None:
    python = torchrun.python_with_torch()
    start = "import sys; sys.modules['mpi4py'] = None; sys.argv[0] = 'all_reduce_perf'\n"
    (tmp_path / "start.py").write_text(start + "from omb_py.cli import main; main()\n")
    environment = torchrun.environment(tmp_path) | {
        "SLURM_STEP_NUM_TASKS": "2",
        "SLURM_STEP_NODELIST": "localhost",
        "MASTER_PORT": str(torchrun.free_port()),
    }
    processes = [
        subprocess.Popen(
            [str(python), "start.py", "-b", "1K", "-e", "1K"],
            env=environment | {"SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank)},
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    first, second = (process.communicate(timeout=60)[0] for process in processes)
    assert [process.returncode for process in processes] == [0, 0]
    assert {row["ranks"] for row in read("job.log", first.encode()).rows} == {2}
    assert second == ""

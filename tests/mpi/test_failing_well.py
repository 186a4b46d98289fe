"""Whatever goes wrong: one sentence from one rank, a non-zero exit code, nothing left behind."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import BIN, OMB_PY, Finished, Run, rows_of, run, succeeded
from tests.helpers.battery import Battery, Line, each_line, line, refused
from tests.helpers.refusals import ANY_CODE, ENDED, assert_names, assert_refused, missing

FEW = ("-i", "2", "-x", "1")
QUICK = (*FEW, "--sizes", "8")


FOUND_BY: dict[Line, str] = {
    line(2, "alreduce"): "unknown benchmark 'alreduce' did you mean allreduce",
    line(2, "latency --no-such-option"): "--no-such-option",
    line(3, "latency"): "exactly 2 ranks this job has 3",
    line(2, "latency_mt --thread-level single"): "latency_mt needs thread level multiple",
    line(2, "bw -clog:/proc/none"): "cannot write /proc/none for -clog",
    line(2, "latency --output no/folder/results.csv"): "there is no folder no",
    line(2, f"latency --sizes {1 << 60} -M 8000000000G"): "cannot allocate",
    line(2, "file_write --file /no/such/folder/data"): "cannot make this file",
}
"""What is found by the command line, by all ranks, by rank 0, or by one when it measures."""

WRONG: dict[Line, str] = {
    line(2, "latency --buffer numpi"): "unknown buffer 'numpi' numba, numpy",
    line(2, "latency --binding nativ"): "unknown binding 'nativ' buffer, coroutine",
    line(2, "latency -T mpi_string"): "unknown type 'mpi_string' mpi_char",
    line(1, "latency"): "exactly 2 ranks this job has 1",
    line(3, "bw"): "exactly 2 ranks",
    line(3, "multi_lat"): "an even number of ranks this job has 3",
    line(3, "mbw_mr"): "an even number of ranks",
    line(2, "mbw_mr -p 2"): "at most 1 pairs",
    line(2, "spawn --binding native -i 1"): "binding native has no comm_spawn",
    line(2, "iallreduce -r gpu"): "-r gpu which buffer numpy has not",
    line(2, "latency -m 64:8"): "64 larger than the largest 8",
    line(2, "latency -m 8388608:"): "larger than the largest",
    line(2, "latency -m -5"): "not a number of bytes",
    line(2, "latency -m lots"): "'lots' is not a number of bytes",
    line(2, "latency --sizes 1,-2"): "'-2' is not a number of bytes",
    line(2, "latency --sizes 1 -T float64"): "no message size to measure",
    line(2, "bw -W 0"): "--window-size 0 is not in the range x>=1",
    line(2, "bw -i 0"): "--iterations",
    line(2, "bw -W 3:4"): "--window-size '3:4' is not a whole number",
    line(2, "bw -d cuda"): "-d cuda: --buffer cupy",
    line(2, "neighbor_allgather -N graph:/dev/zero"): "cannot read /dev/zero: it is a device",
    line(2, "bw -D indx:/dev/zero"): "cannot read /dev/zero: it is a device",
    line(2, "bw -z101"): "101 is not a percentage",
    line(2, "latency -c -D vect:8:4"): "exclude each other",
    line(2, "gather -k fixed:2"): "there is no rank 2",
    line(2, "gather -k moving"): "neither fixed:RANK nor rotate",
    line(2, "alltoall -m 1048576 -M 1M"): "memory limit raise -M",
    line(2, "latency --output results.txt"): ".csv or .json",
    line(2, "latency --output /proc/none/results.csv"): "cannot write --output",
    line(2, "latency D"): "both ends",
    line(2, "latency -m 1152921504606846976"): "memory limit raise -M",
    line(2, "neighbor_allgather"): "a grid of 2 start 3 ranks or more",
    line(2, "ineighbor_alltoall -N graph:/no/such"): "cannot read /no/such",
    line(2, "bw_fan_in"): "2 ranks are on 1 node --node-map",
    line(3, "put_latency"): "exactly 2 ranks this job has 3",
    line(2, "put_latency -w heap"): "'heap' is not one of dynamic",
    line(2, "cas_latency -T float32"): "only integers, not float32",
    line(2, "latency_mt -t 1:0"): "each side needs at least 1",
    line(2, "latency_mt --binding pkl5"): "one thread receive at a time",
    line(2, "iallreduce --binding pickle"): "binding pickle has no iallreduce",
    line(2, "put_latency --binding persistent"): "which MPI cannot set up",
    line(2, "file_write"): "--file",
}
"""More of what command lines ask for in vain."""


@each_line(WRONG)
def test_refused_command_names_value_and_fix(battery: Battery, line: Line) -> None:
    refused(battery(line), WRONG[line])


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        pytest.param(line(3, "latency"), marks=pytest.mark.smoke),
        *(one for one in FOUND_BY if one != line(3, "latency")),
        *(pytest.param(one, marks=pytest.mark.exhaustive) for one in WRONG),
    ],
    ids=str,
)
def test_what_cannot_be_done_is_said(mpiexec: Run, line: Line) -> None:
    job = mpiexec(line.ranks, *line.arguments)
    assert_refused(job, ANY_CODE, (FOUND_BY | WRONG)[line])
    assert job.rows == []


def ended_by_timeout(job: Callable[[int], Finished], stage: str) -> tuple[Finished, int]:
    """A job with so short a timeout that it ends it, though not before all ranks are at a stage.

    On a busy machine ranks need more of them to come so far.
    """
    for seconds in (1, 5, 25):
        done = job(seconds)
        if len(done.sentences) == 1 and stage in done.err:
            break
    return done, seconds


def left_behind(text: str) -> list[str]:
    """Command lines with ``text`` still running when the launcher has been gone a while."""
    deadline = time.monotonic() + 30
    while running_with(text) and time.monotonic() < deadline:
        time.sleep(0.1)
    return running_with(text)


def running_with(text: str) -> list[str]:
    """Command lines of processes that have ``text`` in theirs."""
    found = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = process.read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if text in line:
            found.append(line)
    return found


@pytest.mark.parametrize(
    ("binding", "words"),
    [("raising", "rank 1 RuntimeError: the network is on fire"), ("killed", "")],
)
def test_failing_rank_leaves_its_rows(
    mpiexec: Run, tmp_path: Path, binding: str, words: str
) -> None:
    output = tmp_path / "rows.csv"
    job = mpiexec(
        *(2, "latency", "--sizes", "1,2,8,16", "-i", "10", "--binding", binding),
        *("--output", str(output)),
        OMB_TEST_RANK="1",
    )
    assert job.code != 0
    assert job.seconds < 60
    assert "Traceback" not in job.err
    if words:
        assert_refused(job, ENDED, words)
    assert [row["bytes"] for row in rows_of(output)] == ["1", "2"]
    assert left_behind(str(output)) == []


def test_debug_shows_the_traceback(mpiexec: Run) -> None:
    job = mpiexec(2, "latency", *QUICK, "--binding", "raising", "--debug", OMB_TEST_RANK="0")
    assert "Traceback" in job.err
    assert job.code != 0


def test_a_rank_that_hangs_is_ended_by_the_timeout(mpiexec: Run, tmp_path: Path) -> None:
    output = tmp_path / "rows.csv"
    words = ("latency", "--sizes", "1,8", *FEW, "--binding", "hanging", "--output", str(output))
    job, seconds = ended_by_timeout(
        lambda timeout: mpiexec(2, *words, "--timeout", f"{timeout}", "--force", OMB_TEST_RANK="1"),
        "8 bytes",
    )
    assert_refused(job, ENDED, f"no progress for {seconds} s measuring latency --timeout")
    assert [row["bytes"] for row in rows_of(output)] == ["1"]
    assert left_behind(str(output)) == []


@pytest.mark.product(strength=0)
@pytest.mark.parametrize("binding", ["buffer", "native"])
def test_ranks_that_work_for_too_long_are_not_said_to_hang(mpiexec: Run, binding: str) -> None:
    """Nor are so many times allocated before the first call."""
    words = ("allreduce", "--sizes", "8", "-i", "99999999999", "--binding", binding)
    job, seconds = ended_by_timeout(
        lambda timeout: mpiexec(2, *words, "--timeout", f"{timeout}"), "of 100000000099 iterations"
    )
    assert_refused(job, ENDED, f"the time limit of {seconds} s passed or lower -i")
    assert "hangs" not in job.err


@pytest.mark.parametrize(
    ("words", "note"),
    [
        ("latency --binding stepping", "note: clock back 8 bytes: below zero"),
        ("allreduce -c --sync clock", "note: --sync clock no effect -c"),
    ],
)
def test_what_changes_a_result_is_noted(mpiexec: Run, words: str, note: str) -> None:
    job = succeeded(mpiexec(2, *words.split(), *QUICK))
    (sentence,) = job.sentences
    assert_names(sentence, note)


def test_a_rank_that_never_arrives_is_ended_by_the_timeout(mpi: str, tmp_path: Path) -> None:
    sleep = ["sleep", f"100.{os.getpid()}"]

    def start(timeout: int) -> Finished:
        here = [OMB_PY, "latency", "--timeout", f"{timeout}"]
        return run([mpi, "-n", "1", *here, ":", "-n", "1", *sleep], {}, tmp_path, 120)

    job, seconds = ended_by_timeout(start, "starting MPI")
    assert_refused(job, ENDED, f"no progress for {seconds} s")
    assert left_behind(" ".join(sleep)) == []


def test_killed_watchdog_is_noted(mpiexec: Run, tmp_path: Path) -> None:
    words = ("allreduce", "--sizes", "4,8,16", *FEW, "--binding", "unwatched", "--timeout", "60")
    job = succeeded(mpiexec(1, *words, "--output", "rows.csv", OMB_TEST_RANK="0"))
    note = "note: rank 0: what watches --timeout was killed: nothing ends a hang"
    assert job.sentences == [f"omb-py: {note}"]
    assert [row["bytes"] for row in rows_of(tmp_path / "rows.csv")] == ["4", "8", "16"]


@pytest.mark.smoke
def test_a_timeout_that_is_not_reached_changes_nothing(mpiexec: Run) -> None:
    job = succeeded(mpiexec(2, "latency", *QUICK, "-c", "--timeout", "60"))
    assert job.sentences == []
    assert [row[-1] for row in job.rows] == ["Pass"]


def test_launcher_of_another_mpi_is_named(omb_py: Run) -> None:
    job = omb_py("latency", MV2_COMM_WORLD_SIZE="2")
    assert_refused(job, ANY_CODE, "the launcher started 2 processes mpiexec")


def test_a_full_disk_is_said(mpiexec: Run, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").symlink_to("/dev/full")
    job = mpiexec(2, "latency", *QUICK, "--output", "rows.csv")
    assert_refused(job, ANY_CODE, "cannot write rows.csv No space left")


def test_sentences_that_find_no_room_change_nothing_else(mpi: str, tmp_path: Path) -> None:
    """Notes are no reason to stop, and a rank that fails ends the job."""
    words = ["allreduce", *QUICK, "-c", "--sync", "clock", "--output", "rows.csv"]
    command = f"{mpi} -n 2 sh -c 'exec {OMB_PY} \"$@\" 2> /dev/full' - "
    succeeded(run(["bash", "-c", f"{command} {' '.join(words)}"], {}, tmp_path, 120))
    assert [row["bytes"] for row in rows_of(tmp_path / "rows.csv")] == ["8"]
    raising = f"{command} latency {' '.join(QUICK)} --binding raising"
    failing = run(["bash", "-c", raising], {"OMB_TEST_RANK": "1"}, tmp_path, 60)
    assert failing.code != 0


@pytest.mark.parametrize("variable", ["PMI_RANK", "PMIX_RANK", "OMB_PY_EXPECTED_RANKS"])
def test_launcher_variables_without_a_number_are_ignored(omb_py: Run, variable: str) -> None:
    job = succeeded(omb_py("list", **{variable: "\u00b2"}))
    assert "latency" in job.out


@pytest.mark.parametrize(
    ("placement", "notes"), [("D D", "note: buffer numpy no device: D D H H"), ("H H", "")]
)
def test_places_are_the_host(mpiexec: Run, tmp_path: Path, placement: str, notes: str) -> None:
    job = succeeded(mpiexec(2, "latency", *QUICK, *placement.split(), "--output", "rows.csv"))
    assert len(job.sentences) == bool(notes)
    assert not missing(notes, job.sentences)
    assert [row["placement"] for row in rows_of(tmp_path / "rows.csv")] == ["H"]
    assert "H H" not in job.out


def test_stdout_can_be_closed_early(tmp_path: Path) -> None:
    command = f"{BIN / 'omb-py'} list | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_benchmark_without_data_to_check_fails(mpiexec: Run, tmp_path: Path) -> None:
    (tmp_path / "forgetful.py").write_text(
        "from dataclasses import replace\n"
        "from omb_py.benchmarks import find_benchmark\n"
        "BCAST = find_benchmark('bcast')\n"
        "def plan(case):\n"
        "    plan = BCAST.plan(case)\n"
        "    exchanges = tuple(replace(one, outputs=()) for one in plan.exchanges)\n"
        "    return replace(plan, exchanges=exchanges)\n"
        "BENCHMARKS = (replace(BCAST, name='forgetful', plan=plan),)\n"
    )
    folder = tmp_path / "forgetful-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: forgetful\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(
        "[omb_py.benchmarks]\nforgetful = forgetful:BENCHMARKS\n"
    )
    job = mpiexec(2, "forgetful", "-c", *QUICK, PYTHONPATH=str(tmp_path))
    assert_refused(job, ANY_CODE, "forgetful does not say what data should arrive")
    assert "Pass" not in job.out


def test_a_type_that_cannot_be_measured_leaves_the_others(mpiexec: Run, tmp_path: Path) -> None:
    words = ("-i", "4", "-x", "1", "-T", "all", "-q", "--output", "rows.csv")
    job = mpiexec(2, "cas_latency", *words)
    assert_refused(job, 3, "left out types mpi_float, float64, MPI integers mpi_float")
    measured = {row["dtype"] for row in rows_of(tmp_path / "rows.csv")}
    assert measured == {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
    none = mpiexec(2, "cas_latency", "-T", "float32", "-T", "float64", "-q")
    assert_refused(none, 5, "only integers, not float32")

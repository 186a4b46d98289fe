"""Whatever goes wrong: one sentence from one rank, a non-zero exit code, nothing left behind."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from omb_py.benchmarks import all_benchmarks
from omb_py.core import mpi
from omb_py.core.errors import UsageError
from tests.conftest import BIN, MPIEXEC, OMB_PY, Finished, Run, rows_of, run, succeeded
from tests.helpers.pace import slowness
from tests.helpers.refusals import ANY_CODE, ENDED, assert_names, assert_refused, missing
from tests.helpers.waiting import ended_by_timeout, processes_with, wait_for
from tests.mpi.vendor import VENDOR

FEW = ("-i", "2", "-x", "1")
QUICK = (*FEW, "--sizes", "8")

MEMORYLESS = ("barrier", "ibarrier", "barrier_persistent", "comm_dup", "comm_split", "spawn")
"""Benchmarks without messages."""


def test_all_ranks_leave_out_what_one_has_no_memory_for(mpi: str, tmp_path: Path) -> None:
    names = [
        one.name
        for one in all_benchmarks()
        if one.planned and "topology" not in one.options and one.name not in MEMORYLESS
    ]
    program, found = Path(__file__).parent / "programs" / "scarce_memory.py", tmp_path / "found"
    words = [sys.executable, str(program), str(found), *names]
    succeeded(run([MPIEXEC, "-n", "2", *words], {}, tmp_path, timeout=60))
    first, second = json.loads(found.read_text())
    assert first == second
    unsaid = [name for name in names if "bytes here: lower -m" not in first.get(name, "")]
    assert not unsaid


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
    assert job.seconds < 60 * slowness()
    assert "Traceback" not in job.err
    if words:
        assert_refused(job, ENDED, words)
    assert [row["bytes"] for row in rows_of(output)] == ["1", "2"]
    wait_for(lambda: not processes_with(str(output)), 30)


UNHEARD = """
export PMI_JOBID=1.0 RANK_HERE=${OMPI_COMM_WORLD_RANK-$PMI_RANK}
unset OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_LOCAL_RANK
exec sh -c "$*"
"""
"""A rank whose launcher is one that leaves the others waiting if a rank ends, as Slurm's is."""


@pytest.fixture
def unheard(mpi: str, tmp_path: Path) -> Run:
    """Runs a command of the shell on ranks that no launcher ends; $RANK_HERE is the rank."""

    def start(ranks: int, command: str) -> Finished:
        return run([mpi, "-n", f"{ranks}", "sh", "-c", UNHEARD, "-", command], {}, tmp_path, 60)

    return start


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_file_missing_on_one_rank_ends_the_job(unheard: Run, tmp_path: Path, rank: int) -> None:
    for other in {0, 1, 2} - {rank}:
        (tmp_path / f"blocks-{other}").write_text("0,1\n")
    job = unheard(3, f"{OMB_PY} multi_lat -D indx:blocks-$RANK_HERE")
    assert_refused(job, 2, f"{f'rank {rank}: ' * (rank > 0)}cannot read blocks-{rank}")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("latency -D indx:none", "cannot read none"),
        ("latency --matrix none", "--matrix"),
        ("latency --no-such-option", "--no-such-option"),
        ("alreduce", "unknown benchmark 'alreduce'"),
        ("run latency alreduce", "unknown benchmark 'alreduce'"),
        ("latency --buffer numpi", "unknown buffer 'numpi'"),
        ("allreduce --coll-algorithm nosuch", "nosuch"),
        ("profile none.py", "there is no program none.py"),
    ],
)
def test_error_of_all_ranks_is_printed_once(unheard: Run, words: str, named: str) -> None:
    assert_refused(unheard(3, f"{OMB_PY} {words}"), 2, named)


def test_error_of_one_rank_beside_a_program_ends_the_job(unheard: Run, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import time\nfrom mpi4py import MPI\nMPI.COMM_WORLD.Ibarrier()\ntime.sleep(100)\n"
    )
    program = f"{BIN / 'python'} program.py"
    job = unheard(2, f"test $RANK_HERE = 1 && exec {OMB_PY} profile none.py || exec {program}")
    assert_refused(job, ENDED, "rank 1: there is no program none.py")


@pytest.mark.slow
@pytest.mark.parametrize(
    "variables",
    [{"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2"}, {"PALS_RANKID": "1"}],
    ids=["Slurm", "PALS"],
)
def test_error_of_a_rank_outside_of_the_job_is_printed(
    omb_py: Run, variables: dict[str, str]
) -> None:
    job = omb_py("latency", "-D", "indx:/no/such", **variables)
    assert_refused(job, 2, "rank 1: cannot read /no/such")


@pytest.mark.parametrize(("rank", "named"), [("0", ""), ("1", "rank 1: "), ("all", "")])
@pytest.mark.parametrize(
    "words", ["latency --binding refusing", "run latency 'latency --binding refusing' bw"]
)
def test_usage_error_inside_the_job_ends_it(
    unheard: Run, words: str, rank: str, named: str
) -> None:
    """That of all ranks ends its benchmark alone."""
    job = unheard(2, f"OMB_TEST_RANK={rank} {OMB_PY} {words} {' '.join(QUICK)}")
    assert_refused(job, 2 if rank == "all" else ENDED, f"{named}there is no file here")
    assert (" bw" in job.out) == (rank == "all" and words.startswith("run"))


@pytest.mark.parametrize(
    ("first", "second", "named"),
    [
        ("latency", "bw", "benchmark (bw, not latency)"),
        ("run latency", "latency", "benchmark (latency, not run)"),
        ("run latency", "run bw", "BENCHMARK (bw, not latency)"),
        ("overhead latency", "latency", "benchmark (latency, not overhead latency)"),
        ("overhead latency --bindings native,buffer", "overhead latency", "--bindings (native"),
        ("pairs --repeats 1", "pairs", "--repeats (3, not 1)"),
        ("kmeans --samples 80", "kmeans --samples 90", "--samples (90, not 80)"),
        ("bw -D indx:one/blocks", "bw -D indx:two/blocks", "--ddt (indx:two/blocks, not"),
    ],
)
def test_ranks_started_otherwise_are_refused(
    mpi: str, tmp_path: Path, first: str, second: str, named: str
) -> None:
    for folder, content in (("one", "0,1\n"), ("two", "0,2\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "blocks").write_text(content)
    both = ([OMB_PY, *words.split()] for words in (first, second))
    launch = [mpi, "-n", "1", *next(both), ":", "-n", "1", *next(both)]
    job = run(launch, {}, tmp_path, timeout=60)
    assert_refused(job, 2, f"rank 1 was started with another {named} rank 0")


def test_file_of_other_contents_on_a_rank_is_named(unheard: Run, tmp_path: Path) -> None:
    for folder, content in (("0", "0,1\n"), ("1", "0,2\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "blocks").write_text(content)
    job = unheard(2, f"cd $RANK_HERE && exec {OMB_PY} bw -D indx:blocks")
    assert_refused(job, 2, "rank 1 --ddt (indx:blocks, of other contents)")


def test_options_of_one_rank_may_differ(mpi: str, tmp_path: Path) -> None:
    first = [OMB_PY, "latency", *QUICK, "--output", "rows.csv"]
    second = [OMB_PY, "latency", *QUICK, "--quiet", "--format", "csv", "--timeout", "60"]
    job = run([mpi, "-n", "1", *first, ":", "-n", "1", *second], {}, tmp_path, timeout=60)
    assert [row["bytes"] for row in rows_of(tmp_path / "rows.csv")] == ["8"], job.err


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
    wait_for(lambda: not processes_with(str(output)), 30)


@pytest.mark.product(strength=0)
@pytest.mark.parametrize("binding", ["buffer", "native"])
def test_ranks_that_make_progress_outlast_the_timeout(mpiexec: Run, binding: str) -> None:
    words = ("allreduce", "--sizes", "8", "-i", "99999999999", "-x", "0", "--binding", binding)
    for seconds in (1, 5, 25):  # a busy machine needs more of them to start
        limits = ("--max-time", f"{2 * seconds}", "--timeout", f"{seconds}")
        job = mpiexec(2, *words, *limits)
        if job.code == 0:
            break
    assert succeeded(job).sentences == []


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
    wait_for(lambda: not processes_with(" ".join(sleep)), 30)


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


@pytest.mark.slow
@pytest.mark.skipif(VENDOR != "MPICH", reason="Open MPI starts under its own launcher")
def test_mpich_under_mpirun_of_open_mpi_is_named(omb_py: Run) -> None:
    job = omb_py("latency", OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_SIZE="2")
    assert_refused(job, 2, "Open MPI's mpirun started mpi4py's library MPICH use the mpiexec")


@pytest.mark.skipif(VENDOR != "Open MPI", reason="MPICH starts under its own launcher")
def test_open_mpi_under_mpiexec_of_mpich_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    mine, hydra = socket.socketpair()
    monkeypatch.setenv("PMI_FD", str(mine.fileno()))
    monkeypatch.delenv("PMI_JOBID", raising=False)
    with mine, hydra, pytest.raises(UsageError, match="mpiexec of MPICH"):
        mpi.check_launcher()


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
        "    iterations = tuple(replace(one, outputs=()) for one in plan.iterations)\n"
        "    return replace(plan, iterations=iterations)\n"
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


@pytest.mark.parametrize(
    ("words", "left_out", "measured"),
    [
        ("allreduce --sizes 2,8 -T float32", "2 bytes: whole float32", {"8"}),
        ("reduce_scatter_block --sizes 4,8", "4 bytes mpi_int at least 2 elements", {"8"}),
        ("allreduce -m 4:4 -T float32 -T float64", "type float64: none of 4 bytes", {"4"}),
        ("latency -M 16384", "16384 … 4194304 bytes memory limit (-M)", None),
        ("overhead latency --sizes 2,4 -T float32 --rounds 2", "2 bytes: whole float32", {"4"}),
    ],
)
def test_sizes_and_types_left_out_are_exit_code_3(
    mpiexec: Run, tmp_path: Path, words: str, left_out: str, measured: set[str] | None
) -> None:
    job = mpiexec(2, *words.split(), "-i", "3", "-x", "1", "-q", "--output", "rows.csv")
    assert_refused(job, 3, f"left out {left_out}")
    assert measured in (None, {row["bytes"] for row in rows_of(tmp_path / "rows.csv")})


def test_a_type_that_cannot_be_measured_leaves_the_others(mpiexec: Run, tmp_path: Path) -> None:
    words = ("-i", "4", "-x", "1", "-T", "all", "-q", "--output", "rows.csv")
    job = mpiexec(2, "cas_latency", *words)
    assert_refused(job, 3, "left out types mpi_float, float64, MPI integers mpi_float")
    measured = {row["dtype"] for row in rows_of(tmp_path / "rows.csv")}
    assert measured == {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
    none = mpiexec(2, "cas_latency", "-T", "float32", "-T", "float64", "-q")
    assert_refused(none, 5, "only integers, not float32")

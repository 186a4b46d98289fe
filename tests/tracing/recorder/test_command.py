"""``omb-py profile``: programs do what they did, and wrong commands are one sentence."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from omb_py.tracing.records.layout import SUFFIX
from omb_py.tracing.records.run import open_run, read_records
from tests.conftest import MPIEXEC, OMB_PY, run, succeeded
from tests.helpers.refusals import ANY_CODE, assert_refused, missing
from tests.tracing.fixtures import Profiled, calls_of, succeeded_records

pytestmark = pytest.mark.usefixtures("mpi")

HELLO = ("-m", "mpi4py.bench", "helloworld")


def test_settings_before_mpi_starts_take_effect(profiled: Profiled) -> None:
    program = """
import mpi4py
mpi4py.rc.threads = False
mpi4py.rc.finalize = False
from mpi4py import MPI
assert MPI.Query_thread() == MPI.THREAD_SINGLE
MPI.COMM_WORLD.Barrier()
MPI.Finalize()
"""
    record = profiled(1, program=program).record
    assert calls_of(record)["MPI_Barrier"] == [1, 0]
    assert record.about["thread_level"] == "single"


@pytest.mark.parametrize(("level", "noted"), [("single", True), ("multiple", False)])
def test_other_thread_level_noted(
    profiled: Profiled, tmp_path: Path, level: str, noted: bool
) -> None:
    program = "from mpi4py import MPI\nMPI.COMM_WORLD.Bcast(bytearray(8))\n"
    succeeded(profiled(1, program=program).job)
    words = [OMB_PY, "replay", "omb-profile", "--thread-level", level]
    done = succeeded(run([MPIEXEC, "-n", "1", *words], {}, tmp_path, 120))
    note = f"thread level multiple, this replay has {level}: add --thread-level multiple"
    assert (note in done.out) is noted


def test_a_program_that_starts_mpi_itself(profiled: Profiled) -> None:
    program = """
import mpi4py
mpi4py.rc.initialize = False
from mpi4py import MPI
MPI.Init_thread(MPI.THREAD_FUNNELED)
MPI.COMM_WORLD.allgather(1)
MPI.Finalize()
print("after the end")
"""
    for record in succeeded_records(profiled(2, program=program)):
        assert calls_of(record)["MPI_Allgatherv"][0] == 1


def test_a_program_that_comes_with_mpi4py_does_the_same(profiled: Profiled, tmp_path: Path) -> None:
    plain = succeeded(run([MPIEXEC, "-n", "3", sys.executable, *HELLO], {}, tmp_path, 120))
    profile = profiled(3, *HELLO)
    assert sorted(profile.job.out.splitlines()) == sorted(plain.out.splitlines())
    assert len(succeeded_records(profile)) == 3
    for record in read_records(tmp_path / "omb-profile")[0]:  # ranks of one host have one clock
        assert [(one.offset, one.error) for one in record.comparisons] == [(0.0, 0.0)] * 2


def test_benchmarks_and_applications_are_programs_too(profiled: Profiled, tmp_path: Path) -> None:
    words = ("allreduce", "-m", "8:8", "-i", "50", "-x", "10", "-o", "rows.csv")
    profile = profiled(2, "omb-py", *words)
    zero, _ = succeeded_records(profile)
    assert calls_of(zero)["MPI_Allreduce"][0] >= 60
    assert "# profiler: recorder\n" in (tmp_path / "rows.csv").read_text()


def test_a_program_without_mpi_has_no_profile(profiled: Profiled) -> None:
    profile = profiled(1, program="print('hello')")
    assert succeeded(profile.job).out == "hello\n"
    assert "has not started MPI" in profile.job.err
    assert profile.records == []


def test_exception_of_one_rank_ends_the_job(profiled: Profiled) -> None:
    program = """
from mpi4py import MPI
MPI.COMM_WORLD.Barrier()
def fail():
    raise KeyError("of rank 1")
if MPI.COMM_WORLD.rank == 1:
    fail()
MPI.COMM_WORLD.Barrier()
"""
    profile = profiled(2, program=program)
    done = profile.job
    assert done.code != 0
    assert done.err.count("Traceback") == 1
    assert "KeyError: 'of rank 1'" in done.err
    assert "omb_py" not in done.err.split("Traceback")[1].split("KeyError")[0]
    assert "omb-py profile show omb-profile" in done.err
    for record in profile.records:
        assert not record.complete
        assert calls_of(record)["MPI_Barrier"][0] >= 1


@pytest.mark.any_library
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nothing.py"], "there is no program nothing.py"),
        (["sh"], "sh no Python program"),
        (["--events", "0", "a.py"], "--events 0"),
        (["--folder", "/proc/nowhere", *HELLO], "/proc/nowhere"),
        (["--nonsense", "a.py"], "nonsense"),
    ],
)
def test_wrong_command_is_one_sentence(profiled: Profiled, words: list[str], sentence: str) -> None:
    assert_refused(profiled(2, *words).job, ANY_CODE, sentence)


@pytest.mark.long
@pytest.mark.any_library
def test_a_profile_is_not_written_over(profiled: Profiled) -> None:
    assert len(succeeded_records(profiled(2, *HELLO))) == 2
    refused = profiled(1, *HELLO)
    assert_refused(refused.job, 2, "--force")
    assert len(refused.records) == 2
    assert len(succeeded_records(profiled(1, "--force", *HELLO))) == 1


@pytest.mark.any_library
@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["--folder", "there", *HELLO], 2, "there profile of another run"),
        (["--folder", "there/rank-0.record/below", *HELLO], 1, "Not a directory; another"),
        (["-m", "nosuchmodule"], 2, "there is no module nosuchmodule"),
    ],
)
def test_what_rank_0_refuses_before_mpi_is_started_ends_the_job(
    profiled: Profiled, tmp_path: Path, words: list[str], code: int, sentence: str
) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / f"rank-0{SUFFIX}").write_bytes(b"")
    done = profiled(3, *words).job
    assert_refused(done, code, sentence)
    assert [path.name for path in (tmp_path / "there").iterdir()] == [f"rank-0{SUFFIX}"]


@pytest.mark.long
@pytest.mark.product(strength=0)
@pytest.mark.parametrize(
    ("good", "bad", "failing", "sentence"),
    [
        (["latency", "-m", "8:8"], ["latency", "--nonsense"], 0, "--nonsense"),
        (["latency", "-m", "8:8"], ["latency", "--nonsense"], 1, "--nonsense"),
        (["profile", *HELLO], ["profile", "-m", "nosuchmodule"], 1, "there is no module"),
    ],
)
def test_error_of_one_rank_before_mpi_ends_the_job(
    tmp_path: Path, good: list[str], bad: list[str], failing: int, sentence: str
) -> None:
    ranks = [bad if rank == failing else good for rank in range(2)]
    words = [word for one in ranks for word in (":", "-n", "1", OMB_PY, *one)]
    done = run([MPIEXEC, *words[1:]], {}, tmp_path, 120)
    assert_refused(done, ANY_CODE, sentence)
    assert ("rank 1: " in done.sentences[0]) == (failing == 1)


@pytest.mark.any_library
def test_a_job_whose_profile_another_job_has_replaced_says_so(
    profiled: Profiled, tmp_path: Path
) -> None:
    """The first program runs the second job, in the middle of its own."""
    text = f"""
import os, subprocess, sys
from mpi4py import MPI
comm = MPI.COMM_WORLD
comm.Barrier()
if len(sys.argv) > 1 and comm.rank == 0:
    launchers = ("PMI", "OMPI_COMM", "PRTE")
    clean = {{k: v for k, v in os.environ.items() if not k.startswith(launchers)}}
    for more in ([], ["--force"]):
        command = [{MPIEXEC!r}, "-n", "2", {OMB_PY!r}, "profile", *more, __file__]
        print(subprocess.run(command, env=clean).returncode)
comm.Barrier()
"""
    (tmp_path / "program.py").write_text(text)
    done = profiled(2, "program.py", "first").job
    assert done.out.split() == ["2", "0"]
    assert done.code == 1
    refused, written, replaced = done.sentences
    assert "holds the profile of another run" in refused
    assert "profile of 2 ranks" in written
    assert not missing("another job replaced omb-profile", replaced)
    assert all(record.complete for record in open_run(tmp_path / "omb-profile").records)

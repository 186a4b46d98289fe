"""Programs under ``omb-py profile``: they do what they did, and every call is counted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from omb_py.core.errors import UsageError
from omb_py.tracing.records import reading
from omb_py.tracing.records.layout import SUFFIX, EventKind
from omb_py.tracing.records.run import open_run, read_records
from tests.conftest import MPIEXEC, OMB_PY, Finished, Run, own_temporary_folder, run, succeeded
from tests.helpers.refusals import ANY_CODE, assert_refused, missing
from tests.mpi.vendor import VENDOR

pytestmark = pytest.mark.usefixtures("mpi")

PROGRAMS = Path(__file__).parent / "programs"
OBSERVED = str(PROGRAMS / "observed.py")


@pytest.fixture
def profiled(tmp_path: Path) -> Run:
    """``profiled(ranks, *words)`` runs ``omb-py profile`` with these words on real ranks."""

    def start(ranks: int, *words: str, timeout: float = 120, **environment: str) -> Finished:
        command = [MPIEXEC, "-n", str(ranks), OMB_PY, "profile", *words]
        return run(command, environment, tmp_path, timeout)

    return start


def calls(record: reading.RankRecord) -> dict[tuple[str, str], tuple[int, int]]:
    """Calls and bytes by routine and the label of the communicator."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for cell in record.cells:
        communicator = record.communicators.get(int(cell["communicator"]))
        key = (record.name(int(cell["routine"])), communicator.key if communicator else "")
        before = found.get(key, (0, 0))
        found[key] = (before[0] + int(cell["calls"]), before[1] + int(cell["nbytes"]))
    return found


def script(folder: Path, text: str) -> str:
    path = folder / "program.py"
    path.write_text(text)
    return str(path)


PAIR = "45762f181827e9c0"
EXPECTED = {
    ("MPI_Send", "world"): (4 + 1, 3 * 80 + 5),
    ("MPI_Recv", "world"): (3, 3 * 80),
    ("MPI_Irecv", "world"): (2, 16 + 32768),  # mpi4py posts so much for an object
    ("MPI_Isend", "world"): (4, 16 + 6 + 2 * 24),
    ("MPI_Send_init", "world"): (1, 16),
    ("MPI_Recv_init", "world"): (1, 16),
    ("MPI_Startall", ""): (2, 0),
    ("MPI_Send (started)", "world"): (2, 32),
    ("MPI_Recv (started)", "world"): (2, 32),
    ("MPI_Waitall", ""): (3, 0),
    ("MPI_Iallreduce", "world"): (1, 8),
    ("MPI_Iprobe", "world"): (2, 0),
    ("MPI_Improbe", "world"): (1, 0),
    ("MPI_Mprobe", "world"): (2, 0),
    ("MPI_Mrecv", "world"): (2, 6 + 24),
    ("MPI_Comm_split", "world"): (1, 0),
    ("MPI_Allreduce", f"{PAIR}#1"): (2, 1600),
    ("MPI_Bcast", f"{PAIR}#1"): (1, 800),
    ("MPI_Allgather", f"{PAIR}#1"): (1, 800),
    ("MPI_Alltoall", f"{PAIR}#1"): (1, 800),
    ("MPI_Comm_dup", f"{PAIR}#1"): (1, 0),
    ("MPI_Barrier", f"{PAIR}#2"): (1, 0),
    ("MPI_Win_allocate", "world"): (1, 0),
    ("MPI_Win_fence", "world"): (2, 0),
    ("MPI_Put", "world"): (1, 8),
    ("MPI_File_write_at_all", "world"): (1, 32),
    ("MPI_Barrier", "world"): (1, 0),
}
"""Of rank 0; the barrier within Pcontrol(0) is not there."""


@pytest.mark.parametrize(
    "options",
    [[], ["--events", "100000"], ["--call-sites"]],
    ids=" ".join,
)
def test_program_is_the_same_and_counted(profiled: Run, tmp_path: Path, options: list[str]) -> None:
    plain = run([MPIEXEC, "-n", "2", sys.executable, OBSERVED, "file"], {}, tmp_path, 120)
    done = profiled(2, *options, OBSERVED, "file")

    assert plain.code == done.code == 0, done.err
    assert Counter(done.out.splitlines()) == Counter(plain.out.splitlines())
    zero, one = open_run(tmp_path / "omb-profile").records
    assert zero.complete
    assert one.complete
    found = calls(zero)
    assert {key: found.get(key) for key in EXPECTED} == EXPECTED
    assert calls(one)["MPI_Recv", "world"] == (4, 3 * 80 + 5)
    assert {key for _, key in found} == {key for _, key in calls(one)}
    assert (tmp_path / "omb-profile" / "profile.txt").exists()
    if "--call-sites" in options:
        sites = {zero.name(int(cell["site"])) for cell in zero.cells}
        assert all(site.startswith(f"{OBSERVED}:") for site in sites)
        assert any(site.endswith(" blocking") for site in sites)
    assert (len(zero.events) > 0) == ("--events" in options)


@pytest.mark.long
@pytest.mark.parametrize("what", ["buffers", "objects"])
def test_modes_count_the_same_calls_and_bytes(profiled: Run, tmp_path: Path, what: str) -> None:
    found = []
    for options in ((), ("--call-sites",), ("--events", "100000")):
        succeeded(profiled(1, "--force", *options, str(PROGRAMS / "arguments.py"), what))
        (record,) = open_run(tmp_path / "omb-profile").records
        found.append(calls(record))
    assert len(found[0]) > 5
    assert found == found[:1] * 3


def test_messages_have_the_same_number_on_both_sides(profiled: Run, tmp_path: Path) -> None:
    assert profiled(2, "--events", "100000", OBSERVED, "file").code == 0
    zero, one = open_run(tmp_path / "omb-profile").records

    def messages(record: reading.RankRecord, received: bool) -> Counter[tuple[object, ...]]:
        found: Counter[tuple[object, ...]] = Counter()
        for event in record.events:
            name, kind = record.name(int(event["name"])), event["kind"]
            sends = "end" in name and "Recv" not in name and "recv" not in name
            if not event["sequence"] or event["peer"] < 0 or "cast" in name:
                continue
            both = "endrecv" in name
            if received:
                counts = kind == EventKind.ARRIVED if both else not sends
            else:
                counts = (
                    kind == EventKind.CALL
                    if both
                    else sends and not (kind == EventKind.CALL and event["request"])
                )
            if counts:
                found[int(event["tag"]), int(event["sequence"])] += 1
        return found

    assert messages(zero, received=False) == messages(one, received=True)
    assert messages(one, received=False) == messages(zero, received=True)
    assert len(messages(zero, received=False)) == 10


def test_settings_before_mpi_starts_take_effect(profiled: Run, tmp_path: Path) -> None:
    text = """
import mpi4py
mpi4py.rc.threads = False
mpi4py.rc.finalize = False
from mpi4py.MPI import COMM_WORLD as comm
from mpi4py import MPI
assert MPI.Query_thread() == MPI.THREAD_SINGLE
class Own(MPI.Intracomm):
    pass
own = Own(comm)
own.Barrier()
assert own == comm and isinstance(own, MPI.Intracomm) and not isinstance(comm, Own)
import pickle
assert pickle.loads(pickle.dumps(comm)) == comm
MPI.Finalize()
import sys
assert __name__ == "__main__" and sys.argv[1:] == ["--debugging", "-n"]
"""
    succeeded(profiled(1, script(tmp_path, text), "--debugging", "-n"))
    (record,) = open_run(tmp_path / "omb-profile").records
    assert calls(record)["MPI_Barrier", "world"] == (1, 0)
    assert record.about["thread_level"] == "single"


@pytest.mark.parametrize(("level", "noted"), [("single", True), ("multiple", False)])
def test_other_thread_level_noted(profiled: Run, tmp_path: Path, level: str, noted: bool) -> None:
    text = "from mpi4py import MPI\nMPI.COMM_WORLD.Bcast(bytearray(8))\n"
    assert profiled(1, script(tmp_path, text)).code == 0
    words = [OMB_PY, "replay", "omb-profile", "--thread-level", level]
    done = succeeded(run([MPIEXEC, "-n", "1", *words], {}, tmp_path, 120))
    note = f"thread level multiple, this replay has {level}: add --thread-level multiple"
    assert (note in done.out) is noted


def test_a_program_that_starts_mpi_itself(profiled: Run, tmp_path: Path) -> None:
    text = """
import mpi4py
mpi4py.rc.initialize = False
from mpi4py import MPI
MPI.Init_thread(MPI.THREAD_FUNNELED)
MPI.COMM_WORLD.allgather(1)
MPI.Finalize()
print("after the end")
"""
    succeeded(profiled(2, script(tmp_path, text)))
    for record in open_run(tmp_path / "omb-profile").records:
        assert [name for name, _ in calls(record)].count("MPI_Allgatherv") == 1


def test_a_program_that_comes_with_mpi4py_does_the_same(profiled: Run, tmp_path: Path) -> None:
    words = ["-m", "mpi4py.bench", "helloworld"]
    plain = run([MPIEXEC, "-n", "3", sys.executable, *words], {}, tmp_path, 120)
    done = profiled(3, *words)
    assert done.code == plain.code == 0, done.err
    assert sorted(done.out.splitlines()) == sorted(plain.out.splitlines())
    assert len(open_run(tmp_path / "omb-profile").records) == 3


def test_benchmarks_and_applications_are_programs_too(profiled: Run, tmp_path: Path) -> None:
    words = ["omb-py", "allreduce", "-m", "8:8", "-i", "50", "-x", "10"]
    done = succeeded(profiled(2, *words))
    assert len(done.rows) == 1
    zero, _ = open_run(tmp_path / "omb-profile").records
    assert calls(zero)["MPI_Allreduce", "world"][0] >= 60


def test_ranks_of_one_host_have_one_clock(profiled: Run, tmp_path: Path) -> None:
    assert profiled(2, "-m", "mpi4py.bench", "helloworld").code == 0
    for record in read_records(tmp_path / "omb-profile")[0]:
        assert [one.offset for one in record.comparisons] == [0.0, 0.0]
        assert [one.error for one in record.comparisons] == [0.0, 0.0]


def test_exception_of_one_rank_ends_the_job(profiled: Run, tmp_path: Path) -> None:
    text = """
from mpi4py import MPI
MPI.COMM_WORLD.Barrier()
def fail():
    raise KeyError("of rank 1")
if MPI.COMM_WORLD.rank == 1:
    fail()
MPI.COMM_WORLD.Barrier()
"""
    done = profiled(2, script(tmp_path, text), timeout=120)
    assert done.code != 0
    assert done.err.count("Traceback") == 1
    assert "KeyError: 'of rank 1'" in done.err
    assert "omb_py" not in done.err.split("Traceback")[1].split("KeyError")[0]
    assert "omb-py profile show omb-profile" in done.err
    for record in open_run(tmp_path / "omb-profile").records:
        assert not record.complete
        assert calls(record)["MPI_Barrier", "world"][0] >= 1


@pytest.mark.product(strength=0)
@pytest.mark.parametrize("events", [[], ["--events", "100000"]], ids=["tallies", "events"])
def test_killed_rank_leaves_readable_profiles(tmp_path: Path, events: list[str]) -> None:
    text = """
import os, sys
from array import array
from mpi4py import MPI
comm, one = MPI.COMM_WORLD, array("d", [1.0])
while True:
    comm.Allreduce(one, array("d", [0.0]))
"""
    words = [MPIEXEC, "-n", "3", OMB_PY, "profile", *events, script(tmp_path, text)]
    folder = tmp_path / "omb-profile"
    with own_temporary_folder() as environment:
        job = subprocess.Popen(
            words,
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            victim = running_rank(folder, 2)
            os.kill(victim, signal.SIGKILL)
            assert job.wait(120) != 0
        finally:
            if job.poll() is None:
                os.killpg(job.pid, signal.SIGKILL)
    found = open_run(folder).records
    assert [record.rank for record in found] == [0, 1, 2]
    for record in found:
        assert not record.complete
        assert calls(record)["MPI_Allreduce", "world"][0] > 100
        assert len(record.events) > 100 or not events
    shown = succeeded(run([OMB_PY, "profile", "show", str(folder)], {}, tmp_path, 120))
    assert "MPI_Allreduce" in shown.out


def running_rank(folder: Path, rank: int) -> int:
    """The process of a rank once it has recorded a hundred calls and all ranks are there."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        try:
            there = open_run(folder).records
        except UsageError:
            there = []
        if len(there) == 3 and all(record.cells["calls"].sum() > 100 for record in there):
            return int(there[rank].header["pid"])
        time.sleep(0.1)
    raise AssertionError("the ranks have recorded nothing")


@pytest.mark.any_library
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nothing.py"], "there is no program nothing.py"),
        (["sh"], "sh no Python program"),
        (["--events", "0", "a.py"], "--events 0"),
        (["--folder", "/proc/nowhere", OBSERVED, "file"], "/proc/nowhere"),
        (["--nonsense", "a.py"], "nonsense"),
    ],
)
def test_wrong_command_is_one_sentence(profiled: Run, words: list[str], sentence: str) -> None:
    assert_refused(profiled(2, *words, timeout=120), ANY_CODE, sentence)


@pytest.mark.any_library
def test_a_profile_is_not_written_over(profiled: Run, tmp_path: Path) -> None:
    words = ["-m", "mpi4py.bench", "helloworld"]
    assert profiled(2, *words).code == 0
    assert_refused(profiled(1, *words), 2, "--force")
    assert len(open_run(tmp_path / "omb-profile").records) == 2
    assert profiled(1, "--force", *words).code == 0
    assert len(open_run(tmp_path / "omb-profile").records) == 1


@pytest.mark.any_library
@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["--folder", "there", OBSERVED], 2, "there profile of another run"),
        (["--folder", "there/rank-0.record/below", OBSERVED], 1, "Not a directory; another"),
        (["-m", "nosuchmodule"], 2, "there is no module nosuchmodule"),
    ],
)
def test_what_rank_0_refuses_before_mpi_is_started_ends_the_job(
    profiled: Run, tmp_path: Path, words: list[str], code: int, sentence: str
) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / f"rank-0{SUFFIX}").write_bytes(b"")
    done = profiled(3, *words, timeout=120)
    assert_refused(done, code, sentence)
    assert [path.name for path in (tmp_path / "there").iterdir()] == [f"rank-0{SUFFIX}"]


@pytest.mark.long
@pytest.mark.product(strength=0)
@pytest.mark.parametrize(
    ("good", "bad", "failing", "sentence"),
    [
        (["latency", "-m", "8:8"], ["latency", "--nonsense"], 0, "--nonsense"),
        (["latency", "-m", "8:8"], ["latency", "--nonsense"], 1, "--nonsense"),
        (["profile", OBSERVED], ["profile", "-m", "nosuchmodule"], 1, "there is no module"),
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
def test_a_job_whose_profile_another_job_has_replaced_says_so(tmp_path: Path) -> None:
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
    command = [MPIEXEC, "-n", "2", OMB_PY, "profile", script(tmp_path, text), "first"]
    done = run(command, {}, tmp_path, 120)
    assert done.out.split() == ["2", "0"]
    assert done.code == 1
    refused, written, replaced = done.sentences
    assert "holds the profile of another run" in refused
    assert "profile of 2 ranks" in written
    assert not missing("another job replaced omb-profile", replaced)
    assert all(record.complete for record in open_run(tmp_path / "omb-profile").records)


def test_a_program_without_mpi_has_no_profile(profiled: Run, tmp_path: Path) -> None:
    done = succeeded(profiled(1, script(tmp_path, "print('hello')")))
    assert done.out == "hello\n"
    assert "has not started MPI" in done.err


def test_the_exit_code_is_the_programs(profiled: Run, tmp_path: Path) -> None:
    text = "from mpi4py import MPI; import sys; MPI.COMM_WORLD.Barrier(); sys.exit(3)"
    assert profiled(1, script(tmp_path, text)).code == 3
    assert open_run(tmp_path / "omb-profile").records[0].complete


def test_a_receive_that_was_cancelled_was_no_message(profiled: Run, tmp_path: Path) -> None:
    program = script(
        tmp_path,
        "from mpi4py import MPI\n"
        "own = MPI.COMM_SELF\n"
        "for end in (lambda one: one.Wait(), lambda one: MPI.Request.Waitall([one])):\n"
        "    request = own.Irecv(bytearray(1), 0, 5)\n"
        "    request.Cancel()\n"
        "    end(request)\n"
        "    own.Sendrecv(b'x', 0, 5, bytearray(1), 0, 5)\n"
        "request = own.Irecv(bytearray(1), 0, 5)\n"
        "request.cancel()\n"
        "request.Free()\n"
        "own.Sendrecv(b'x', 0, 5, bytearray(1), 0, 5)\n",
    )
    succeeded(profiled(1, "--events", "100000", program))
    (record,) = open_run(tmp_path / "omb-profile").records
    events = [(EventKind(e["kind"]), int(e["sequence"])) for e in record.events if e["peer"] == 0]
    assert [number for kind, number in events if kind is EventKind.ARRIVED] == [1, 2, 3]
    assert [number for kind, number in events if kind is EventKind.DONE] == [0, 0]


@pytest.mark.skipif(VENDOR == "MPICH", reason="MPICH 5.0.2 fills in a wrong status here")
def test_the_second_half_of_a_request_may_come_from_anybody(profiled: Run, tmp_path: Path) -> None:
    program = script(
        tmp_path,
        "from mpi4py import MPI\n"
        "comm, got = MPI.COMM_WORLD, bytearray(1)\n"
        "comm.Isendrecv(b'x', 1 - comm.rank, 3, got, MPI.ANY_SOURCE).Wait()\n",
    )
    succeeded(profiled(2, "--events", "100000", program))
    for record in open_run(tmp_path / "omb-profile").records:
        halves = record.events[record.events["kind"] == EventKind.DONE]
        assert [list(half) for half in halves[["peer", "tag", "sequence"]]] == [
            [1 - record.rank, 3, 1]
        ] * 2


def test_results_of_a_profiled_benchmark_name_the_recorder(profiled: Run, tmp_path: Path) -> None:
    words = ("latency", "-m", "8", "-i", "2", "-x", "0", "--output", "rows.csv")
    succeeded(profiled(2, "--quiet", "--module", "omb_py", *words))
    assert "# profiler: recorder\n" in (tmp_path / "rows.csv").read_text()

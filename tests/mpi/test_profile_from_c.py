"""Calls on real ranks: every one of them, whoever makes it, on every MPI."""

from __future__ import annotations

import ctypes
import json
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from omb_py.tracing.recorder import compilation, library
from omb_py.tracing.records.layout import BETWEEN, WORLD, EventKind
from omb_py.tracing.records.reading import RankRecord
from omb_py.tracing.records.routines import Role, role
from omb_py.tracing.records.run import open_run
from tests.conftest import BIN, OMB_PY, Finished, run
from tests.tracing.made_records import communicator_key

PROGRAM = Path(__file__).parent / "programs" / "every_call.py"
LIBRARY_BELOW = """
#include <mpi.h>
int below(double *value) {
    int failed = 0;
    for (int i = 0; i < 3; i++)
        failed |= MPI_Allreduce(MPI_IN_PLACE, value, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    double read[8];
    MPI_File file;
    MPI_Request request;
    failed |= MPI_File_open(MPI_COMM_WORLD, "data", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                            &file);
    failed |= MPI_File_write_at_all(file, 0, value, 2, MPI_DOUBLE, MPI_STATUS_IGNORE);
    failed |= MPI_File_iwrite_at(file, 0, value, 1, MPI_DOUBLE, &request);
    failed |= MPI_Wait(&request, MPI_STATUS_IGNORE);
    failed |= MPI_File_sync(file);
    failed |= MPI_File_read_at(file, 8, read, 8, MPI_DOUBLE, MPI_STATUS_IGNORE);
    failed |= MPI_File_close(&file);
    return failed;
}
"""

Profiled = Callable[..., tuple[Finished, list[RankRecord]]]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder for the compiled library, which begins empty."""
    return str(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def profiled(mpi: str, tmp_path: Path, cache: str) -> Profiled:
    """``profiled(ranks, program, *options)`` profiles the text of a program."""

    def start(
        ranks: int, program: str, *options: str, **environment: str
    ) -> tuple[Finished, list[RankRecord]]:
        (tmp_path / "program.py").write_text(program)
        launch = [mpi, "-n", str(ranks), OMB_PY, "profile"]
        command = [
            *launch,
            "-q",
            "--force",
            "--folder",
            "profile",
            "--force",
            *options,
            "program.py",
        ]
        job = run(command, {"OMB_PY_CACHE_DIR": cache} | environment, tmp_path, 120)
        folder = tmp_path / "profile"
        return job, open_run(folder).records if list(folder.glob("*.record")) else []

    return start


def calls_of(record: RankRecord) -> dict[str, list[int]]:
    """Calls and bytes of each routine."""
    found: dict[str, list[int]] = {}
    for cell in record.cells:
        into = found.setdefault(record.name(cell["routine"]), [0, 0])
        into[0] += int(cell["calls"])
        into[1] += int(cell["nbytes"])
    return found


def test_every_call_is_counted_with_its_bytes(profiled: Profiled, tmp_path: Path) -> None:
    job, found = profiled(2, PROGRAM.read_text())
    assert job.code == 0, job.err
    assert job.err == ""
    assert [record.rank for record in found] == [0, 1]
    for record in found:
        assert record.complete
        expected = json.loads((tmp_path / f"expected-{record.rank}.json").read_text())
        assert calls_of(record) == expected
        times = record.cells
        assert (times["least_ns"] <= times["greatest_ns"]).all()
        assert (times["greatest_ns"] <= times["ns"]).all()
        assert times["ns"].sum() < record.elapsed_s * 1e9


LINES = """
import threading
from mpi4py import MPI
comm = MPI.COMM_WORLD
peer = 1 - comm.rank
def exchange(comm, times):
    for _ in range(times):
        received = comm.irecv(source=peer)
        comm.send("x" * 10, peer)
        received.wait()
def together(comm):
    comm.Barrier()
copy = comm.Dup()
thread = threading.Thread(target=exchange, args=(copy, 100))
thread.start()
exchange(comm, 30)
thread.join()
for _ in range(7):
    together(
        comm
    )
eval("comm.Barrier()")
for _ in range(2):
    comm.Barrier(), comm.Barrier(
    ), comm.Barrier()
"""


def sites_of(record: RankRecord) -> dict[tuple[str, str], int]:
    """Calls by routine and what follows the name of the program's file in a line of it."""
    found: Counter[tuple[str, str]] = Counter()
    for cell in record.cells:
        site = record.name(int(cell["site"])).rpartition("program.py:")[2]
        found[record.name(int(cell["routine"])), site] += int(cell["calls"])
    return dict(found)


def test_every_call_has_the_line_that_made_it(profiled: Profiled) -> None:
    job, found = profiled(2, LINES, "--call-sites")
    assert job.code == 0, job.err
    for record in found:
        sites = sites_of(record)
        assert sites["MPI_Send", "9 exchange"] == 130
        assert sites["MPI_Barrier", "12 together"] == 7
        assert sites["MPI_Barrier", "<string>:1 <module>"] == 1
        assert sites["MPI_Barrier", "24 <module>"] == 4
        assert sites["MPI_Barrier", "25 <module>"] == 2
        assert sites["MPI_Comm_dup", "13 <module>"] == 1
        assert {site for routine, site in sites if routine == "MPI_Send"} == {"9 exchange"}
        assert record.header["names_lost"] == 0


def test_the_messages_of_a_timeline_match_on_both_sides(profiled: Profiled) -> None:
    job, found = profiled(2, PROGRAM.read_text(), "--events", "100000")
    assert job.code == 0, job.err
    sent: Counter[tuple[object, ...]] = Counter()
    received: Counter[tuple[object, ...]] = Counter()
    for record in found:
        assert record.lost_events == 0
        communicators = record.communicators
        for event in record.events:
            if not event["sequence"] or event["communicator"] not in communicators:
                continue
            name, kind = record.name(event["name"]), EventKind(event["kind"])
            peer, rest = int(event["peer"]), (int(event["tag"]), int(event["sequence"]))
            key = communicators[event["communicator"]].key
            what = role(name)
            if what is Role.RECEIVE or kind is EventKind.ARRIVED:
                received[(key, peer, record.rank, *rest)] += 1
            elif what in (Role.SEND, Role.SENDRECV) and (
                kind is EventKind.CALL or name == "MPI_Send_init"
            ):
                sent[(key, record.rank, peer, *rest)] += 1
    assert sent == received
    of = {"blocking": 21, "Isend": 6, "Sendrecv": 4, "object": 1, "persistent": 10}
    assert len(sent) == sum(of.values())
    assert set(sent.values()) == {1}


def test_non_blocking_operations_are_seen_to_end(profiled: Profiled) -> None:
    _, found = profiled(2, PROGRAM.read_text(), "--events", "100000")
    for record in found:
        begun: Counter[int] = Counter()
        done: Counter[int] = Counter()
        for event in record.events:
            assert event["began"] <= event["ended"]
            if event["kind"] == EventKind.CALL and event["request"]:
                begun[int(event["request"])] += 1
            if event["kind"] == EventKind.DONE:
                done[int(event["request"])] += 1
        assert begun
        assert set(begun) <= set(done)
        assert set(done.values()) == {1}


@pytest.mark.long
def test_collective_calls_have_the_same_numbers_on_all_ranks(profiled: Profiled) -> None:
    _, found = profiled(2, PROGRAM.read_text(), "--events", "100000")

    def numbered(record: RankRecord) -> list[tuple[str, str, int]]:
        communicators = record.communicators
        return [
            (record.name(e["name"]), communicators[e["communicator"]].key, int(e["sequence"]))
            for e in record.events
            if e["kind"] == EventKind.CALL
            and role(record.name(e["name"])) is Role.COLLECTIVE
            and communicators[e["communicator"]].size == 2
        ]

    first, second = map(numbered, found)
    assert len(first) > 40
    assert first == second


@pytest.mark.long
def test_large_counts_are_defined_as_declared(cache: str) -> None:
    mpicc = library.compiler()
    looked_at = compilation.compile_library(mpicc, f"{cache}/looked_at.so")
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", looked_at], capture_output=True, text=True, check=True
    )
    defined = {line.split()[-1] for line in listed.stdout.splitlines()}
    assert {"MPI_Send", "MPI_Allreduce", "MPI_Waitall", "MPI_Win_fence"} <= defined
    assert not defined & {"MPI_Comm_rank", "MPI_Comm_size", "MPI_Type_size", "MPI_Get_count"}
    header = Path(mpicc).resolve().parent.parent / "include"
    declared = "".join(path.read_text(errors="replace") for path in header.glob("mpi*.h"))
    large = {name for name in defined if name.startswith("MPI_") and name.endswith("_c")}
    assert bool(large) == ("MPI_Send_c(" in declared)
    assert all(f" {name}(" in declared for name in large)
    real = ctypes.CDLL(looked_at)
    assert all(hasattr(real, f"P{name}") for name in large)


def test_what_a_library_below_python_calls_is_seen(profiled: Profiled, tmp_path: Path) -> None:
    (tmp_path / "below.c").write_text(LIBRARY_BELOW)
    command = [library.compiler(), "-shared", "-fPIC", "-o", "libbelow.so", "below.c"]
    subprocess.run(command, cwd=tmp_path, check=True)
    job, found = profiled(
        2,
        "import ctypes\n"
        "from mpi4py import MPI\n"
        "value = (ctypes.c_double * 2)(1, 2)\n"
        "assert ctypes.CDLL('./libbelow.so').below(value) == 0\n"
        "assert list(value) == [8, 16]\n",
    )
    assert job.code == 0, job.err
    expected = {
        "MPI_Allreduce": [3, 48],
        "MPI_File_open": [1, 0],
        "MPI_File_write_at_all": [1, 16],
        "MPI_File_iwrite_at": [1, 8],
        "MPI_Wait": [1, 0],
        "MPI_File_sync": [1, 0],
        "MPI_File_read_at": [1, 8],  # of 64 bytes that were asked for
        "MPI_File_close": [1, 0],
    }
    assert [calls_of(record) for record in found] == 2 * [expected]


def test_communicators_have_one_key_on_all_their_ranks(profiled: Profiled) -> None:
    job, found = profiled(
        4,
        "from mpi4py import MPI\n"
        "world = MPI.COMM_WORLD\n"
        "odd = world.Split(world.rank % 2, -world.rank)\n"
        "copies = [odd.Dup(), odd.Dup()]\n"
        "copies[1].Set_name('second \"copy\"\\n')\n"
        "group = world.Get_group().Incl([3, 1])\n"
        "if world.rank in (1, 3):\n"
        "    some = world.Create_group(group)\n"
        "    some.bcast(None)\n"
        "between = odd.Create_intercomm(0, world, 3 - world.rank % 2)\n"
        "for communicator in (odd, *copies, between, MPI.COMM_SELF):\n"
        "    communicator.Barrier()\n",
    )
    assert job.code == 0, job.err
    keys = [
        {c.key: c for c in record.communicators.values() if not c.key.startswith("self")}
        for record in found
    ]
    assert set(keys[0]) == set(keys[2])
    assert set(keys[1]) == set(keys[3])
    between = communicator_key([2, 0, BETWEEN, 3, 1], 1)
    copies = [communicator_key([2, 0], instance) for instance in (1, 2, 3)]
    assert set(keys[0]) == {WORLD, between, *copies}
    copies = [communicator_key([3, 1], instance) for instance in (1, 2, 3, 4)]
    assert set(keys[1]) == {WORLD, between, *copies}
    assert 'second "copy"\n' in {c.label for c in keys[0].values()}


def test_threads_lose_no_call(profiled: Profiled) -> None:
    job, (record,) = profiled(
        1,
        "import numpy as np\n"
        "from threading import Thread\n"
        "from mpi4py import MPI\n"
        "def send_to_itself(tag):\n"
        "    got = np.zeros(1)\n"
        "    for _ in range(2000):\n"
        "        request = MPI.COMM_SELF.Isend(np.zeros(1), 0, tag)\n"
        "        MPI.COMM_SELF.Recv(got, 0, tag)\n"
        "        request.Wait()\n"
        "threads = [Thread(target=send_to_itself, args=(tag,)) for tag in range(4)]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n",
        "--events",
        "100000",
    )
    assert job.code == 0, job.err
    assert calls_of(record) == {
        "MPI_Isend": [8000, 64000],
        "MPI_Recv": [8000, 64000],
        "MPI_Wait": [8000, 0],
    }
    done = record.events[record.events["kind"] == EventKind.DONE]
    assert len(done) == 8000
    for tag in range(4):
        assert sorted(done["sequence"][done["tag"] == tag]) == list(range(1, 2001))


def test_a_receive_that_was_cancelled_was_no_message(profiled: Profiled) -> None:
    job, (record,) = profiled(
        1,
        "from mpi4py import MPI\n"
        "own = MPI.COMM_SELF\n"
        "for end in (lambda one: one.Wait(), lambda one: MPI.Request.Waitall([one])):\n"
        "    request = own.Irecv(bytearray(1), 0, 5)\n"
        "    request.Cancel()\n"
        "    end(request)\n"
        "    own.Sendrecv(b'x', 0, 5, bytearray(1), 0, 5)\n"
        "request = own.Irecv(bytearray(1), 0, 5)\n"
        "request.Cancel()\n"
        "request.Free()\n"
        "own.Sendrecv(b'x', 0, 5, bytearray(1), 0, 5)\n",
        "--events",
        "100000",
    )
    assert job.code == 0, job.err
    events = [(EventKind(e["kind"]), int(e["sequence"])) for e in record.events if e["peer"] == 0]
    halves = [sequence for kind, sequence in events if kind is EventKind.ARRIVED]
    assert halves == [1, 2, 3]
    assert [sequence for kind, sequence in events if kind is EventKind.DONE] == [0, 0]


def test_the_program_says_what_is_recorded(profiled: Profiled) -> None:
    job, (record,) = profiled(
        1,
        "import ctypes\n"
        "from mpi4py import MPI\n"
        "MPI.COMM_SELF.Barrier()\n"
        "MPI.Pcontrol(0)\n"
        "for _ in range(5): MPI.COMM_SELF.Barrier()\n"
        "MPI.Pcontrol(1)\n"
        "ctypes.CDLL(None).MPI_Pcontrol(0)\n"
        "for _ in range(5): MPI.COMM_SELF.Barrier()\n"
        "ctypes.CDLL(None).MPI_Pcontrol(1)\n"
        "MPI.COMM_SELF.Barrier()\n",
    )
    assert job.code == 0, job.err
    assert calls_of(record)["MPI_Barrier"] == [2, 0]


@pytest.mark.long
def test_what_a_call_calls_is_a_part_of_it(profiled: Profiled) -> None:
    job, (record,) = profiled(
        1,
        "from mpi4py import MPI\n"
        "def copied(communicator, key, value):\n"
        "    MPI.COMM_SELF.Barrier()\n"
        "    print('copied')\n"
        "    return value\n"
        "communicator = MPI.COMM_SELF.Dup()\n"
        "communicator.Set_attr(MPI.Comm.Create_keyval(copied), 1)\n"
        "communicator.Dup().Barrier()\n",
    )
    assert job.code == 0, job.err
    assert job.out == "copied\n"
    assert calls_of(record) == {"MPI_Comm_dup": [2, 0], "MPI_Barrier": [1, 0]}


def test_what_does_not_fit_is_counted(profiled: Profiled) -> None:
    job, (record,) = profiled(
        1,
        "from mpi4py import MPI\n"
        "for _ in range(10_000):\n"
        "    communicator = MPI.COMM_SELF.Dup()\n"
        "    communicator.Barrier()\n"
        "    communicator.Free()\n"
        "nowhere = MPI.COMM_SELF.Dup()\n"
        "for _ in range(5): nowhere.Barrier()\n",
    )
    assert job.code == 0, job.err
    assert record.header["names_lost"] > 0
    counted = sum(calls for calls, _ in calls_of(record).values())
    assert counted + record.header["cells_lost"] == 3 * 10_000 + 1 + 5


def test_an_events_ring_keeps_the_last_ones(profiled: Profiled) -> None:
    job, (record,) = profiled(
        1,
        "from mpi4py import MPI\n"
        "import omb_py\n"
        "for number in range(100):\n"
        "    MPI.COMM_SELF.Barrier()\n"
        "with omb_py.phase('last'):\n"
        "    MPI.COMM_SELF.Barrier()\n",
        "--events",
        "10",
    )
    assert job.code == 0, job.err
    assert record.lost_events == 92
    assert list(record.events["sequence"]) == [*range(93, 102), 0]
    assert record.name(record.events[-1]["name"]) == "last"
    assert (record.events["began"][-1], EventKind.PHASE) <= (
        record.events["began"][-2],
        EventKind.PHASE,
    )


@pytest.mark.long
def test_a_killed_rank_leaves_its_calls_to_the_last(profiled: Profiled) -> None:
    job, found = profiled(
        2,
        "import os, time\n"
        "from mpi4py import MPI\n"
        "for number in range(1000):\n"
        "    MPI.COMM_SELF.Barrier()\n"
        "MPI.COMM_WORLD.Barrier()\n"
        "if MPI.COMM_WORLD.rank == 1:\n"
        "    time.sleep(1)\n"
        f"    os.kill(os.getpid(), {signal.SIGKILL.value})\n"
        "MPI.COMM_WORLD.Recv(bytearray(1), 1)\n",
    )
    assert job.code != 0
    assert [record.rank for record in found] == [0, 1]
    for record in found:
        assert not record.complete
        assert calls_of(record) == {"MPI_Barrier": [1001, 0]}
    assert found[0].now.routine == "MPI_Recv"
    assert found[0].now.peer == 1
    assert found[1].now.routine == ""


@pytest.mark.parametrize("ranks", [1, 2])
def test_missing_compiler_is_said_once(profiled: Profiled, tmp_path: Path, ranks: int) -> None:
    job, _ = profiled(
        ranks,
        "raise SystemExit('has run')",
        OMB_PY_CACHE_DIR=str(tmp_path / "empty"),
        MPICH_CC="no-such-compiler",
        OMPI_CC="no-such-compiler",
    )
    assert job.code == 2
    assert job.seconds < 30  # ranks that wait for the library are told
    (sentence,) = job.sentences
    assert re.search(r"mpicc(_abi)? cannot compile profile.s library", sentence)
    assert "no-such-compiler" in sentence
    assert "load a C compiler" in sentence
    assert "has run" not in job.out + job.err


def test_a_library_that_is_there_needs_no_compiler(profiled: Profiled, cache: str) -> None:
    program = "from mpi4py import MPI\nMPI.COMM_WORLD.Barrier()\n"
    profiled(1, program)
    libraries = {path: path.stat().st_mtime_ns for path in Path(cache).glob("recorder-*.so")}
    job, (record,) = profiled(1, program, PATH=str(BIN))
    assert job.code == 0, job.err
    assert calls_of(record) == {"MPI_Barrier": [1, 0]}
    kept = {path: path.stat().st_mtime_ns for path in Path(cache).glob("recorder-*.so")}
    assert kept == libraries
    assert libraries

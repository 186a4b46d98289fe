"""Every call of real ranks is counted, whoever makes it, on every MPI."""

from __future__ import annotations

import json
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from omb_py.tracing.recorder import library
from omb_py.tracing.records.layout import BETWEEN, WORLD, EventKind
from omb_py.tracing.records.reading import RankRecord
from tests.conftest import OMB_PY, run, succeeded
from tests.tracing.fixtures import Profiled, calls_of, succeeded_records
from tests.tracing.made_records import communicator_key

PROGRAMS = Path(__file__).parents[1] / "programs"
EVENTS = ("--events", "100000")
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


@pytest.mark.parametrize("options", [(), EVENTS, ("--call-sites",)], ids=" ".join)
def test_every_call_is_counted_with_its_bytes(
    profiled: Profiled, tmp_path: Path, options: tuple[str, ...]
) -> None:
    profile = profiled(2, "-q", *options, str(PROGRAMS / "every_call.py"))
    assert profile.job.err == ""
    for rank, record in enumerate(succeeded_records(profile)):
        expected = json.loads((tmp_path / f"expected-{rank}.json").read_text())
        assert calls_of(record) == expected
        times = record.cells
        assert (times["least_ns"] <= times["greatest_ns"]).all()
        assert (times["greatest_ns"] <= times["ns"]).all()
        assert times["ns"].sum() < record.elapsed_s * 1e9
        assert (len(record.events) > 0) == (options == EVENTS)
        done = record.events[record.events["kind"] == EventKind.DONE]
        begun = ("MPI_File_iread", "MPI_File_iwrite")
        names = Counter(map(record.name, done["name"]))
        of_files = {name: calls for name, (calls, _) in expected.items() if name.startswith(begun)}
        assert of_files.items() <= names.items() or options != EVENTS
    assert len(profile.records) == 2


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
    for record in succeeded_records(profiled(2, "--call-sites", program=LINES)):
        sites = sites_of(record)
        assert sites["MPI_Send", "9 exchange"] == 130
        assert sites["MPI_Barrier", "12 together"] == 7
        assert sites["MPI_Barrier", "<string>:1 <module>"] == 1
        assert sites["MPI_Barrier", "24 <module>"] == 4
        assert sites["MPI_Barrier", "25 <module>"] == 2
        assert sites["MPI_Comm_dup", "13 <module>"] == 1
        assert {site for routine, site in sites if routine == "MPI_Send"} == {"9 exchange"}
        assert record.header["names_lost"] == 0


def test_what_a_library_below_python_calls_is_seen(profiled: Profiled, tmp_path: Path) -> None:
    (tmp_path / "below.c").write_text(LIBRARY_BELOW)
    command = [library.compiler(), "-shared", "-fPIC", "-o", "libbelow.so", "below.c"]
    subprocess.run(command, cwd=tmp_path, check=True)
    program = (
        "import ctypes\n"
        "from mpi4py import MPI\n"
        "value = (ctypes.c_double * 2)(1, 2)\n"
        "assert ctypes.CDLL('./libbelow.so').below(value) == 0\n"
        "assert list(value) == [8, 16]\n"
    )
    found = succeeded_records(profiled(2, program=program))
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
    program = (
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
        "    communicator.Barrier()\n"
    )
    found = succeeded_records(profiled(4, program=program))
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
    program = (
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
        "for thread in threads: thread.join()\n"
    )
    record = profiled(1, *EVENTS, program=program).record
    assert calls_of(record) == {
        "MPI_Isend": [8000, 64000],
        "MPI_Recv": [8000, 64000],
        "MPI_Wait": [8000, 0],
    }
    done = record.events[record.events["kind"] == EventKind.DONE]
    assert len(done) == 8000
    for tag in range(4):
        assert sorted(done["sequence"][done["tag"] == tag]) == list(range(1, 2001))


def test_the_program_says_what_is_recorded(profiled: Profiled) -> None:
    program = (
        "import ctypes\n"
        "from mpi4py import MPI\n"
        "MPI.COMM_SELF.Barrier()\n"
        "MPI.Pcontrol(0)\n"
        "for _ in range(5): MPI.COMM_SELF.Barrier()\n"
        "MPI.Pcontrol(1)\n"
        "ctypes.CDLL(None).MPI_Pcontrol(0)\n"
        "for _ in range(5): MPI.COMM_SELF.Barrier()\n"
        "ctypes.CDLL(None).MPI_Pcontrol(1)\n"
        "MPI.COMM_SELF.Barrier()\n"
    )
    record = profiled(1, program=program).record
    assert calls_of(record)["MPI_Barrier"] == [2, 0]


@pytest.mark.long
def test_what_a_call_calls_is_a_part_of_it(profiled: Profiled) -> None:
    program = (
        "from mpi4py import MPI\n"
        "def copied(communicator, key, value):\n"
        "    MPI.COMM_SELF.Barrier()\n"
        "    print('copied')\n"
        "    return value\n"
        "communicator = MPI.COMM_SELF.Dup()\n"
        "communicator.Set_attr(MPI.Comm.Create_keyval(copied), 1)\n"
        "communicator.Dup().Barrier()\n"
    )
    profile = profiled(1, program=program)
    assert profile.job.out == "copied\n"
    assert calls_of(profile.record) == {"MPI_Comm_dup": [2, 0], "MPI_Barrier": [1, 0]}


def test_what_does_not_fit_is_counted(profiled: Profiled) -> None:
    program = (
        "from mpi4py import MPI\n"
        "for _ in range(10_000):\n"
        "    communicator = MPI.COMM_SELF.Dup()\n"
        "    communicator.Barrier()\n"
        "    communicator.Free()\n"
        "nowhere = MPI.COMM_SELF.Dup()\n"
        "for _ in range(5): nowhere.Barrier()\n"
    )
    record = profiled(1, program=program).record
    assert record.header["names_lost"] > 0
    counted = sum(calls for calls, _ in calls_of(record).values())
    assert counted + record.header["cells_lost"] == 3 * 10_000 + 1 + 5


@pytest.mark.parametrize("options", [(), EVENTS], ids=" ".join)
def test_a_killed_rank_leaves_its_calls_to_the_last(
    profiled: Profiled, tmp_path: Path, options: tuple[str, ...]
) -> None:
    program = (
        "import os, time\n"
        "from mpi4py import MPI\n"
        "for number in range(1000):\n"
        "    MPI.COMM_SELF.Barrier()\n"
        "MPI.COMM_WORLD.Barrier()\n"
        "if MPI.COMM_WORLD.rank == 1:\n"
        "    time.sleep(1)\n"
        f"    os.kill(os.getpid(), {signal.SIGKILL.value})\n"
        "MPI.COMM_WORLD.Recv(bytearray(1), 1)\n"
    )
    profile = profiled(2, *options, program=program)
    assert profile.job.code != 0
    zero, one = profile.records
    for record in (zero, one):
        assert not record.complete
        assert calls_of(record) == {"MPI_Barrier": [1001, 0]}
        assert len(record.events) == (1001 if options else 0)
    (waits,), (killed,) = zero.threads, one.threads
    assert (waits.routine, waits.peer, killed.routine) == ("MPI_Recv", 1, "")
    shown = succeeded(run([OMB_PY, "profile", "show", "omb-profile"], {}, tmp_path, 120))
    assert "MPI_Barrier" in shown.out


BUFFERED_AND_PARTITIONED = """
from mpi4py import MPI
comm = MPI.COMM_WORLD
data = bytearray(8)
if comm.rank == 0:
    MPI.Attach_buffer(bytearray(64 + MPI.BSEND_OVERHEAD))
    comm.Bsend(data, 1)
    MPI.Detach_buffer()
    request = comm.Psend_init(data, 4, 1, tag=1)
else:
    comm.Recv(data, 0)
    request = comm.Precv_init(data, 4, 0, tag=1)
request.Start()
if comm.rank == 0:
    request.Pready(0)
    request.Pready_range(1, 2)
    request.Pready_list([3])
request.Wait()
request.Free()
"""


def test_waits_for_buffers_and_ready_partitions_are_counted(profiled: Profiled) -> None:
    sender, _ = succeeded_records(profiled(2, program=BUFFERED_AND_PARTITIONED))
    one = ("Bsend", "Buffer_detach", "Pready", "Pready_range", "Pready_list", "Wait")
    assert {f"MPI_{name}": 1 for name in one}.items() <= {
        name: calls for name, (calls, _) in calls_of(sender).items()
    }.items()

"""Files of mpitrace: what is read of them, whatever happened to them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.apps.replay import plan_of
from omb_py.results.readers import source_of
from omb_py.tracing.profile.mpitrace import RankFile, Task, TracedCalls, parse, read_profile
from omb_py.tracing.profile.store import load
from tests import ROOT
from tests.helpers.damage import damaged, noisy
from tests.helpers.properties import examples

DATA = ROOT / "tests" / "data" / "mpitrace"
OF_CPUS, OF_GPUS = DATA / "thetagpu-cpu-16ranks.txt", DATA / "thetagpu-gpu-8ranks.txt"
FILES = st.sampled_from([OF_CPUS, OF_GPUS])


def profile_in(text: str | bytes) -> RankFile:
    content = text.encode() if isinstance(text, str) else text
    return parse(source_of("profile", content))


def sum_of(profile: RankFile) -> int:
    return sum(calls.calls for calls in profile.calls)


def test_a_profile_is_read_as_it_stands() -> None:
    profile = read_profile(str(OF_CPUS))
    assert (profile.rank, profile.ranks) == (0, 16)
    assert (profile.communicate_s, profile.elapsed_s) == (10.602, 15.548)
    assert profile.routines[3] == TracedCalls("Allreduce", 8161, 138800.2, 10.575)
    assert len(profile.routines) == 7
    assert len(profile.sizes) == 13 + 9 + 1 + 1
    assert TracedCalls("Allreduce", 7428, 8.0, 5.696) in profile.sizes
    assert len(profile.tasks) == 16
    assert profile.ranks_communicate_s == (10.60, 11.83, 12.18)
    assert profile.notes == ()


@pytest.mark.parametrize("path", [OF_CPUS, OF_GPUS])
def test_the_sizes_are_those_of_all_calls_that_move_data(path: Path) -> None:
    profile = read_profile(str(path))
    assert sum_of(profile) == sum(row.calls for row in profile.routines)
    seconds = sum(row.seconds for row in profile.routines)
    assert sum(calls.seconds for calls in profile.calls) == pytest.approx(seconds, abs=0.005)


def test_calls_without_sizes_have_the_average_of_their_routine() -> None:
    calls = read_profile(str(OF_CPUS)).calls
    assert [one for one in calls if one.routine == "Gatherv"] == [
        TracedCalls("Gatherv", 49, 0.0, 0.002)
    ]


def test_lines_may_end_as_on_windows() -> None:
    text = OF_CPUS.read_text()
    assert profile_in(text.replace("\n", "\r\n")) == profile_in(text)


def test_only_the_first_profile_of_a_file_is_taken() -> None:
    first, second = OF_CPUS.read_text(), OF_GPUS.read_text()
    both = profile_in(first + second)
    line = first.count("\n") + 1
    assert both.notes == (f"another profile begins in line {line} and is left out",)
    assert both.calls == profile_in(first).calls


def test_a_line_that_is_none_is_named() -> None:
    text = OF_CPUS.read_text().replace("7428           8.0          5.696", "7428   8.0  5.6")
    notes = profile_in(text).notes
    number = next(i for i, line in enumerate(text.splitlines(), 1) if "5.6\n" in line + "\n")
    assert f"line {number} is no whole row of its table and is left out" in notes
    note = "sizes are known for 733 of 8161 calls of MPI_Allreduce: the others have their mean"
    assert note in notes


@given(FILES, st.data())
@examples(200)
def test_a_file_cut_anywhere_has_the_rows_before_the_cut(path: Path, data: st.DataObject) -> None:
    content = path.read_bytes()
    whole = profile_in(content)
    part = profile_in(content[: data.draw(st.integers(0, len(content)))])
    assert whole.routines[: len(part.routines)] == part.routines
    assert whole.sizes[: len(part.sizes)] == part.sizes
    assert whole.tasks[: len(part.tasks)] == part.tasks


@given(FILES, st.data())
@examples(200)
def test_damage_takes_rows_and_makes_none_up(path: Path, data: st.DataObject) -> None:
    content = path.read_bytes()
    whole = profile_in(content)
    found = profile_in(data.draw(damaged(content)))
    strange = set(found.routines) - set(whole.routines)
    assert len(strange) <= 1  # of two halves of lines


@given(FILES, st.data())
@examples(100)
def test_noise_outside_of_tables_changes_no_row(path: Path, data: st.DataObject) -> None:
    text = path.read_text()
    mixed = profile_in(data.draw(noisy(text)))
    assert set(mixed.routines) <= set(profile_in(text).routines)
    assert set(mixed.sizes) <= set(profile_in(text).sizes)


def test_time_memory_and_the_summary_of_all_ranks_are_read() -> None:
    profile = read_profile(str(OF_CPUS))
    assert (profile.user_s, profile.system_s, profile.memory_mib) == (131.483, 6.319, 1655.0)
    assert profile.tasks[3] == Task(3, 12.18, 15.55, "thetagpu24", 130.75, 6.56, 1873.82, 170879)
    assert profile.spread == {
        "minimum": (10.602, 0),
        "median": (11.834, 5),
        "maximum": (12.177, 3),
    }
    assert profile.most == {"memory utilization": (1873.82, 3), "elapsed time": (15.55, 7)}
    assert profile.position == ("minimum",)


LATER = """\
Data for MPI rank 0 of 2: (all communicators)
-----------------------------------------------------------------------
MPI Routine                        #calls     avg. bytes      time(sec)
-----------------------------------------------------------------------
MPI_Send                               20          100.0          0.010
MPI_File_write                          2         4096.0          0.500
-----------------------------------------------------------------------
synchronization time     = 0.005 seconds.
total communication time = 0.015 seconds (including synchronization).
max resident set size    = 4064.422 MiB.

total MPI-IO time = 0.500 seconds.

   Data for communicator sizes 0 to 2 , avg size = 2.00:
   -----------------------------------------------------------------------
   MPI Routine                        #calls      avg. bytes      time(sec)
   MPI_Send                               20          100.0          0.010
   MPI time for this communicator bin = 0.010 sec.

  Rank 0 reported the largest memory utilization : 4064.42 MiB

taskid             host    cpu    comm(s)  elapsed(s)     user(s)   system(s)   size(MiB)   switches
     0   x3210c0s37b1n0      0       0.01      232.13      122.01       96.95     4064.42  240460957
     1   x3210c0s37b1n0      1       0.00      227.60      126.06       95.88     4001.15  231353798
"""


def test_later_versions_of_mpitrace_say_more() -> None:
    profile = profile_in(LATER)
    assert [one.routine for one in profile.routines] == ["Send", "File_write"]
    assert (profile.communicate_s, profile.io_s, profile.memory_mib) == (0.015, 0.5, 4064.422)
    assert profile.most == {"memory utilization": (4064.42, 0)}
    assert [(task.rank, task.host, task.elapsed_s) for task in profile.tasks] == [
        (0, "x3210c0s37b1n0", 232.13),
        (1, "x3210c0s37b1n0", 227.6),
    ]
    assert profile.notes[0] == "its tables for each size of communicators are left out"
    assert [one.calls for one in profile.unsized] == [20, 2]


OLDER = """\
Data for MPI rank 0 of 4:
Times and statistics from MPI_Init() to MPI_Finalize().
-----------------------------------------------------------------
MPI Routine                  #calls     avg. bytes      time(sec)
-----------------------------------------------------------------
MPI_Send                         12         1000.0          0.002
-----------------------------------------------------------------
MPI task 0 of 4 had the median communication time.
total communication time = 0.642 seconds.
total elapsed time       = 1.397 seconds.
user cpu time            = 1.137 seconds.
system time              = 0.250 seconds.
maximum memory size      = 2048 KBytes.

-----------------------------------------------------------------
Message size distributions:

MPI_Send                  #calls    avg. bytes      time(sec)
                              12        1000.0          0.002

-----------------------------------------------------------------


Summary for on-node communication
-----------------------------------------------------------------
MPI Routine                  #calls     avg. bytes      time(sec)
-----------------------------------------------------------------
MPI_Send                          6         1000.0          0.001
-----------------------------------------------------------------
measured on-node communication time = 0.001 seconds.

-----------------------------------------------------------------
On-node message size distributions:

MPI_Send                  #calls    avg. bytes      time(sec)
                               6        1000.0          0.001


-----------------------------------------------------------------

Communication summary for all tasks:

  minimum communication time = 0.105 sec for task 3
  median  communication time = 0.642 sec for task 0
  maximum communication time = 0.804 sec for task 2


MPI tasks sorted by communication time:
taskid      comm(s)  elapsed(s)     user(s)     size(KB)   switches
     3        0.11        1.40        0.70         1024           3
     0        0.64        1.40        1.14         2048           9
     1        0.70        1.40        0.71         1536           4
     2        0.80        1.40        0.72         1536          10
"""


def test_an_older_mpitrace_counts_in_kilobytes(tmp_path: Path) -> None:
    profile = profile_in(OLDER)
    assert profile.calls == (TracedCalls("Send", 12, 1000.0, 0.002),)
    assert profile.memory_mib == 2
    assert profile.tasks[1:3] == (
        Task(0, 0.64, 1.40, "", 1.14, None, 2.0, 9),
        Task(1, 0.70, 1.40, "", 0.71, None, 1.5, 4),
    )
    assert profile.ranks_communicate_s == (0.11, 0.64, 0.80)
    assert profile.notes == ("its tables for communication on a node are left out",)
    (tmp_path / "mpi_profile.0").write_text(OLDER)
    whole = load([str(tmp_path / "mpi_profile.0")])
    assert [member.rank for member in whole.members] == [0, 1, 2, 3]
    assert [member.system_s for member in whole.members] == [0.25, None, None, None]
    assert {member.host for member in whole.members} == {None}
    assert not any("nothing is known" in note for note in whole.notes)


def test_calls_of_unknown_sizes_are_kept_and_noted() -> None:
    profile = read_profile(str(DATA / "collapsed.txt"))
    assert [(one.routine, one.calls) for one in profile.calls] == [
        ("Comm_rank", 3),
        ("Bcast", 126),
        ("Bcast", 1),
        ("Bcast", 393),
        ("Allreduce", 24561),
    ]
    assert profile.calls[3].nbytes == pytest.approx((520 * 197140.6 - 126 * 4 - 8) / 393)
    assert profile.calls[3].seconds == pytest.approx(0.510)
    assert [note.partition(":")[0] for note in profile.notes] == [
        "sizes are known for 127 of 520 calls of MPI_Bcast",
        "sizes are known for 0 of 24561 calls of MPI_Allreduce",
    ]
    plan = plan_of(profile, 1.0, ())
    (allreduce,) = (item for item in plan.items if item.function == "allreduce")
    assert (allreduce.calls, allreduce.nbytes) == (24561, 208140)
    assert sum(item.calls for item in plan.items if item.function == "bcast") == 520

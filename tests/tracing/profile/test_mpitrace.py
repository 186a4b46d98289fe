"""Files of mpitrace: what is read of them, whatever happened to them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.apps.replay import plan_of
from omb_py.core.errors import UsageError
from omb_py.results.readers import source_of
from omb_py.tracing.profile.mpitrace import RankFile, parse, read_file
from omb_py.tracing.profile.profile import CallStats, Extreme
from omb_py.tracing.profile.store import load
from omb_py.tracing.profile.tables import routines, sizes
from tests import ROOT
from tests.helpers.damage import damaged, noisy
from tests.helpers.properties import examples
from tests.helpers.refusals import assert_names, missing

DATA = ROOT / "tests" / "data" / "mpitrace"
OF_CPUS, OF_GPUS = DATA / "thetagpu-cpu-16ranks.txt", DATA / "thetagpu-gpu-8ranks.txt"
FILES = st.sampled_from([OF_CPUS, OF_GPUS])


def file_of(text: str | bytes) -> RankFile:
    content = text.encode() if isinstance(text, str) else text
    return parse(source_of("profile", content), "profile")


def cells_of(text: str | bytes) -> set[CallStats]:
    """The calls with sizes in a text, none where it is no profile."""
    try:
        return {cell for cell in file_of(text).member.cells or () if cell.bin is not None}
    except UsageError:
        return set()


def test_a_profile_is_read_as_it_stands() -> None:
    file = read_file(str(OF_CPUS))
    member, lines = file.member, routines([file.member])
    assert (member.rank, file.ranks) == (0, 16)
    assert (member.communication_s, member.elapsed_s) == (10.602, 15.548)
    assert (member.user_s, member.system_s, member.memory_bytes) == (131.483, 6.319, 1655 << 20)
    assert list(lines) == [
        *("MPI_Comm_rank", "MPI_Comm_size", "MPI_Bcast", "MPI_Allreduce"),
        *("MPI_Gather", "MPI_Gatherv", "MPI_Allgather"),
    ]
    assert lines["MPI_Allreduce"].calls == 8161
    assert lines["MPI_Allreduce"].average == pytest.approx(138800.2, rel=1e-6)
    assert lines["MPI_Allreduce"].seconds == pytest.approx(10.575, abs=0.005)
    assert len(sizes([member])) == 13 + 9 + 1 + 1
    small = CallStats("MPI_Allreduce", None, None, 2, None, 7428, 7428 * 8.0, 5.696)
    assert member.cells is not None
    assert small in member.cells
    assert file.notes == ()


def test_the_summary_of_all_ranks_is_read() -> None:
    file = read_file(str(OF_CPUS))
    assert len(file.others) == 16
    (row,) = (row for row in file.others if row.rank == 3)
    assert (row.communication_s, row.elapsed_s, row.host) == (12.18, 15.55, "thetagpu24")
    assert (row.user_s, row.system_s, row.switches) == (130.75, 6.56, 170879)
    assert row.memory_bytes == pytest.approx(1873.82 * 2**20)
    assert file.extremes == {
        "minimum": Extreme(10.602, 0),
        "median": Extreme(11.834, 5),
        "maximum": Extreme(12.177, 3),
        "memory": Extreme(1873.82 * 2**20, 3),
        "elapsed": Extreme(15.55, 7),
    }


def test_calls_without_sizes_have_the_average_of_their_routine() -> None:
    cells = read_file(str(OF_CPUS)).member.cells or ()
    (gatherv,) = (one for one in cells if one.routine == "MPI_Gatherv")
    assert (gatherv.bin, gatherv.calls, gatherv.nbytes) == (None, 49, 0.0)
    assert sum(one.calls for one in cells) == 8392


def test_lines_may_end_as_on_windows() -> None:
    text = OF_CPUS.read_text()
    assert file_of(text.replace("\n", "\r\n")) == file_of(text)


def test_only_the_first_profile_of_a_file_is_taken() -> None:
    first, second = OF_CPUS.read_text(), OF_GPUS.read_text()
    both = file_of(first + second)
    line = first.count("\n") + 1
    assert not missing(f"another profile line {line} left out", both.notes)
    assert both.member == file_of(first).member


def test_a_line_that_is_none_is_named() -> None:
    text = OF_CPUS.read_text().replace("7428           8.0          5.696", "7428   8.0  5.6")
    notes = file_of(text).notes
    number = next(i for i, line in enumerate(text.splitlines(), 1) if "5.6\n" in line + "\n")
    assert not missing(f"line {number} no whole row left out", notes)
    note = "sizes are known for 733 of 8161 calls of MPI_Allreduce: the others have their mean"
    assert note in notes


@given(FILES, st.data())
@examples(200)
def test_a_file_cut_anywhere_has_the_rows_before_the_cut(path: Path, data: st.DataObject) -> None:
    content = path.read_bytes()
    assert cells_of(content[: data.draw(st.integers(0, len(content)))]) <= cells_of(content)


@given(FILES, st.data())
@examples(200)
def test_damage_takes_rows_and_makes_none_up(path: Path, data: st.DataObject) -> None:
    content = path.read_bytes()
    strange = {one.calls for one in cells_of(data.draw(damaged(content)))}
    strange -= {one.calls for one in cells_of(content)}
    assert len(strange) <= 1  # of two halves of lines


@given(FILES, st.data())
@examples(100)
def test_noise_outside_of_tables_changes_no_row(path: Path, data: st.DataObject) -> None:
    text = path.read_text()
    assert cells_of(data.draw(noisy(text))) <= cells_of(text)


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
    file = file_of(LATER)
    member = file.member
    cells = member.cells or ()
    assert [(one.routine, one.calls, one.bin) for one in cells] == [
        ("MPI_Send", 20, None),
        ("MPI_File_write", 2, None),
    ]
    assert (member.communication_s, member.io_s) == (0.015, 0.5)
    assert member.memory_bytes == pytest.approx(4064.422 * 2**20)
    assert file.extremes == {"memory": Extreme(4064.42 * 2**20, 0)}
    assert [(one.rank, one.host, one.elapsed_s) for one in file.others] == [
        (0, "x3210c0s37b1n0", 232.13),
        (1, "x3210c0s37b1n0", 227.6),
    ]
    assert not missing("tables size of communicators left out", file.notes[0])


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
    file = file_of(OLDER)
    (cell,) = file.member.cells or ()
    assert (cell.routine, cell.calls, cell.nbytes, cell.seconds) == ("MPI_Send", 12, 12e3, 0.002)
    assert file.member.memory_bytes == 2 << 20
    assert [(one.rank, one.communication_s, one.memory_bytes) for one in file.others[1:3]] == [
        (0, 0.64, 2 << 20),
        (1, 0.70, 1536 << 10),
    ]
    (note,) = file.notes
    assert_names(note, "tables on a node left out")
    (tmp_path / "mpi_profile.0").write_text(OLDER)
    whole = load([str(tmp_path / "mpi_profile.0")])
    assert [member.rank for member in whole.members] == [0, 1, 2, 3]
    assert [member.system_s for member in whole.members] == [0.25, None, None, None]
    assert {member.host for member in whole.members} == {None}
    assert not any("nothing is known" in note for note in whole.notes)


def test_calls_of_unknown_sizes_are_kept_and_noted() -> None:
    file = read_file(str(DATA / "collapsed.txt"))
    cells = file.member.cells or ()
    assert [(one.routine, one.calls) for one in cells] == [
        ("MPI_Bcast", 126),
        ("MPI_Bcast", 1),
        ("MPI_Comm_rank", 3),
        ("MPI_Bcast", 393),
        ("MPI_Allreduce", 24561),
    ]
    assert cells[3].nbytes == pytest.approx(520 * 197140.6 - 126 * 4 - 8)
    assert cells[3].seconds == pytest.approx(0.510)
    for note, words in zip(
        file.notes, ("127 of 520 MPI_Bcast", "0 of 24561 MPI_Allreduce"), strict=True
    ):
        assert_names(note, f"sizes known {words}")
    plan = plan_of(file.member, 1.0, ())
    (allreduce,) = (item for item in plan.items if item.function == "allreduce")
    assert (allreduce.calls, allreduce.nbytes) == (24561, 208140)
    assert sum(item.calls for item in plan.items if item.function == "bcast") == 520

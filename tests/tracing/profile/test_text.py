"""The text of a profile: mpitrace's tables with mpitrace's numbers, and what comes after them."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given

from omb_py.apps.replay import plan_of
from omb_py.core.errors import UsageError
from omb_py.results.readers import source_of
from omb_py.tracing.profile import text
from omb_py.tracing.profile import text as sections
from omb_py.tracing.profile.mpitrace import RankFile, parse, read_profile
from omb_py.tracing.profile.profile import CallStats, Profile, RankProfile, extremes_of
from omb_py.tracing.profile.store import load
from omb_py.tracing.records.layout import Communicator
from tests import ROOT
from tests.helpers.properties import examples
from tests.tracing.made_records import MadeRecord
from tests.tracing.profile.made_profiles import MS, made_rank, made_run, profiles

DATA = ROOT / "tests" / "data" / "mpitrace"
REAL = pytest.mark.parametrize(
    "path", [DATA / "thetagpu-cpu-16ranks.txt", DATA / "thetagpu-gpu-8ranks.txt"]
)


def text_of(profile: Profile, rank: int | None = None) -> str:
    out = io.StringIO()
    text.write(profile, rank, out)
    return out.getvalue()


def tables_in(content: str) -> RankFile:
    return replace(parse(source_of("text", content.encode())), notes=(), most={})


def rows(content: str) -> list[list[str]]:
    return [line.split() for line in content.splitlines()]


@REAL
def test_a_file_of_mpitrace_is_shown_with_the_same_tables(path: Path) -> None:
    shown = text_of(load([str(path)]), 0)
    original = read_profile(str(path))
    assert tables_in(shown) == replace(original, notes=(), most={})
    wanted = [row for row in rows(path.read_text()) if row and row[-1][0].isdigit()]
    found = rows(shown)
    for row in wanted:
        if row[0] != "Rank":
            assert row in found, row


@REAL
def test_in_all_it_is_the_same_but_for_the_totals(path: Path) -> None:
    profile = load([str(path)])
    original = read_profile(str(path))
    found = tables_in(text_of(profile))
    assert found.routines == original.routines
    assert found.sizes == original.sizes
    assert found.tasks == original.tasks
    assert f"Data for 1 of {profile.ranks} MPI ranks (rank 0):" in text_of(profile)


def test_a_rank_of_records_is_shown_as_mpitrace_would(tmp_path: Path) -> None:
    profile = load([str(made_run(tmp_path))])
    found = tables_in(text_of(profile, 1))
    assert (found.rank, found.ranks) == (1, 4)
    assert [(one.routine, one.calls, one.nbytes) for one in found.routines] == [
        ("Isend", 1, 101.0),
        ("Wait", 1, 0.0),
        ("Barrier", 1, 0.0),
        ("Allreduce", 4, 1006.0),
        ("File_write_at", 1, 1000.0),
    ]
    assert [(one.routine, one.calls, one.nbytes, one.seconds) for one in found.sizes] == [
        ("Isend", 1, 101.0, 0.001),
        ("Allreduce", 3, 8.0, 0.006),
        ("Allreduce", 1, 4000.0, 0.010),
        ("File_write_at", 1, 1000.0, 0.005),
    ]
    assert found.communicate_s == 0.020
    assert (found.elapsed_s, found.user_s, found.system_s) == (0.1, 0.06, 0.005)
    assert (found.io_s, found.memory_mib) == (0.005, 2.0)
    assert found.position == ("median",)
    assert found.tasks == ()


def test_rank_0_has_the_summary_of_all(tmp_path: Path) -> None:
    found = tables_in(text_of(load([str(made_run(tmp_path))]), 0))
    assert [(task.rank, task.host, task.switches) for task in found.tasks] == [
        (0, "node0", 0),
        (1, "node0", 1),
        (2, "node1", 2),
        (3, "node1", 3),
    ]
    assert found.spread == {"minimum": (0.017, 0), "median": (0.020, 1), "maximum": (0.026, 3)}


def test_in_all_calls_are_added_up_and_each_routine_has_its_extremes(tmp_path: Path) -> None:
    shown = text_of(load([str(made_run(tmp_path))]))
    assert shown.startswith("Data for all 4 MPI ranks:\n")
    allreduce = "MPI_Allreduce 16 1006.0 0.070 0.013 0 0.016 1 0.022 3"
    assert allreduce.split() in rows(shown)
    assert "12 8.0 0.030".split() in rows(shown)
    assert "total communication time = 0.086 seconds, the sum of 4 ranks." in shown


def test_files_of_mpi_have_a_table_and_a_sum_of_their_own(tmp_path: Path) -> None:
    shown = text_of(load([str(made_run(tmp_path))]))
    communication, files = shown.split("MPI-IO Routine")
    assert "MPI_File" not in communication
    assert files.index("MPI_File_write_at") < files.index("total MPI-IO time        = 0.020")


def test_data_of_files_has_its_bytes_and_rates(tmp_path: Path) -> None:
    made = MadeRecord(tmp_path, 0, 1)
    made.call("MPI_File_open", 0, MS)
    for number in range(3):
        made.call("MPI_File_write_at_all", 0, 2 * MS, nbytes=4_000_000 + number)
    made.call("MPI_File_iwrite_at", 0, MS, nbytes=1_000_000)
    made.call("MPI_File_read", 0, 4 * MS, nbytes=1_000_000)
    made.finish(100 * MS)
    shown = text_of(load([str(tmp_path)]), 0)
    section = rows(shown.split("Data of files")[1])
    assert section[3:8] == [
        ["MPI_File_iwrite_at", "1", "1000000", "0.001", "-"],
        ["MPI_File_read", "1", "1000000", "0.004", "250.0"],
        ["MPI_File_write_at_all", "3", "12000003", "0.006", "2000.0"],
        ["read", "1", "1000000", "0.004", "250.0"],
        ["written", "4", "13000003", "0.007", "2000.0"],
    ]
    assert [one.routine for one in tables_in(shown).routines][:1] == ["File_iwrite_at"]


def test_who_sends_to_whom(tmp_path: Path) -> None:
    shown = text_of(load([str(made_run(tmp_path))]))
    section = rows(shown.split("Who sends to whom")[1])
    assert ["3", "0", "1", "103", "103.0", "0.001"] in section
    assert section[3][:2] == ["0", "1"]


def test_communicators_are_told_apart_by_their_size(tmp_path: Path) -> None:
    section = rows(text_of(load([str(made_run(tmp_path))])).split("size of their communicator")[1])
    assert "2 1 MPI_Barrier 4 0.0 0.004".split() in section
    assert "4 1 MPI_Allreduce 16 1006.0 0.070".split() in section


def test_time_outside_of_mpi_without_a_core_is_pointed_out(tmp_path: Path) -> None:
    profile = load([str(made_run(tmp_path))])
    shown = text_of(profile, 2)
    wall = 0.1 - 0.023 - 0.005
    assert f"2 {wall:.3f} 0.010 {100 * 0.01 / wall:.1f}".split() in rows(shown)
    assert "they had no core" in shown
    busy = [replace(member, outside_s=0.07) for member in profile.members]
    assert "they had no core" not in text_of(replace(profile, members=tuple(busy)), 2)


def test_points_of_call_are_ordered_by_time_and_shown_without_their_common_folder() -> None:
    cells = [
        CallStats("MPI_Bcast", None, 0, 4, "/home/me/run/a.py:10 main", 2, 20, 0.5),
        CallStats("MPI_Bcast", None, 0, 5, "/home/me/run/a.py:10 main", 1, 40, 0.25),
        CallStats("MPI_Bcast", None, 0, 4, "/home/me/run/lib/b.py:7 <lambda>", 1, 10, 2.0),
        CallStats("MPI_Wait", None, None, None, None, 1, 0, 9.0),
    ]
    member = RankProfile(0, cells=tuple(cells))
    shown = text_of(Profile(1, (member,), extremes_of([member])), 0)
    section = shown.split("Points of call")[1].splitlines()
    assert section[3].split() == "2.000 1 10.0 MPI_Bcast lib/b.py:7 <lambda>".split()
    assert section[4].split() == "0.750 3 20.0 MPI_Bcast a.py:10 main".split()


def test_of_very_many_rows_the_first_are_shown_and_the_others_counted() -> None:
    cells = tuple(CallStats("MPI_Send", None, peer, 9, None, 1, peer, 0.1) for peer in range(250))
    member = RankProfile(0, cells=cells)
    shown = text_of(Profile(250, (member,), extremes_of([member])), 0)
    assert "the 100 pairs with the most bytes; profile.csv has all 250" in shown
    assert shown.split("Who sends")[1].splitlines()[3].split()[1] == "249"


def test_of_calls_both_ways_it_is_said_that_bytes_are_of_both() -> None:
    for routine, said in (("MPI_Sendrecv", True), ("MPI_Send", False)):
        member = RankProfile(0, cells=(CallStats(routine, None, 1, 3, None, 1, 16, 0.1),))
        shown = text_of(Profile(2, (member,), extremes_of([member])), 0)
        assert ("those sent and those received" in shown) == said


def test_making_a_persistent_send_sends_nothing() -> None:
    member = RankProfile(0, cells=(CallStats("MPI_Send_init", None, 1, 3, None, 1, 16, 0.1),))
    assert "Who sends" not in text_of(Profile(2, (member,), extremes_of([member])), 0)


def test_a_rank_of_records_can_be_replayed(tmp_path: Path) -> None:
    shown = text_of(load([str(made_run(tmp_path))]), 0)
    plan = plan_of(parse(source_of("profile.0.txt", shown.encode())), 1.0, ())
    assert [(item.function, item.nbytes, item.calls) for item in plan.items] == [
        ("isend", 100, 1),
        ("barrier", 0, 1),
        ("allreduce", 8, 3),
        ("allreduce", 4000, 1),
    ]


def test_an_unfinished_rank_is_marked(tmp_path: Path) -> None:
    made_rank(tmp_path, 0)
    made_rank(tmp_path, 1, end=None)
    shown = text_of(load([str(tmp_path)]))
    assert shown.startswith("Data for 2 of 4 MPI ranks (ranks 0-1):\n")
    assert "see the 2 notes at the end" in shown
    (row,) = (line for line in shown.splitlines() if line.endswith("not complete"))
    assert row.split()[0] == "1"


def test_what_is_not_known_is_a_dash() -> None:
    member = RankProfile(3)
    shown = text_of(Profile(8, (member,), extremes_of([member])))
    assert "3 - - - - - - -".split() in rows(shown)
    assert "= 0.000" not in shown


def test_a_rank_that_is_not_there(tmp_path: Path) -> None:
    made_rank(tmp_path, 1)
    with pytest.raises(UsageError, match="nothing is known of rank 3: there is rank 1 of 4"):
        text.write(load([str(tmp_path)]), 3, io.StringIO())


def test_strings_cannot_change_the_layout() -> None:
    cell = CallStats(
        "MPI_Send\nMPI_Recv 1", Communicator("a\nb", 2, "\t"), 1, 2, "x\r\ny:1 f", 1, 8, 1.0
    )
    member = RankProfile(0, host="a b\nc\x1b[2J", elapsed_s=1.0, cells=(cell,))
    shown = text_of(Profile(2, (member,), extremes_of([member]), notes=("one\ntwo",)))
    assert not [line for line in shown.splitlines() if line.startswith(("MPI_Recv", "two", "c"))]
    assert "\x1b" not in shown
    assert "a_b?c?[2J" in shown


@given(profiles())
@examples(200)
def test_any_profile_can_be_written(profile: Profile) -> None:
    text_of(profile)
    for member in profile.members:
        text_of(profile, member.rank)


def test_the_histogram_has_15_bins_from_the_least_to_the_greatest() -> None:
    seconds = [1.0, 1.04, 1.06, 2.4, 2.36]
    bins = sections.histogram(seconds)
    assert len(bins) == 15
    assert [middle for middle, _ in bins] == pytest.approx([1 + 0.1 * i for i in range(15)])
    assert [number for _, number in bins] == [2, 1, *[0] * 12, 2]
    assert sections.histogram([2.0, 2.0]) == [(2.0, 2)]


@pytest.mark.parametrize(("ranks", "shown"), [(32, False), (33, True)])
def test_the_histogram_is_there_for_more_ranks_than_a_table_shows_well(
    ranks: int, shown: bool
) -> None:
    members = tuple(RankProfile(rank, communication_s=float(rank)) for rank in range(ranks))
    assert ("Histogram" in text_of(Profile(ranks, members, extremes_of(members)))) == shown


def test_communication_time_is_that_of_all_calls_but_files(tmp_path: Path) -> None:
    (member,) = load([str(made_rank(tmp_path, 0, ranks=1).path)]).members
    spent = 3 * MS + 10 * MS + MS + 2 * MS + MS
    assert member.communication_s == pytest.approx(spent * 1e-9)
    assert member.io_s == pytest.approx(0.005)

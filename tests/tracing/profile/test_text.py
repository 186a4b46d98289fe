"""The tables of a profile."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from omb_py.core.text.tables import plain
from omb_py.tracing.profile import text
from omb_py.tracing.profile.profile import CallStats, Profile, RankProfile, extremes_of
from omb_py.tracing.profile.store import load
from omb_py.tracing.records.layout import Communicator
from tests import ROOT
from tests.helpers.properties import examples
from tests.helpers.refusals import missing
from tests.tracing.made_records import MadeRecord
from tests.tracing.profile.made_profiles import MS, made_rank, made_run, profiles

DATA = ROOT / "tests" / "data" / "mpitrace"
REAL = pytest.mark.parametrize(
    "path", [DATA / "thetagpu-cpu-16ranks.txt", DATA / "thetagpu-gpu-8ranks.txt"]
)


def text_of(profile: Profile) -> str:
    return plain(text.sheets(profile), text.notes(profile))


def rows(content: str) -> list[list[str]]:
    return [line.split() for line in content.splitlines()]


def section(content: str, title: str) -> list[list[str]]:
    """The rows of a table, with its columns first."""
    _, _, rest = content.partition(f"{title}\n")
    columns, _, *found = rest.partition("\n\n")[0].splitlines()
    return rows("\n".join([columns, *found]))


@REAL
def test_a_file_of_mpitrace_is_shown_with_its_numbers(path: Path) -> None:
    found = rows(text_of(load([str(path)])))
    wanted = [row for row in rows(path.read_text()) if row and row[-1][0].isdigit()]
    numbers = [row for row in wanted if len(row) == 3]  # sizes: calls, average, seconds
    assert numbers
    for row in numbers:
        assert any(one[-3:] == row for one in found), row


@pytest.mark.parametrize(
    ("path", "row"),
    [
        (DATA / "thetagpu-cpu-16ranks.txt", "1 KiB 7453 4968 9 552.0 0.004"),
        (DATA / "thetagpu-gpu-8ranks.txt", "MPI_Allreduce 8 B 11658 93264 11658 8.0 5.440"),
    ],
)
def test_sizes_count_the_calls_up_to_each_limit(path: Path, row: str) -> None:
    """7,453 of the 8,161 allreduces on CPUs have at most 1 KiB, all of those on GPUs 8 bytes."""
    assert row.split() in rows(text_of(load([str(path)])))


def test_a_rank_of_records_has_its_routines_and_sizes(tmp_path: Path) -> None:
    made_run(tmp_path)
    shown = text_of(load([str(tmp_path / "rank-000001.record")]))
    assert shown.startswith("Profile of 1 of 4 ranks (rank 1)\n")
    assert section(shown, "MPI routines")[1:] == [
        ["MPI_Isend", "1", "101.0", "0.001"],
        ["MPI_Wait", "1", "0.0", "0.002"],
        ["MPI_Barrier", "1", "0.0", "0.001"],
        ["MPI_Allreduce", "4", "1006.0", "0.016"],
    ]
    assert section(shown, "MPI-IO routines")[1:] == [["MPI_File_write_at", "1", "1000.0", "0.005"]]
    assert section(shown, "Message sizes")[1:] == [
        ["MPI_Isend", "128", "B", "1", "101", "1", "101.0", "0.001"],
        ["MPI_Allreduce", "8", "B", "3", "24", "3", "8.0", "0.006"],
        ["4", "KiB", "4", "4000", "1", "4000.0", "0.010"],
        ["MPI_File_write_at", "1", "KiB", "1", "1000", "1", "1000.0", "0.005"],
    ]
    totals = [" ".join(row) for row in section(shown, "Totals")[1:]]
    for total, said in zip(
        totals,
        (
            "communication time 1 0.020 s",
            "elapsed time 1 0.100 s",
            "user CPU time 1 0.060 s",
            "system CPU time 1 0.005 s",
            "MPI-IO time 1 0.005 s",
            "resident memory 1 2.0 MiB",
        ),
        strict=True,
    ):
        assert total.startswith(said)


def test_each_rank_has_a_row(tmp_path: Path) -> None:
    found = section(text_of(load([str(made_run(tmp_path))])), "All ranks")
    assert [(row[0], row[1], row[-2]) for row in found[1:]] == [
        ("0", "node0", "0"),
        ("1", "node0", "1"),
        ("2", "node1", "2"),
        ("3", "node1", "3"),
    ]


def test_totals_have_extremes_of_each_routine(tmp_path: Path) -> None:
    shown = text_of(load([str(made_run(tmp_path))]))
    assert shown.startswith("Profile of all 4 ranks\n")
    allreduce = "MPI_Allreduce 16 1006.0 0.070 0.013 (0) 0.016 (1) 0.022 (3)"
    assert allreduce.split() in rows(shown)
    assert "MPI_Allreduce 8 B 12 96 12 8.0 0.030".split() in rows(shown)
    total = "communication time 4 0.086 s 0.017 s (0) 0.020 s (1) 0.026 s (3)"
    assert total.split() in rows(shown)


def test_files_of_mpi_have_a_table_and_a_sum_of_their_own(tmp_path: Path) -> None:
    shown = text_of(load([str(made_run(tmp_path))]))
    communication, files = shown.split("MPI-IO routines")
    assert "MPI_File" not in communication
    assert files.index("MPI_File_write_at") < files.index("MPI-IO time")
    assert "MPI-IO time 4 0.020 s".split() in [row[:5] for row in rows(files)]


def test_data_of_files_has_its_bytes_and_rates(tmp_path: Path) -> None:
    made = MadeRecord(tmp_path, 0, 1)
    made.call("MPI_File_open", 0, MS)
    for number in range(3):
        made.call("MPI_File_write_at_all", 0, 2 * MS, nbytes=4_000_000 + number)
    made.call("MPI_File_iwrite_at", 0, MS, nbytes=1_000_000)
    made.call("MPI_File_read", 0, 4 * MS, nbytes=1_000_000)
    made.finish(100 * MS)
    shown = text_of(load([str(tmp_path)]))
    assert section(shown, "Data of files")[1:] == [
        ["MPI_File_iwrite_at", "1", "1000000", "0.001", "-"],
        ["MPI_File_read", "1", "1000000", "0.004", "250.0"],
        ["MPI_File_write_at_all", "3", "12000003", "0.006", "2000.0"],
        ["read", "1", "1000000", "0.004", "250.0"],
        ["written", "4", "13000003", "0.007", "2000.0"],
    ]


def test_who_sends_to_whom(tmp_path: Path) -> None:
    shown = text_of(load([str(made_run(tmp_path))]))
    found = section(shown, "Who sends to whom (ranks of MPI_COMM_WORLD)")
    assert ["3", "0", "1", "103", "103.0", "0.001"] in found
    assert found[1][:2] == ["0", "1"]


def test_communicators_are_told_apart_by_their_size(tmp_path: Path) -> None:
    shown = text_of(load([str(made_run(tmp_path))]))
    found = section(shown, "Calls by the size of their communicator")
    assert "2 1 MPI_Barrier 4 0.0 0.004".split() in found
    assert "1 MPI_Allreduce 16 1006.0 0.070".split() in found


def test_points_of_call_are_ordered_by_time() -> None:
    cells = [
        CallStats("MPI_Bcast", None, 0, 4, "/home/me/run/a.py:10 main", 2, 20, 0.5),
        CallStats("MPI_Bcast", None, 0, 5, "/home/me/run/a.py:10 main", 1, 40, 0.25),
        CallStats("MPI_Bcast", None, 0, 4, "/home/me/run/lib/b.py:7 <lambda>", 1, 10, 2.0),
        CallStats("MPI_Wait", None, None, None, None, 1, 0, 9.0),
    ]
    member = RankProfile(0, cells=tuple(cells))
    shown = text_of(Profile(1, (member,), extremes_of([member])))
    found = section(shown, "Points of call")
    assert found[1] == "MPI_Bcast lib/b.py:7 <lambda> 1 10.0 2.000".split()
    assert found[2] == "a.py:10 main 3 20.0 0.750".split()


def test_long_tables_show_the_first_rows() -> None:
    cells = tuple(CallStats("MPI_Send", None, peer, 9, None, 1, peer, 0.1) for peer in range(250))
    member = RankProfile(0, cells=cells)
    shown = text_of(Profile(250, (member,), extremes_of([member])))
    assert not missing("100 pairs most bytes; profile.csv 250", shown)
    assert section(shown, "Who sends to whom (ranks of MPI_COMM_WORLD)")[1][:2] == ["0", "249"]


def test_of_calls_both_ways_it_is_said_that_bytes_are_of_both() -> None:
    for routine, said in (("MPI_Sendrecv", True), ("MPI_Send", False)):
        member = RankProfile(0, cells=(CallStats(routine, None, 1, 3, None, 1, 16, 0.1),))
        shown = text_of(Profile(2, (member,), extremes_of([member])))
        assert ("those sent and those received" in shown) == said


def test_making_a_persistent_send_sends_nothing() -> None:
    member = RankProfile(0, cells=(CallStats("MPI_Send_init", None, 1, 3, None, 1, 16, 0.1),))
    assert "Who sends" not in text_of(Profile(2, (member,), extremes_of([member])))


def test_an_unfinished_rank_is_marked(tmp_path: Path) -> None:
    made_rank(tmp_path, 0)
    made_rank(tmp_path, 1, end=None)
    shown = text_of(load([str(tmp_path)]))
    assert shown.startswith("Profile of 2 of 4 ranks (ranks 0-1)\n")
    assert "see the 2 notes at the end" in shown
    assert [(row[0], row[-1]) for row in section(shown, "All ranks")[1:]] == [
        ("0", "yes"),
        ("1", "no"),
    ]


def test_what_is_not_known_is_a_dash() -> None:
    member = RankProfile(3)
    shown = text_of(Profile(8, (member,), extremes_of([member])))
    assert "3 - - - - - - - yes".split() in rows(shown)
    assert "0.000" not in shown


def test_strings_cannot_change_the_layout() -> None:
    cell = CallStats(
        "MPI_Send\nMPI_Recv 1", Communicator("a\nb", 2, "\t"), 1, 2, "x\r\ny:1 f", 1, 8, 1.0
    )
    member = RankProfile(0, host="a b\nc\x1b[2J", elapsed_s=1.0, cells=(cell,))
    shown = text_of(Profile(2, (member,), extremes_of([member]), notes=("one\ntwo",)))
    assert not [line for line in shown.splitlines() if line.startswith(("MPI_Recv", "two", "c"))]
    assert "\x1b" not in shown
    assert "a_b?c?[2J" in shown


@pytest.mark.slow
@given(profiles())
@examples(200)
def test_any_profile_can_be_written(profile: Profile) -> None:
    text_of(profile)


def test_communication_time_is_that_of_all_calls_but_files(tmp_path: Path) -> None:
    (member,) = load([str(made_rank(tmp_path, 0, ranks=1).path)]).members
    spent = 3 * MS + 10 * MS + MS + 2 * MS + MS
    assert member.communication_s == pytest.approx(spent * 1e-9)
    assert member.io_s == pytest.approx(0.005)

"""Ranks that are gone, and what was done from one look to the next."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.core.text.units import duration, scaled
from omb_py.core.text.words import some_ranks
from omb_py.tracing.monitor.snapshots import Process, RankState, changes
from tests.helpers.refusals import assert_names
from tests.tracing.monitor.scenes import Rank, look, said


def test_a_wait_that_goes_on_counts_as_time_in_mpi(tmp_path: Path) -> None:
    seen = look(tmp_path, Rank("MPI_Recv", since=4.0), Rank())
    assert changes(None, seen)[0].mpi_shares == pytest.approx((0.6,))


def test_rates_are_those_since_the_look_before(tmp_path: Path) -> None:
    call = ("MPI_Send", 0.0, 0.5, 100)
    before = look(tmp_path / "1", Rank(calls=[call] * 4), at=10.0)
    after = look(tmp_path / "2", Rank(calls=[call] * 10), at=12.0)
    change = changes(before, after)[0]
    assert (change.calls_per_s, change.bytes_per_s) == (3.0, 300.0)
    assert change.mpi_shares == (1.0,)


def test_a_folder_that_another_run_has_taken_begins_anew(tmp_path: Path) -> None:
    before = look(tmp_path / "1", Rank(calls=[("MPI_Send", 0.0, 0.5, 100)] * 9))
    began = Rank(header={"began": 5_000_000_000}, calls=[("MPI_Send", 0.0, 0.5, 100)])
    after = look(tmp_path / "2", began, at=12.0)
    assert changes(before, after)[0].calls_per_s == pytest.approx(1 / 8)


def test_time_outside_mpi_begins_with_the_rank_or_its_last_call(tmp_path: Path) -> None:
    (never,) = look(tmp_path / "1", Rank(), at=12.5).ranks[0].living
    assert never.seconds == pytest.approx(12.5)
    called = Rank(calls=[("MPI_Send", 13.0, 13.1, 1)])
    (then,) = look(tmp_path / "2", called, at=14.0).ranks[0].living
    assert then.seconds == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("rank", "state"),
    [
        (Rank(), RankState.RUNS),
        (Rank(ended=True), RankState.ENDED),
        (Rank(ended=True, heard=1.0, process=Process.GONE), RankState.ENDED),
        (Rank(heard=8.0, process=Process.GONE), RankState.KILLED),
        (Rank(heard=9.9, process=Process.GONE), RankState.RUNS),
        (Rank(process=Process.STOPPED), RankState.STOPPED),
        (Rank(heard=2.0), RankState.SILENT),
    ],
)
def test_how_a_rank_of_this_host_is(tmp_path: Path, rank: Rank, state: RankState) -> None:
    assert look(tmp_path, rank).ranks[0].state(5.0) is state


@pytest.mark.parametrize(("heard", "state"), [(9.0, RankState.RUNS), (2.0, RankState.SILENT)])
def test_remote_ranks_by_last_contact(tmp_path: Path, heard: float, state: RankState) -> None:
    first, second = (
        Rank(host="b", process=Process.UNKNOWN, heard=seconds) for seconds in (9.5, heard)
    )
    seen = look(tmp_path, first, second, at=1e6)
    assert [one.state(5.0) for one in seen.ranks] == [RankState.RUNS, state]


def test_who_was_killed_stopped_or_has_ended_is_told(tmp_path: Path) -> None:
    seen = look(
        tmp_path,
        Rank("MPI_Recv", since=3.0, heard=4.0, process=Process.GONE),
        Rank(process=Process.STOPPED),
        Rank(heard=1.0),
        Rank(ended=True),
        Rank(),
    )
    for one, words in zip(
        said(seen),
        (
            "rank 0 on a killed: MPI_Recv, 6.0 s",
            "rank 1 on a stopped: outside MPI, 0.0 s",
            "rank 2 on a not heard 9.0 s",
            "rank 3 ended",
        ),
        strict=True,
    ):
        assert_names(one.text, words)


def test_ranks_without_a_record_are_told(tmp_path: Path) -> None:
    (found,) = said(look(tmp_path, Rank(), None, None))
    assert found.text == "ranks 1-2 of 3 have no record yet"


def test_records_of_an_earlier_run_are_left_out(tmp_path: Path) -> None:
    look(tmp_path, *[Rank(ended=True)] * 4)
    seen = look(tmp_path, Rank(header={"began_epoch": 2 * 10**18}), Rank(), at=10.0)
    assert (seen.size, len(seen.ranks)) == (2, 2)


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        ([3], "rank 3"),
        ([4, 3], "ranks 3-4"),
        ([0, 1, 3], "ranks 0-1, 3"),
        (range(8), "ranks 0-7"),
        ([0, 1, 2, 9], "ranks 0-2, 9"),
        (range(0, 40, 2), "ranks 0, 2, 4, 6, 8, 10, 12, 14 and 12 more"),
    ],
)
def test_ranks_in_words(ranks: list[int], text: str) -> None:
    assert some_ranks(ranks) == text


@given(st.floats(0, 1e15))
def test_numbers_and_times_are_short(value: float) -> None:
    assert len(scaled(value, "B/s")) <= 12
    assert len(duration(value / 1e6)) <= 16

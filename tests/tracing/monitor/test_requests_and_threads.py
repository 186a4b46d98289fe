"""Waits in requests, for any rank, and in several threads: whom they name, and whom they cannot."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from omb_py.tracing.efficiency import load, notes, row_of, series_of, sheet
from omb_py.tracing.monitor import observations
from omb_py.tracing.monitor.findings import Concern, findings
from omb_py.tracing.monitor.observations import Observation
from omb_py.tracing.monitor.snapshots import changes
from omb_py.tracing.records.layout import ANYONE, NOBODY
from tests.tracing.made_records import MadeRecord
from tests.tracing.monitor.scenes import Rank, about, look, said

SECOND = 1_000_000_000


def waits(*peers: int, routine: str = "MPI_Waitall", operation: str = "", **more: Any) -> Rank:
    """In a wait for requests whose other sides these are."""
    return Rank(routine, peers, since=2.0, operation=operation, **more)


def receives(*peers: int) -> Rank:
    """In a wait for requests that receive."""
    return waits(*peers, operation="MPI_Irecv")


ANY = Rank("MPI_Mprobe", ANYONE, since=2.0)
ELSEWHERE = Rank(calls=[("MPI_Send", 1.0, 2.0, 8)])
REDUCES = waits(NOBODY, operation="MPI_Iallreduce", collectives=1)


@pytest.mark.parametrize(
    ("ranks", "circle", "words"),
    [
        ([receives(1), receives(0)], (0, 1), "of ranks 0-1: 0 waits in MPI_Waitall for 1"),
        ([ANY, ANY, ANY], (0, 1), "0 waits in MPI_Mprobe for any rank"),
        ([receives(1, 2), receives(0), receives(0)], (0, 1), "; rank 2 waits for them"),
        ([REDUCES, receives(0)], (0, 1), "0 waits in MPI_Waitall for 1"),
    ],
)
def test_ranks_that_none_can_free_are_a_possible_deadlock(
    tmp_path: Path, ranks: Sequence[Rank], circle: tuple[int, ...], words: str
) -> None:
    (found,) = about(Concern.DEADLOCK, said(look(tmp_path, *ranks)))
    assert found.ranks == circle
    assert words in found.text


@pytest.mark.parametrize(
    ("ranks", "words"),
    [
        (
            [receives(1, 2), receives(0), Rank()],
            "rank 0 waits in MPI_Waitall (8.0 s) for one or mo",
        ),
        ([receives(1, NOBODY), receives(0)], "rank 1 waits in MPI_Waitall (8.0 s) for rank 0, wh"),
        ([ANY, receives(0), Rank()], "rank 1 waits in MPI_Waitall (8.0 s) for rank 0, which is in"),
        (
            [Rank(calls=ELSEWHERE.calls, threads=[receives(1)]), receives(0)],
            "for rank 0, which is outside MPI (at least 8.0 s) in thread main and in "
            "MPI_Waitall of 1 (8.0 s) in thread 4711",
        ),
        ([waits(1), waits(0)], "rank 0 waits in MPI_Waitall (8.0 s) for rank 1, which is in"),
        ([REDUCES, Rank()], "rank 0 waits in MPI_Waitall (8.0 s) for rank 1"),
    ],
)
def test_ranks_that_one_can_free_are_no_deadlock(
    tmp_path: Path, ranks: Sequence[Rank], words: str
) -> None:
    found = said(look(tmp_path, *ranks))
    assert not about(Concern.DEADLOCK, found)
    assert any(words in one.text for one in found), found


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(ANY, id="any rank"),
        pytest.param(waits(NOBODY), id="unknown request"),
        pytest.param(waits(1, operation="MPI_Rget"), id="one-sided"),
    ],
)
def test_a_wait_for_unknown_ranks_names_none(tmp_path: Path, one: Rank) -> None:
    assert not said(look(tmp_path, one, Rank(), Rank()))


def seen(folder: Path, *ranks: Rank) -> Observation:
    one = look(folder, *ranks)
    made = changes(None, one)
    return Observation(one, made, made, findings(one, 1.0, 5.0), 5.0)


@pytest.mark.parametrize(
    ("rank", "words"),
    [
        (ANY, "any rank"),
        (waits(NOBODY, routine="MPI_Wait"), "world"),
        (waits(1, NOBODY), "1, unknown"),
        (waits(1, ANYONE), "1, any rank"),
    ],
)
def test_the_column_has_whom_a_wait_is_for(tmp_path: Path, rank: Rank, words: str) -> None:
    (found, _) = json.loads(observations.json_line(seen(tmp_path, rank, Rank()), 0.0))["per_rank"]
    assert found["with"] == words


def test_each_thread_has_a_row_and_its_own_times(tmp_path: Path) -> None:
    one = Rank(calls=[("MPI_Send", 3.0, 4.0, 8)], threads=[Rank("MPI_Recv", 1, since=5.0)])
    found = seen(tmp_path, one, Rank())
    rows = [row[:8] for row in observations.sheet(found).rows]
    assert rows == [
        ("0", "main", "outside MPI", "", "6.0 s", "0.1", "0.8 B/s", "10 %"),
        ("0", "4711", "MPI_Recv", "1", "5.0 s", "", "", "50 %"),
        ("1", "main", "outside MPI", "", "10.0 s", "0", "0 B/s", "0 %"),
    ]
    assert "in MPI" not in observations.summary(found)


def test_times_of_several_threads_give_no_factor(tmp_path: Path) -> None:
    for rank in range(2):
        record = MadeRecord(tmp_path, rank, 2)
        record.call("MPI_Send", 0, 5 * SECOND, peer=1 - rank, nbytes=8)
        if rank:
            record.file.thread(4711, threads=3, calls=12, ns=6 * SECOND)
            for number in range(4712, 4716):
                record.file.thread(number)
        record.finish(7 * SECOND)
    series = series_of(load([str(tmp_path)]))
    assert [line[0] for line in sheet(series).rows] == ["Elapsed"]
    factors = ("parallel_efficiency", "load_balance", "outside_sum_s", "outside_max_s")
    row = row_of(series.runs[0], series)
    assert [row[name] for name in factors] == [None] * 4
    (note,) = (note for note in notes(series) if "threads" in note)
    several = "thread 4711 and 2 that ended before it: 12 calls, 6.000 s; thread 4712: 0 calls"
    assert f"rank 1 ({several}" in note
    assert note.endswith(" and 2 more)")

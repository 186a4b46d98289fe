"""Who waits for whom: through chains to the one that it comes from, in circles, in collectives."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from omb_py.tracing.monitor.findings import Concern, waiting
from omb_py.tracing.monitor.snapshots import Process
from omb_py.tracing.records.layout import Communicator
from tests.helpers.refusals import assert_names
from tests.tracing.monitor.scenes import Rank, about, look, said


def barrier(number: int, since: float = 2.0) -> Rank:
    """In a barrier, which is the how-manieth collective call."""
    return Rank("MPI_Barrier", since=since, collectives=number)


def after(calls: int) -> Rank:
    """Outside MPI, after so many barriers."""
    return Rank(calls=[("MPI_Barrier", i / 10, i / 10 + 0.01, 0) for i in range(calls)])


def receive(peer: int, since: float = 2.0, **more: Any) -> Rank:
    """In a receive from a rank."""
    return Rank("MPI_Recv", peer, since=since, **more)


def collective(routine: str, **more: Any) -> Rank:
    """In its first collective call."""
    return Rank(routine, since=2.0, collectives=1, **more)


ROWS = Communicator("rows#1", 2, "rows")
THREE = Communicator("three#1", 3, "three")
IN_THREE = collective("MPI_Allreduce", communicator=THREE)
LEFT = ("MPI_Reduce", 0.2, 0.3, 8)
REDUCE = collective("MPI_Reduce", peer=0)
BCAST = collective("MPI_Bcast", peer=3)
SCAN = collective("MPI_Scan")

Case: TypeAlias = tuple[Sequence[Rank], tuple[int, ...], tuple[int, ...], str]
WAITS: dict[str, Case] = {
    "receive, for its peer": (
        (receive(1, 4.0), Rank()),
        *((1,), (0,)),
        "rank 0 waits in MPI_Recv (6.0 s) for rank 1, which is outside MPI",
    ),
    "barrier, for ranks with fewer calls": (
        (barrier(3), barrier(3), after(2), barrier(3)),
        *((2,), (0, 1, 3)),
        "ranks 0-1, 3 wait in MPI_Barrier (8.0 s) for rank 2",
    ),
    "reduce, not for a rank that left it": (
        (REDUCE, Rank(calls=[LEFT]), Rank()),
        *((2,), (0,), ""),
    ),
    "broadcast, for a late root": ((BCAST, BCAST, Rank(), Rank()), (3,), (0, 1), ""),
    "scan, only for lower ranks": ((SCAN, Rank(), SCAN, Rank()), (1,), (2,), ""),
    **{
        f"reduce, for a rank that only prepared {routine}": (
            (
                collective("MPI_Reduce", peer=0, calls=[(routine, 0.0, 0.1, 8)]),
                Rank(calls=[(routine, 0.0, 0.1, 8), LEFT]),
                Rank(calls=[(routine, 0.0, 0.1, 8)]),
            ),
            *((2,), (0,), ""),
        )
        for routine in ("MPI_Allreduce_init", "MPI_Barrier_init", "MPI_Bcast_init")
    },
    "collective, only for members of its communicator": (
        (
            collective("MPI_Allreduce", communicator=ROWS),
            Rank(),
            Rank(other_communicators=[ROWS]),
            Rank(),
        ),
        *((2,), (0,), ""),
    ),
    "collective, for the rank that is new to its communicator": (
        (IN_THREE, IN_THREE, Rank()),
        *((2,), (0, 1), ""),
    ),
    **{
        f"{routine}, for ranks elsewhere": (
            (Rank(routine, since=2.0), Rank(), Rank(routine, since=2.0)),
            *((1,), (0, 2), ""),
        )
        for routine in ("MPI_Comm_split", "MPI_Finalize", "MPI_Win_fence")
    },
    "chain, for its last rank": (
        (receive(1), receive(2, 3.0), Rank("MPI_Ssend", 3, since=4.0), Rank()),
        *((3,), (0, 1, 2)),
        "for rank 3, which is outside MPI (at least 10.0 s); 0 for 1 for 2 for 3",
    ),
    "receive, for a rank that was killed": (
        (receive(1, 1.0, heard=6.0, process=Process.GONE), receive(0)),
        *((0,), (1,)),
        "for rank 0, which was killed",
    ),
    "receive, for a rank that has ended": (
        (receive(1), Rank(ended=True, heard=3.0)),
        *((1,), (0,)),
        "rank 0 waits in MPI_Recv (8.0 s) for rank 1, which has ended",
    ),
    "receive, by the host's clock": (
        (receive(1, heard=9.7), Rank()),
        *((1,), (0,)),
        "rank 0 waits in MPI_Recv (8.0 s) for rank 1",
    ),
}


@pytest.mark.parametrize("case", WAITS)
def test_waiting_rank_names_the_awaited(tmp_path: Path, case: str) -> None:
    ranks, awaited, waits, words = WAITS[case]
    (found,) = about(Concern.WAITING, said(look(tmp_path, *ranks)))
    assert (found.ranks, found.waiting) == (awaited, waits)
    assert words in found.text


@pytest.mark.parametrize(
    "ranks",
    [
        pytest.param(
            (collective("MPI_Allreduce"), Rank(calls=[("MPI_Iallreduce", 0.0, 0.1, 8)])),
            id="non-blocking collective has begun",
        ),
        pytest.param((IN_THREE, IN_THREE, Rank(), Rank()), id="members of three are unknown"),
    ],
)
def test_rank_that_may_have_begun_is_not_awaited(tmp_path: Path, ranks: Sequence[Rank]) -> None:
    assert not about(Concern.WAITING, said(look(tmp_path, *ranks)))


def test_ranks_that_prepare_a_collective_are_in_none(tmp_path: Path) -> None:
    prepares = collective("MPI_Allreduce_init")
    found = said(look(tmp_path, prepares, prepares, barrier(1)))
    assert not about(Concern.MISMATCH, found)
    assert [(one.ranks, one.waiting) for one in about(Concern.WAITING, found)] == [((0, 1), (2,))]


def test_a_circle_is_a_possible_deadlock(tmp_path: Path) -> None:
    seen = look(tmp_path, receive(2), receive(0), receive(1), receive(1), Rank())
    (found,) = about(Concern.DEADLOCK, said(seen))
    assert (found.ranks, found.waiting) == ((0, 2, 1), (3,))
    assert_names(found.text, "deadlock of ranks 0-2: MPI_Recv rank 3 waits")
    for rank, other in ((0, 2), (2, 1), (1, 0)):
        assert f"{rank} waits in MPI_Recv for {other}" in found.text
    assert not about(Concern.WAITING, said(seen))


def test_every_circle_is_found(tmp_path: Path) -> None:
    pairs = [Rank("MPI_Send", rank ^ 1, since=2.0) for rank in range(6)]
    found = about(Concern.DEADLOCK, said(look(tmp_path, *pairs)))
    assert sorted(one.ranks for one in found) == [(0, 1), (2, 3), (4, 5)]


def test_collective_and_receive_form_a_deadlock(tmp_path: Path) -> None:
    seen = look(tmp_path, barrier(1), barrier(1), Rank("MPI_Recv", 0, since=2.0))
    (found,) = about(Concern.DEADLOCK, said(seen))
    assert set(found.ranks) | set(found.waiting) == {0, 1, 2}


def test_different_collectives_where_it_should_be_one_are_told(tmp_path: Path) -> None:
    allreduce = Rank("MPI_Allreduce", since=2.0, collectives=3)
    seen = look(tmp_path, barrier(3), allreduce, allreduce)
    (found,) = about(Concern.MISMATCH, said(seen))
    assert (found.ranks, found.waiting) == ((0,), (1, 2))
    assert_names(found.text, "call 3 world rank 0 MPI_Barrier, ranks 1-2 MPI_Allreduce")


def test_a_wait_that_has_only_begun_is_not_told(tmp_path: Path) -> None:
    assert not said(look(tmp_path, Rank("MPI_Recv", 1, since=9.5), Rank()))


def test_a_message_from_anybody_says_nothing_of_whom(tmp_path: Path) -> None:
    seen = look(tmp_path, Rank("MPI_Recv", since=2.0), Rank("MPI_Waitall", since=2.0))
    assert not waiting(seen, 1.0, 5.0).waits


def test_thousands_of_ranks_are_traced_at_once(tmp_path: Path) -> None:
    ranks = [Rank("MPI_Recv", rank + 1, since=2.0) for rank in range(199)]
    found = waiting(look(tmp_path, *ranks, Rank()), 1.0, 5.0)
    assert set(found.roots.values()) == {frozenset({199})}
    assert found.chain(0) == list(range(200))

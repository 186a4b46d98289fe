"""Who waits for whom: through chains to the one that it comes from, in circles, in collectives."""

from __future__ import annotations

from pathlib import Path

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


def test_a_rank_that_receives_waits_for_its_peer(tmp_path: Path) -> None:
    (found,) = about(Concern.WAITING, said(look(tmp_path, Rank("MPI_Recv", 1, since=4.0), Rank())))
    assert (found.ranks, found.waiting) == ((1,), (0,))
    assert found.text == "rank 0 waits in MPI_Recv (6.0 s) for rank 1, which is outside MPI"


def test_barrier_waits_for_ranks_with_fewer_calls(tmp_path: Path) -> None:
    seen = look(tmp_path, barrier(3), barrier(3), after(2), barrier(3))
    (found,) = about(Concern.WAITING, said(seen))
    assert (found.ranks, found.waiting) == ((2,), (0, 1, 3))
    assert found.text.startswith("ranks 0-1, 3 wait in MPI_Barrier (8.0 s) for rank 2")


def test_rank_that_left_the_collective_is_not_awaited(tmp_path: Path) -> None:
    reduce = Rank("MPI_Reduce", peer=0, since=2.0, collectives=1)
    left = Rank(calls=[("MPI_Reduce", 0.0, 0.1, 8)])
    (found,) = about(Concern.WAITING, said(look(tmp_path, reduce, left, Rank())))
    assert (found.ranks, found.waiting) == ((2,), (0,))


def test_in_a_broadcast_all_wait_for_a_root_that_is_late(tmp_path: Path) -> None:
    bcast = Rank("MPI_Bcast", peer=3, since=2.0, collectives=1)
    (found,) = about(Concern.WAITING, said(look(tmp_path, bcast, bcast, Rank(), Rank())))
    assert (found.ranks, found.waiting) == ((3,), (0, 1))


def test_in_a_scan_a_rank_waits_for_lower_ones_alone(tmp_path: Path) -> None:
    scan = Rank("MPI_Scan", since=2.0, collectives=1)
    (found,) = about(Concern.WAITING, said(look(tmp_path, scan, Rank(), scan, Rank())))
    assert (found.ranks, found.waiting) == ((1,), (2,))


def test_a_nonblocking_collective_counts_as_begun(tmp_path: Path) -> None:
    begun = Rank(calls=[("MPI_Iallreduce", 0.0, 0.1, 8)])
    both = Rank("MPI_Allreduce", since=2.0, collectives=1)
    assert not about(Concern.WAITING, said(look(tmp_path, both, begun)))


@pytest.mark.parametrize("routine", ["MPI_Allreduce_init", "MPI_Barrier_init", "MPI_Bcast_init"])
def test_a_collective_that_is_only_prepared_has_not_begun(tmp_path: Path, routine: str) -> None:
    prepared = (routine, 0.0, 0.1, 8)
    reduce = Rank("MPI_Reduce", peer=0, since=2.0, collectives=1, calls=[prepared])
    left = Rank(calls=[prepared, ("MPI_Reduce", 0.2, 0.3, 8)])
    late = Rank(calls=[prepared])
    (found,) = about(Concern.WAITING, said(look(tmp_path, reduce, left, late)))
    assert (found.ranks, found.waiting) == ((2,), (0,))


def test_ranks_that_prepare_a_collective_are_in_none(tmp_path: Path) -> None:
    prepares = Rank("MPI_Allreduce_init", since=2.0, collectives=1)
    barrier = Rank("MPI_Barrier", since=2.0, collectives=1)
    found = said(look(tmp_path, prepares, prepares, barrier))
    assert not about(Concern.MISMATCH, found)
    assert [(one.ranks, one.waiting) for one in about(Concern.WAITING, found)] == [((0, 1), (2,))]


def test_only_members_of_a_communicator_are_waited_for(tmp_path: Path) -> None:
    rows = Communicator("rows#1", 2, "rows")
    in_it = Rank("MPI_Allreduce", since=2.0, collectives=1, communicator=rows)
    late = Rank(other_communicators=[rows])
    (found,) = about(Concern.WAITING, said(look(tmp_path, in_it, Rank(), late, Rank())))
    assert (found.ranks, found.waiting) == ((2,), (0,))


def test_rank_new_to_a_communicator_is_late(
    tmp_path: Path,
) -> None:
    three = Communicator("three#1", 3, "three")
    in_it = Rank("MPI_Allreduce", since=2.0, collectives=1, communicator=three)
    (found,) = about(Concern.WAITING, said(look(tmp_path / "1", in_it, in_it, Rank())))
    assert (found.ranks, found.waiting) == ((2,), (0, 1))
    assert not about(Concern.WAITING, said(look(tmp_path / "2", in_it, in_it, Rank(), Rank())))


@pytest.mark.parametrize("routine", ["MPI_Comm_split", "MPI_Finalize", "MPI_Win_fence"])
def test_calls_that_all_make_wait_for_those_that_are_elsewhere(
    tmp_path: Path, routine: str
) -> None:
    there = Rank(routine, since=2.0)
    (found,) = about(Concern.WAITING, said(look(tmp_path, there, Rank(), there)))
    assert (found.ranks, found.waiting) == ((1,), (0, 2))


def test_a_chain_is_followed_to_the_rank_that_it_comes_from(tmp_path: Path) -> None:
    seen = look(
        tmp_path,
        Rank("MPI_Recv", 1, since=2.0),
        Rank("MPI_Recv", 2, since=3.0),
        Rank("MPI_Ssend", 3, since=4.0),
        Rank(),
    )
    (found,) = about(Concern.WAITING, said(seen))
    assert (found.ranks, found.waiting) == ((3,), (0, 1, 2))
    assert found.text.endswith("for rank 3, which is outside MPI; 0 for 1 for 2 for 3")


def test_a_circle_is_a_possible_deadlock(tmp_path: Path) -> None:
    seen = look(
        tmp_path,
        Rank("MPI_Recv", 2, since=2.0),
        Rank("MPI_Recv", 0, since=2.0),
        Rank("MPI_Recv", 1, since=2.0),
        Rank("MPI_Recv", 1, since=2.0),
        Rank(),
    )
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


def test_a_rank_that_was_killed_waits_for_nobody(tmp_path: Path) -> None:
    dead = Rank("MPI_Recv", 1, since=1.0, heard=6.0, process=Process.GONE)
    seen = look(tmp_path, dead, Rank("MPI_Recv", 0, since=2.0))
    (found,) = about(Concern.WAITING, said(seen))
    assert (found.ranks, found.waiting) == ((0,), (1,))
    assert found.text.endswith("for rank 0, which was killed")


def test_ended_rank_that_others_await_is_named(tmp_path: Path) -> None:
    seen = look(tmp_path, Rank("MPI_Recv", 1, since=2.0), Rank(ended=True, heard=3.0))
    (found,) = about(Concern.WAITING, said(seen))
    assert found.text == "rank 0 waits in MPI_Recv (8.0 s) for rank 1, which has ended"


def test_the_clock_of_the_host_says_how_long_a_call_lasts(tmp_path: Path) -> None:
    seen = look(tmp_path, Rank("MPI_Recv", 1, since=2.0, heard=9.7), Rank())
    (found,) = about(Concern.WAITING, said(seen))
    assert found.text.startswith("rank 0 waits in MPI_Recv (8.0 s) for rank 1")


def test_thousands_of_ranks_are_traced_at_once(tmp_path: Path) -> None:
    ranks = [Rank("MPI_Recv", rank + 1, since=2.0) for rank in range(199)]
    found = waiting(look(tmp_path, *ranks, Rank()), 1.0, 5.0)
    assert set(found.roots.values()) == {frozenset({199})}
    assert found.chain(0) == list(range(200))

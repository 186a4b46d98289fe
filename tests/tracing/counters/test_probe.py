"""Which calls are looked at, and what is kept of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from omb_py.tracing.counters.messages import MESSAGES, Counts
from omb_py.tracing.counters.probe import LOOKS, MAX_SIZES, Probe

WORLD = 8


@dataclass
class Group:
    """The ranks of a communicator."""

    members: list[int]

    def Translate_ranks(self, ranks: None, world: Group) -> list[int]:  # noqa: N802
        return self.members

    def Free(self) -> None:  # noqa: N802
        pass


@dataclass
class Comm:
    """What a probe asks of a communicator."""

    handle: int
    members: list[int]
    inter: bool = False

    def Is_inter(self) -> bool:  # noqa: N802
        return self.inter

    def Get_size(self) -> int:  # noqa: N802
        return len(self.members)

    def Get_group(self) -> Group:  # noqa: N802
        return Group(self.members)


class Library:
    """Counts what `sends` names, and how often it is asked."""

    def __init__(self) -> None:
        self.waiting: Counts | None = {}
        self.taken = 0

    def sends(self, peer: int, messages: int, nbytes: int) -> None:
        self.waiting = {MESSAGES: {peer: (messages, nbytes)}}

    def take(self) -> Counts | None:
        self.taken += 1
        counts = self.waiting
        self.waiting = None if counts is None else {}
        return counts


@pytest.fixture
def library() -> Library:
    return Library()


@pytest.fixture
def probe(library: Library) -> Probe:
    made = Probe(library.take)
    world: Any = Comm(0, list(range(WORLD)))
    made.begin(world, lambda comm: comm.handle)
    return made


def call(
    probe: Probe, library: Library, comm: Any, nbytes: int, routine: str = "MPI_Bcast"
) -> None:
    """A call that sends a message to rank 1 of the world, after one of the program's own."""
    library.sends(5, 1, 7)
    probe.before(routine, comm, nbytes)
    library.sends(1, 2, nbytes)
    probe.after(routine, comm, nbytes)


def test_the_first_calls_of_a_size_are_looked_at(probe: Probe, library: Library) -> None:
    comm = Comm(1, [0, 1, 4])
    for nbytes in (100, 200):
        for _ in range(10):
            call(probe, library, comm, nbytes)
    first, second = probe.rows()
    assert (first["routine"], first["members"], first["nbytes"]) == ("bcast", [0, 1, 4], 100)
    assert (first["calls"], second["calls"]) == (10, 10)
    assert first["looks"] == [
        {"number": number, "root": -1, "sent": [[1, 2, 100]]} for number in (1, 2, 3)
    ]
    assert [look["number"] for look in second["looks"]] == [11, 12, 13]
    assert library.taken == 2 * 2 * LOOKS


@pytest.mark.parametrize("routine", ["MPI_Ibcast", "MPI_Bcast_init", "MPI_Bcast (pickle)"])
def test_calls_that_send_later_or_twice_are_not(
    probe: Probe, library: Library, routine: str
) -> None:
    call(probe, library, Comm(1, [0, 1]), 100, routine)
    assert (probe.rows(), library.taken) == ([], 0)


@pytest.mark.parametrize("comm", [Comm(1, [0]), Comm(1, [0, 1], inter=True)], ids=str)
def test_communicators_without_messages_or_with_others_are_not(
    probe: Probe, library: Library, comm: Comm
) -> None:
    call(probe, library, comm, 100)
    assert (probe.rows(), library.taken) == ([], 0)


def test_sizes_without_end_are_not_kept(probe: Probe, library: Library) -> None:
    comm = Comm(1, [0, 1])
    for nbytes in range(10 * MAX_SIZES):
        call(probe, library, comm, nbytes)
    assert len(probe.rows()) == MAX_SIZES


@pytest.mark.parametrize("told", [True, False], ids=["told", "not told"])
def test_an_old_handle_may_be_another_communicators(
    probe: Probe, library: Library, told: bool
) -> None:
    first = Comm(1, [0, 1])
    call(probe, library, first, 100)
    if told:
        probe.forget(first)  # type: ignore[arg-type]
    call(probe, library, Comm(1, [0, 1, 2, 3]), 100 if told else 200)
    assert [row["members"] for row in probe.rows()] == [[0, 1], [0, 1, 2, 3]]


def test_two_communicators_of_the_same_ranks_are_told_apart(probe: Probe, library: Library) -> None:
    for handle in (1, 2):
        call(probe, library, Comm(handle, [0, 1]), 100)
    assert [row["instance"] for row in probe.rows()] == [0, 1]


def test_a_library_that_fails_leaves_no_wrong_look(probe: Probe, library: Library) -> None:
    probe.before("MPI_Bcast", Comm(1, [0, 1]), 100)  # type: ignore[arg-type]
    library.waiting = None
    probe.after("MPI_Bcast", Comm(1, [0, 1]), 100)  # type: ignore[arg-type]
    (row,) = probe.rows()
    assert (row["calls"], row["looks"]) == (1, [])


def test_before_the_beginning_and_after_the_end_nothing_happens(library: Library) -> None:
    probe = Probe(library.take)
    call(probe, library, Comm(1, [0, 1]), 100)
    world: Any = Comm(0, [0, 1])
    probe.begin(world, lambda comm: comm.handle)
    probe.end()
    call(probe, library, Comm(1, [0, 1]), 100)
    assert (probe.rows(), library.taken) == ([], 0)

"""Messages and operations of real ranks are numbered alike on both sides, and seen to end."""

from __future__ import annotations

from collections import Counter

import pytest

from omb_py.tracing.records.layout import EventKind
from omb_py.tracing.records.reading import RankRecord
from omb_py.tracing.records.routines import Role, role
from tests.mpi.vendor import VENDOR
from tests.tracing.fixtures import Profiled, sequences, succeeded_records
from tests.tracing.recorder.test_calls import EVENTS, PROGRAMS


@pytest.fixture
def messages(profiled: Profiled) -> list[RankRecord]:
    """The records of 2 ranks that made most calls of MPI."""
    return succeeded_records(profiled(2, *EVENTS, str(PROGRAMS / "every_call.py")))


def test_the_messages_of_a_timeline_match_on_both_sides(messages: list[RankRecord]) -> None:
    sent: Counter[tuple[object, ...]] = Counter()
    received: Counter[tuple[object, ...]] = Counter()
    for record in messages:
        assert record.lost_events == 0
        communicators = record.communicators
        for event in record.events:
            if not event["sequence"] or event["communicator"] not in communicators:
                continue
            name, kind = record.name(event["name"]), EventKind(event["kind"])
            peer, rest = int(event["peer"]), (int(event["tag"]), int(event["sequence"]))
            key = communicators[event["communicator"]].key
            what = role(name)
            posted = kind is EventKind.CALL and event["request"]
            if (what is Role.RECEIVE and not posted) or kind is EventKind.ARRIVED:
                received[(key, peer, record.rank, *rest)] += 1
            elif what in (Role.SEND, Role.SENDRECV) and (
                kind is EventKind.CALL or name == "MPI_Send_init"
            ):
                sent[(key, record.rank, peer, *rest)] += 1
    assert sent == received
    of = {"blocking": 21, "Isend": 8, "Sendrecv": 4, "object": 1, "persistent": 10}
    assert len(sent) == sum(of.values())
    assert set(sent.values()) == {1}


def test_non_blocking_operations_are_seen_to_end(messages: list[RankRecord]) -> None:
    for record in messages:
        begun: Counter[int] = Counter()
        done: Counter[int] = Counter()
        for event in record.events:
            assert event["began"] <= event["ended"]
            if event["kind"] == EventKind.CALL and event["request"]:
                begun[int(event["request"])] += 1
            if event["kind"] == EventKind.DONE:
                done[int(event["request"])] += 1
        assert begun
        assert set(begun) <= set(done)
        assert set(done.values()) == {1}


@pytest.mark.long
def test_collective_calls_have_the_same_numbers_on_all_ranks(messages: list[RankRecord]) -> None:
    def numbered(record: RankRecord) -> list[tuple[str, str, int]]:
        communicators = record.communicators
        return [
            (record.name(e["name"]), communicators[e["communicator"]].key, int(e["sequence"]))
            for e in record.events
            if e["kind"] == EventKind.CALL
            and role(record.name(e["name"])) is Role.COLLECTIVE
            and communicators[e["communicator"]].size == 2
        ]

    first, second = map(numbered, messages)
    assert len(first) > 40
    assert first == second


def test_a_receive_that_was_cancelled_was_no_message(profiled: Profiled) -> None:
    program = (
        "from mpi4py import MPI\n"
        "own = MPI.COMM_SELF\n"
        "for end in (lambda one: one.Wait(), lambda one: MPI.Request.Waitall([one])):\n"
        "    request = own.Irecv(bytearray(1), 0, 5)\n"
        "    request.Cancel()\n"
        "    end(request)\n"
        "    own.Sendrecv(b'x', 0, 5, bytearray(1), 0, 5)\n"
        "request = own.Irecv(bytearray(1), 0, 5)\n"
        "request.Cancel()\n"
        "request.Free()\n"
        "own.Sendrecv(b'x', 0, 5, bytearray(1), 0, 5)\n"
    )
    record = profiled(1, *EVENTS, program=program).record
    assert sequences(record, EventKind.ARRIVED) == [1, 2, 3]
    assert sequences(record, EventKind.DONE) == [0, 0]


def test_an_events_ring_keeps_the_last_ones(profiled: Profiled) -> None:
    program = (
        "from mpi4py import MPI\n"
        "import omb_py\n"
        "for number in range(100):\n"
        "    MPI.COMM_SELF.Barrier()\n"
        "with omb_py.phase('last'):\n"
        "    MPI.COMM_SELF.Barrier()\n"
    )
    record = profiled(1, "--events", "10", program=program).record
    assert record.lost_events == 92
    assert list(record.events["sequence"]) == [*range(93, 102), 0]
    assert record.name(record.events[-1]["name"]) == "last"
    assert (record.events["began"][-1], EventKind.PHASE) <= (
        record.events["began"][-2],
        EventKind.PHASE,
    )


@pytest.mark.skipif(VENDOR == "MPICH", reason="MPICH 5.0.2 fills in a wrong status here")
def test_the_second_half_of_a_request_may_come_from_anybody(profiled: Profiled) -> None:
    program = (
        "from mpi4py import MPI\n"
        "comm, got = MPI.COMM_WORLD, bytearray(1)\n"
        "comm.Isendrecv(b'x', 1 - comm.rank, 3, got, MPI.ANY_SOURCE).Wait()\n"
    )
    for record in succeeded_records(profiled(2, *EVENTS, program=program)):
        halves = record.events[record.events["kind"] == EventKind.DONE]
        assert [list(half) for half in halves[["peer", "tag", "sequence"]]] == [
            [1 - record.rank, 3, 1]
        ] * 2

"""What a timeline shows of a run: lanes, slices, arrows, and what it says about itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from omb_py.tracing.records.layout import COUNTED, ORDER_STEP, Communicator, EventKind
from omb_py.tracing.timeline import assembly
from tests.helpers.refusals import assert_names
from tests.tracing.made_records import MadeRecord
from tests.tracing.timeline.rules import Content, arguments_of, written

Job = Callable[..., list[MadeRecord]]


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """``job(ranks)``: that many records, which are still to be written."""

    def make(ranks: int, **options: Any) -> list[MadeRecord]:
        return [MadeRecord(tmp_path, rank, ranks, **options) for rank in range(ranks)]

    return make


def shown(*ranks: MadeRecord, ended: int = 100_000, **header: Any) -> Content:
    """What files show of these ranks' timeline."""
    for rank in ranks:
        rank.finish(ended, **header)
    return written(assembly.read(Path(ranks[0].file.path).parent))


def test_every_rank_is_a_process_that_sorts_by_its_name(job: Job) -> None:
    records = job(12)
    for record in records:
        record.call("MPI_Barrier", 0, 10, sequence=1)
    found = shown(*records)
    names = list(dict.fromkeys(one.process for one in found.slices))
    assert names == sorted(names)
    assert names[0] == "rank 0000 @a"
    assert names[11] == "rank 0011 @a"


def test_calls_and_what_is_computed_between_them_fill_a_lane(job: Job) -> None:
    (record,) = job(1)
    record.call("MPI_Barrier", 1000, 3000, sequence=1)
    record.call("MPI_Bcast", 3000, 4000, peer=0, nbytes=8, sequence=2)
    record.call("MPI_Wtime", 6000, 6001, nbytes=-1)
    found = shown(record, ended=10_000)
    lane = sorted(found.of("rank 0000 @a", "calls"), key=lambda one: one.began)
    assert [(one.name, one.began, one.ended) for one in lane] == [
        ("compute", 0, 1000),
        ("MPI_Barrier", 1000, 3000),
        ("MPI_Bcast", 3000, 4000),
        ("compute", 4000, 6000),
        ("MPI_Wtime", 6000, 6001),
        ("compute", 6001, 10_000),
    ]


def test_computing_is_cut_where_a_phase_begins_or_ends(job: Job) -> None:
    (record,) = job(1)
    record.call("MPI_Barrier", 0, 1000, sequence=1)
    record.call("epoch", 500, 9000, kind=EventKind.PHASE)
    record.call("forward", 2000, 5000, kind=EventKind.PHASE)
    found = shown(record, ended=10_000)
    pieces = sorted(found.named("compute"), key=lambda one: one.began)
    assert [(one.began, one.ended, dict(one.arguments)) for one in pieces] == [
        (1000, 2000, {"phase": "epoch"}),
        (2000, 5000, {"phase": "forward"}),
        (5000, 9000, {"phase": "epoch"}),
        (9000, 10_000, {}),
    ]
    assert {one.lane for one in found.slices if one.category == "phases"} == {"phases"}


def test_calls_of_two_threads_at_a_time_lie_in_two_lanes(job: Job) -> None:
    (record,) = job(1)
    record.call("MPI_Send", 0, 1000, peer=0, sequence=1)
    record.call("MPI_Recv", 500, 2000, peer=0, sequence=1)
    record.call("MPI_Test", 600, 700)
    found = shown(record, ended=2000)
    assert {one.name: one.lane for one in found.slices} == {
        "MPI_Send": "calls",
        "MPI_Recv": "calls 2",
        "MPI_Test": "calls 3",
    }


def test_requests_lie_in_as_few_lanes_of_their_own_as_they_need(job: Job) -> None:
    (record,) = job(1)
    times = [(0, 1000), (100, 300), (200, 400), (300, 2000), (1000, 1500)]
    for number, (began, ended) in enumerate(times, 1):
        record.call("MPI_Iallreduce", began, began + 10, request=number)
        record.call("MPI_Iallreduce", began, ended, kind=EventKind.DONE, request=number)
    found = shown(record)
    requests = [one for one in found.slices if one.category == "request"]
    assert len(requests) == 5
    assert {one.lane for one in requests} == {"requests", "requests 2", "requests 3"}
    assert {one.category for one in found.of("rank 0000 @a", "calls")} == {"collective", "compute"}


def test_a_call_says_what_it_was_about(job: Job) -> None:
    first, second = job(2)
    pair = Communicator("0,1#1", 2, "row 3")
    first.call("MPI_Send", 0, 10, peer=1, nbytes=800, tag=42, sequence=1, communicator=pair)
    second.call("MPI_Reduce", 0, 10, peer=0, nbytes=16, sequence=7, communicator=pair)
    found = shown(first, second)
    (send,), (reduce,) = found.named("MPI_Send"), found.named("MPI_Reduce")
    assert arguments_of(send) == {
        "bytes": 800,
        "peer": 1,
        "tag": 42,
        "communicator": "row 3",
        "communicator_size": 2,
        "sequence": 1,
    }
    assert arguments_of(reduce) == {
        "bytes": 16,
        "root": 0,
        "communicator": "row 3",
        "communicator_size": 2,
        "sequence": 7,
        "collective": "0,1#1 #7",
    }
    assert (send.category, reduce.category) == ("send", "collective")


def test_arrow_joins_sending_and_receiving_calls(job: Job) -> None:
    first, second = job(2)
    first.call("MPI_Send", 5000, 6000, peer=1, sequence=1)
    second.call("MPI_Recv", 100, 7000, peer=0, sequence=1)
    first.call("MPI_Isend", 8000, 8100, peer=1, sequence=2, request=3)
    first.call("MPI_Isend", 8000, 9500, kind=EventKind.DONE, peer=1, sequence=2, request=3)
    second.call("MPI_Irecv", 7500, 7600, peer=0, request=5)
    second.call("MPI_Waitall", 7700, 9000, nbytes=-1)
    second.call("MPI_Irecv", 7500, 9000, kind=EventKind.DONE, peer=0, sequence=2, request=5)
    found = shown(first, second)
    told_of = [(one.name, one.lane, two.name, two.lane) for one, two in found.messages()]
    assert told_of == [
        ("MPI_Send", "calls", "MPI_Recv", "calls"),
        ("MPI_Isend", "calls", "MPI_Irecv", "requests"),
    ]
    assert found.about["notes"] == []


def test_sendrecv_is_one_slice_with_an_arrow_each_way(job: Job) -> None:
    records = job(3)
    for rank, record in enumerate(records):
        right, left = (rank + 1) % 3, (rank - 1) % 3
        times = (100 * rank, 1000)
        record.call("MPI_Sendrecv", *times, peer=right, nbytes=4, tag=1, sequence=1)
        record.call(
            *("MPI_Sendrecv", *times),
            kind=EventKind.ARRIVED,
            peer=left,
            nbytes=4,
            tag=1,
            sequence=1,
        )
    found = shown(*records)
    assert len(found.named("MPI_Sendrecv")) == 3
    assert sorted((one.process[8], two.process[8]) for one, two in found.messages()) == [
        ("0", "1"),
        ("1", "2"),
        ("2", "0"),
    ]
    (one,) = [slice_ for slice_ in found.named("MPI_Sendrecv") if "0001" in slice_.process]
    assert arguments_of(one) | {"peer": 2, "source": 0, "received_bytes": 4} == arguments_of(one)


def test_second_request_of_isendrecv_receives(job: Job) -> None:
    records = job(2)
    for rank, record in enumerate(records):
        record.call("MPI_Isendrecv", 0, 50, peer=1 - rank, sequence=1, request=1)
        for request in (1, 2):
            record.call(
                *("MPI_Isendrecv", 0, 900),
                kind=EventKind.DONE,
                peer=1 - rank,
                sequence=1,
                request=request,
            )
    found = shown(*records)
    assert [(one.lane, dict(two.arguments)["request"]) for one, two in found.messages()] == [
        ("calls", 2),
        ("calls", 2),
    ]
    assert found.about["notes"] == []


def test_persistent_send_has_an_arrow_for_each_start(job: Job) -> None:
    first, second = job(2)
    first.call("MPI_Send_init", 0, 10, peer=1)
    for number in (1, 2):
        began = 1000 * number
        first.call("MPI_Start", began, began + 10, nbytes=-1)
        first.call(
            *("MPI_Send_init", began, began + 500),
            kind=EventKind.DONE,
            peer=1,
            sequence=number,
            request=number,
        )
        second.call("MPI_Recv", began, began + 300, peer=0, sequence=number)
    found = shown(first, second)
    assert [(one.lane, two.name) for one, two in found.messages()] == [("requests", "MPI_Recv")] * 2
    assert found.about["notes"] == []


def test_messages_are_told_apart_by_all_that_names_them(job: Job) -> None:
    first, second = job(2)
    other = Communicator("0,1#1", 2, "another")
    first.call("MPI_Send", 0, 10, peer=1, tag=1, sequence=1)
    first.call("MPI_Send", 10, 20, peer=1, tag=2, sequence=1)
    first.call("MPI_Send", 20, 30, peer=1, tag=1, sequence=1, communicator=other)
    second.call("MPI_Recv", 0, 100, peer=0, tag=1, sequence=1, communicator=other)
    second.call("MPI_Recv", 100, 200, peer=0, tag=2, sequence=1)
    second.call("MPI_Recv", 200, 300, peer=0, tag=1, sequence=1)
    found = shown(first, second)
    assert [(one.began, two.began) for one, two in found.messages()] == [
        (0, 200),
        (10, 100),
        (20, 0),
    ]


def test_what_has_no_other_side_is_counted_and_said(job: Job) -> None:
    first, second = job(2)
    first.call("MPI_Send", 0, 10, peer=1, sequence=1)
    first.call("MPI_Send", 20, 30, peer=1, sequence=2)
    first.call("MPI_Recv", 40, 50, peer=1, sequence=0)
    first.call("MPI_Irecv", 60, 61, peer=1, request=9)
    second.call("MPI_Recv", 0, 10, peer=0, tag=5, sequence=1)
    found = shown(first, second)
    assert found.arrows == []
    for note, words in zip(
        found.about["notes"],
        (
            "1 request no completion",
            "2 sends without an arrow: no receive",
            "1 receive without an arrow: no send",
            "1 more side without an arrow: record which message",
        ),
        strict=True,
    ):
        assert_names(note, words)


@pytest.mark.parametrize(
    ("sent", "posted", "flags", "waits", "words"),
    [
        (8, 8, 0, None, ""),
        (8, 16, 0, None, ""),
        (8, 16, COUNTED, None, "2 messages without an arrow: bytes differ"),
        (16, 8, 0, None, "2 messages without an arrow: bytes differ"),
        (8, 8, 0, (0, -1), "2 receives without an arrow: wildcards"),
        (8, 8, 0, (-1, 3), ""),
    ],
    ids=("equal", "room for more", "more came", "too small", "a wildcard waits", "of another tag"),
)
def test_sides_that_may_be_no_pair_have_no_arrow(
    job: Job, sent: int, posted: int, flags: int, waits: tuple[int, int] | None, words: str
) -> None:
    first, second = job(2)
    if waits:
        peer, tag = waits
        second.call("MPI_Irecv", 0, 1, request=1, order=ORDER_STEP, peer=peer, tag=tag)
    for number, (out, into) in enumerate(((8, 8), (sent, posted)), start=1):
        began = 100 * number
        first.call("MPI_Send", began, began + 1, peer=1, nbytes=out, sequence=number)
        order = ORDER_STEP * (number + 1) + flags
        second.call("MPI_Recv", began, began + 9, peer=0, nbytes=into, sequence=number, order=order)
    found = shown(first, second)
    assert len(found.arrows) == (0 if words else 2)
    for note in found.about["notes"][-1:] if words else ():
        assert_names(note, words)

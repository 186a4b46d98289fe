"""One clock for all ranks, and what is said where times or events are wanting."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from omb_py.core.errors import UsageError
from omb_py.tracing.records.layout import EventKind
from omb_py.tracing.timeline import assembly
from omb_py.tracing.timeline.assembly import RankTimeline, Timeline, select
from tests.helpers.refusals import missing, refuses
from tests.tracing.made_records import START, MadeRecord
from tests.tracing.timeline.rules import Content, written

Made = list[MadeRecord]


def barriers(folder: Path, ranks: int, **options: Any) -> Made:
    """Records with one call each, which are still to be finished."""
    records = [MadeRecord(folder, rank, ranks, **options) for rank in range(ranks)]
    for record in records:
        record.call("MPI_Barrier", 1000, 2000, sequence=1)
    return records


def compared(
    at: int, offset: float, error: float, last: tuple[int, float, float] | None = None
) -> dict[str, Any]:
    """Fields of a header: one or two comparisons of clocks."""
    found = {"first_at": START + at, "first_offset": offset, "first_error": error}
    if last is not None:
        found |= {"last_at": START + last[0], "last_offset": last[1], "last_error": last[2]}
    return found


def call(rank: RankTimeline) -> tuple[int, int]:
    """When the only call of a rank began and ended, ns after the beginning of its record."""
    (event,) = rank.events
    return int(event["began"]) - START, int(event["ended"]) - START


def notes(timeline: Timeline) -> str:
    return "\n".join(assembly.notes(timeline))


def shown(timeline: Timeline) -> Content:
    return written(timeline)


def test_ranks_that_read_the_same_clock_are_not_moved_at_all(tmp_path: Path) -> None:
    first, second = barriers(tmp_path, 2)
    first.finish(3000)
    second.finish(3000, **compared(0, 0.5, 1e-6))
    timeline = assembly.read(tmp_path)
    assert call(timeline.ranks[1]) == (1000, 2000)
    assert timeline.ranks[1].alignment.error == 0
    assert notes(timeline) == ""


def test_clock_offset_and_drift_are_added(tmp_path: Path) -> None:
    first, second = barriers(tmp_path, 2)
    first.finish(10_000)
    second.finish(
        10_000, clock=8, host="b", **compared(0, 100.0, 2e-6, (10_000, 100.0 + 1e-6, 3e-6))
    )
    timeline = assembly.read(tmp_path)
    assert call(timeline.ranks[1]) == (100 * 10**9 + 1100, 100 * 10**9 + 2200)
    assert timeline.ranks[1].alignment.error == 3e-6
    assert "wrong by 3.000 us at most" in notes(timeline)


def test_ranks_of_one_host_share_the_comparisons_of_one_of_them(tmp_path: Path) -> None:
    first, second, third = barriers(tmp_path, 3)
    first.finish(10_000)
    second.finish(None, clock=8, **compared(0, 1.0, 1e-6))
    third.finish(10_000, clock=8, **compared(0, 2.0, 1e-6, (10_000, 2.0, 1e-6)))
    timeline = assembly.read(tmp_path)
    assert (
        call(timeline.ranks[1]) == call(timeline.ranks[2]) == (2 * 10**9 + 1000, 2 * 10**9 + 2000)
    )


def test_clocks_of_two_hosts_are_two_whatever_their_numbers(tmp_path: Path) -> None:
    first, second = barriers(tmp_path, 2)
    first.finish(3000)
    second.finish(3000, host="b", **compared(0, 7.0, 1e-6))
    assert call(assembly.read(tmp_path).ranks[1]) == (7 * 10**9 + 1000, 7 * 10**9 + 2000)


def test_a_clock_that_was_not_compared_is_said_to_be(tmp_path: Path) -> None:
    first, second = barriers(tmp_path, 2)
    first.finish(3000)
    second.finish(3000, clock=9)
    timeline = assembly.read(tmp_path)
    assert not missing("clock of rank 1 not compared", notes(timeline))
    assert timeline.ranks[1].alignment.error is None


@pytest.mark.parametrize("offset", [float("nan"), float("inf"), 1e300])
def test_comparisons_that_mean_nothing_are_not_used(tmp_path: Path, offset: float) -> None:
    first, second = barriers(tmp_path, 2)
    first.finish(3000)
    second.finish(3000, clock=9, **compared(0, offset, 1e-6))
    timeline = assembly.read(tmp_path)
    assert call(timeline.ranks[1]) == (1000, 2000)
    assert "was not compared" in notes(timeline)


def test_message_received_before_sent_has_no_arrow(tmp_path: Path) -> None:
    first, second = (MadeRecord(tmp_path, rank, 2) for rank in range(2))
    for number, late in ((1, 500), (2, 5000)):
        first.call(
            *("MPI_Send", 10_000 * number + late, 10_000 * number + late + 9),
            peer=1,
            sequence=number,
        )
        second.call("MPI_Recv", 0, 10_000 * number, peer=0, sequence=number)
    first.finish(60_000)
    second.finish(60_000, clock=8, **compared(0, 0.0, 1e-6))
    timeline = assembly.read(tmp_path)
    messages = timeline.messages
    assert (len(messages.arrows), messages.backwards, messages.beyond) == (0, 2, 1)
    assert messages.most_backwards == pytest.approx(5e-6)
    assert not missing("2 messages without an arrow: 5.000 us", notes(timeline))
    assert not missing("1 message clocks' error bounds", notes(timeline))


def test_a_ring_says_what_it_lost_and_nothing_is_made_up_before(tmp_path: Path) -> None:
    record = MadeRecord(tmp_path, 0, 1, events=4)
    for number in range(10):
        record.call("MPI_Barrier", 1000 * number, 1000 * number + 400, sequence=number + 1)
    record.finish(20_000)
    timeline = assembly.read(tmp_path)
    found = shown(timeline)
    assert [one.began for one in found.named("MPI_Barrier")] == [6000, 7000, 8000, 9000]
    assert [one.began for one in found.named("compute")] == [6400, 7400, 8400, 9400]
    assert not missing("6 events written over rank 0", notes(timeline))
    assert not missing("from 0.000006 s on", notes(timeline))
    assert timeline.ranks[0].complete_from == START + 6400


def test_a_rank_that_was_killed_is_shown_until_its_last_event(tmp_path: Path) -> None:
    first, second = barriers(tmp_path, 2)
    first.finish(10_000)
    second.finish(None)
    timeline = assembly.read(tmp_path)
    found = shown(timeline)
    last = [
        max(one.ended for one in found.slices if f"000{rank}" in one.process) for rank in (0, 1)
    ]
    assert last == [10_000, 2000]
    assert "no end of rank 1" in notes(timeline)


def test_ranks_without_a_record_are_named(tmp_path: Path) -> None:
    records = barriers(tmp_path, 6)
    for rank in (0, 3):
        records[rank].finish(3000)
    for rank in (1, 2, 4, 5):
        Path(records[rank].file.path).unlink()
    timeline = assembly.read(tmp_path)
    assert not missing("records ranks 1-2, 4-5 not there", notes(timeline))


def test_without_events_there_is_no_timeline(tmp_path: Path) -> None:
    (record,) = barriers(tmp_path, 1, events=0)
    record.finish(3000)
    with refuses(UsageError, "run omb-py profile with --events"):
        assembly.read(tmp_path)


def test_events_that_make_no_sense_are_left_out_and_counted(tmp_path: Path) -> None:
    (record,) = barriers(tmp_path, 1)
    record.file.event(0, 0, 0, -1, 0, 0, 0, 0, 0, 0, 0)
    record.file.event(int(EventKind.CALL), 1, 0, -1, 0, 0, START + 50, START + 10, 0, 0, 0)
    record.file.event(int(EventKind.CALL), 999, 999, -1, 0, 0, START + 50, START + 60, 0, 0, 0)
    record.finish(3000)
    timeline = assembly.read(tmp_path)
    assert not missing("2 events left out no sense", notes(timeline))
    assert [one.began for one in shown(timeline).named("(no name was kept)")] == [50]


def ping(folder: Path) -> Timeline:
    """Rank 0 sends to rank 1 at 1 s, to rank 2 at 2 s."""
    records = [MadeRecord(folder, rank, 3) for rank in range(3)]
    for rank in (1, 2):
        began = rank * 10**9
        records[0].call("MPI_Send", began, began + 1000, peer=rank, sequence=1)
        records[rank].call("MPI_Recv", began, began + 2000, peer=0, sequence=1)
    for record in records:
        record.finish(3 * 10**9)
    return assembly.read(folder)


def test_a_part_keeps_its_times_and_the_arrows_inside_it(tmp_path: Path) -> None:
    part = select(ping(tmp_path), [0, 2])
    found = shown(part)
    assert {one.process for one in found.slices} == {"rank 0000 @a", "rank 0002 @a"}
    assert [(one.began, two.process) for one, two in found.messages()] == [
        (2 * 10**9, "rank 0002 @a")
    ]
    assert notes(part) == ""


def test_ranks_without_a_record_refused(tmp_path: Path) -> None:
    with refuses(UsageError, "no record rank 7: ranks 0-2"):
        select(ping(tmp_path), [0, 7])

"""Timelines in Perfetto and in chrome://tracing: every slice, every arrow, everything in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from omb_py.tracing import timeline as timelines
from omb_py.tracing.records.layout import Communicator, Kind
from omb_py.tracing.timeline import diagnostics, files, json_trace
from omb_py.tracing.timeline.model import Timeline
from tests.tracing.made_records import MadeRecord
from tests.tracing.timeline import viewers
from tests.tracing.timeline.rules import Content, of_json, of_protobuf

pytestmark = viewers.needed

RANKS = 12
HOURS = 3 * 3600 * 10**9
"""A time at which microseconds with decimals have many digits."""

KINDS = (".json", ".json.gz", ".pftrace")


@pytest.fixture(scope="module")
def opened(browser: Any) -> Iterator[viewers.Viewers]:
    """One server of pages for all tests."""
    with viewers.viewers(browser) as found:
        yield found


def job(folder: Path) -> Timeline:
    """Ranks that send to each other in every way, with phases, threads and named lanes."""
    half = Communicator("0,1,2#1", 3, 'half "a"')
    for rank in range(RANKS):
        record = MadeRecord(folder, rank, RANKS, host="node" if rank < 6 else "other")
        right, left = (rank + 1) % RANKS, (rank - 1) % RANKS
        for step, start in enumerate((1000, HOURS), 1):
            at = start + 37 * rank
            for place, (name, peer, tag) in enumerate(
                (("MPI_Irecv", left, 1), ("MPI_Irecv", right, 2), ("MPI_Isend", right, 1))
            ):
                number = 10 * step + place
                began = at + 333 * place
                sends = name == "MPI_Isend"
                of: dict[str, Any] = {"peer": peer, "tag": tag, "nbytes": 800, "request": number}
                record.call(name, began, began + 333, **of, sequence=step if sends else 0)
                record.call(name, began, at + 90_001, **of, sequence=step, kind=Kind.DONE)
            record.call("MPI_Send", at + 1001, at + 2002, peer=left, tag=2, nbytes=4, sequence=step)
            times = (at + 3003, at + 70_007)
            record.call("MPI_Sendrecv", *times, peer=right, nbytes=8, tag=3, sequence=step)
            record.call(
                *("MPI_Sendrecv", *times),
                kind=Kind.ARRIVED,
                peer=left,
                nbytes=8,
                tag=3,
                sequence=step,
            )
            record.call("MPI_Waitall", at + 70_007, at + 90_001, nbytes=-1)
            record.call("MPI_Test", at + 4000, at + 4444, nbytes=-1)
            record.call("MPI_Allreduce", at + 90_001, at + 95_000, nbytes=64, sequence=step)
            if rank < 3:
                record.call(
                    *("MPI_Bcast", at + 95_001, at + 95_055), communicator=half, sequence=step
                )
            record.call("exchange", at, at + 90_500, kind=Kind.SPAN)
            record.call("step", at - 7, at + 99_999, kind=Kind.SPAN)
            for name in ("z \u00fc<b>", "a"):
                record.call("QUEUE", at, at + 50, kind=Kind.SPAN, lane=name)
                record.call("MPI_ALLREDUCE", at + 20, at + 30, kind=Kind.SPAN, lane=name)
                record.call("ready", at + 3, at + 3, kind=Kind.INSTANT, lane=name)
            record.call("CYCLE_START", at + 5, at + 5, kind=Kind.INSTANT)
            for more in range(rank):  # a viewer must not show those with more of them first
                record.call("MPI_Wtime", at + 99_990 + more, at + 99_991 + more, nbytes=-1)
        record.finish(HOURS + 200_000)
    return timelines.read(folder)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Timeline, Path]:
    """The timeline of the job, and the folder with its files."""
    folder = tmp_path_factory.mktemp("job")
    timeline = job(folder)
    for kind in KINDS:
        files.write(timeline, folder / f"timeline{kind}")
    return timeline, folder


def same(shown: Content, expected: Content) -> None:
    """Fail unless both hold the same slices, instants and arrows."""
    for name in ("slices", "instants", "arrows"):
        one, other = (sorted(map(repr, getattr(each, name))) for each in (shown, expected))
        assert len(one) == len(other), name
        assert one == other


@dataclass(frozen=True)
class Shown:
    """What Perfetto makes of a file."""

    complaints: list[list[Any]]
    content: Content
    lanes: dict[str, list[str]]


@pytest.fixture(scope="module")
def in_perfetto(opened: viewers.Viewers, made: tuple[Timeline, Path]) -> Callable[[str], Shown]:
    """Opens the file of a kind, once."""

    @cache
    def show(kind: str) -> Shown:
        with opened.perfetto(made[1] / f"timeline{kind}") as perfetto:
            return Shown(perfetto.complaints(), perfetto.content(), perfetto.lanes())

    return show


@pytest.mark.product(strength=0)
@pytest.mark.parametrize("kind", KINDS)
def test_perfetto_has_every_slice_and_every_arrow(
    in_perfetto: Callable[[str], Shown], made: tuple[Timeline, Path], kind: str
) -> None:
    timeline, folder = made
    expected = of_json((folder / "timeline.json").read_text(encoding="utf-8"))
    shown = in_perfetto(kind)
    assert shown.complaints == []
    same(shown.content, expected)
    assert len(expected.arrows) == len(timeline.messages.arrows) == 2 * 3 * RANKS
    assert sum(len(rank.slices) for rank in timeline.ranks) == len(expected.slices)


@pytest.mark.usefixtures("long_time")
@pytest.mark.parametrize("kind", [".json", ".pftrace"])
def test_perfetto_shows_ranks_and_lanes_in_order(
    in_perfetto: Callable[[str], Shown], kind: str
) -> None:
    lanes = in_perfetto(kind).lanes
    assert list(lanes) == [
        f"rank {rank:04d} @{'node' if rank < 6 else 'other'}" for rank in range(RANKS)
    ]
    requests = ["requests", "requests 2", "requests 3"]
    usual = ["calls", "calls 2", "phases", *requests, "z \u00fc<b>", "a"]
    assert lanes["rank 0000 @node"] == [*usual, "about this timeline", "(keeps ranks in order)"]
    assert lanes["rank 0011 @other"] == usual


def test_where_a_rank_has_far_more_slices_than_those_before_it_is_said(tmp_path: Path) -> None:
    for rank, calls in enumerate((1, 1, 4000)):
        record = MadeRecord(tmp_path, rank, 3, events=calls)
        for call in range(calls):
            record.call("MPI_Wtime", 10 * call, 10 * call + 10, nbytes=-1)
        record.finish(50_000)
    timeline = timelines.read(tmp_path)
    assert len(of_json(text_of(timeline)).fillers()) == 0
    assert "some versions of Perfetto show them in that order" in "".join(
        diagnostics.notes(timeline)
    )


def text_of(timeline: Timeline) -> str:
    """A timeline as JSON."""
    file = StringIO()
    json_trace.write(timeline, file)
    return file.getvalue()


def test_both_kinds_of_file_are_the_same(made: tuple[Timeline, Path]) -> None:
    _, folder = made
    same(
        of_json((folder / "timeline.json").read_text(encoding="utf-8")),
        of_protobuf((folder / "timeline.pftrace").read_bytes()),
    )


def test_chrome_tracing_has_every_slice_and_every_arrow(
    opened: viewers.Viewers, made: tuple[Timeline, Path]
) -> None:
    timeline, folder = made
    expected = of_json((folder / "timeline.json").read_text(encoding="utf-8"))
    found = opened.chrome(folder / "timeline.json")
    assert found["warnings"] == []
    every = [*expected.slices, *expected.instants]
    assert len(found["slices"]) == len(every)
    assert sorted((*row[:2], row[4], row[5]) for row in found["slices"]) == sorted(
        (one.process, one.lane, one.name, one.category) for one in every
    )
    arrows = [tuple((*row[:2], row[4]) for row in pair) for pair in found["arrows"]]
    assert sorted(arrows) == sorted(
        ((a.process, a.lane, a.name), (b.process, b.lane, b.name)) for a, b in expected.arrows
    )
    assert found["order"] == sorted(found["order"])
    assert len(arrows) == len(timeline.messages.arrows)

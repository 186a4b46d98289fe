"""What Perfetto's trace processor reads of timelines: every slice and every arrow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from omb_py.tracing.records.layout import Communicator, EventKind
from omb_py.tracing.timeline import assembly, json_trace
from omb_py.tracing.timeline.assembly import Timeline
from tests.tracing.made_records import MadeRecord
from tests.tracing.timeline import viewers
from tests.tracing.timeline.rules import Content, of_json

pytestmark = viewers.needed

RANKS = 12
HOURS = 3 * 3600 * 10**9
"""A time at which microseconds with decimals have many digits."""

KINDS = (".json", ".json.gz")


@pytest.fixture(scope="module")
def opened(browser: Any) -> Iterator[viewers.Viewers]:
    """One server of pages for all tests."""
    with viewers.viewers(browser) as found:
        yield found


def job(folder: Path) -> Timeline:
    """Ranks that send to each other in every way, with phases and threads."""
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
                record.call(name, began, at + 90_001, **of, sequence=step, kind=EventKind.DONE)
            record.call("MPI_Send", at + 1001, at + 2002, peer=left, tag=2, nbytes=4, sequence=step)
            times = (at + 3003, at + 70_007)
            record.call("MPI_Sendrecv", *times, peer=right, nbytes=8, tag=3, sequence=step)
            record.call(
                *("MPI_Sendrecv", *times),
                kind=EventKind.ARRIVED,
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
            record.call("exchange", at, at + 90_500, kind=EventKind.PHASE)
            record.call("step", at - 7, at + 99_999, kind=EventKind.PHASE)
        record.finish(HOURS + 200_000)
    return assembly.read(folder)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Timeline, Path]:
    """The timeline of the job, and the folder with its files."""
    folder = tmp_path_factory.mktemp("job")
    timeline = job(folder)
    for kind in KINDS:
        json_trace.write(timeline, folder / f"timeline{kind}")
    return timeline, folder


def same(shown: Content, expected: Content) -> None:
    """Fail unless both hold the same slices, instants and arrows."""
    for name in ("slices", "instants", "arrows"):
        one, other = (sorted(map(repr, getattr(each, name))) for each in (shown, expected))
        assert len(one) == len(other), name
        assert one == other


@pytest.mark.long
@pytest.mark.product(strength=0)
@pytest.mark.parametrize("kind", KINDS)
def test_perfetto_has_all(opened: viewers.Viewers, made: tuple[Timeline, Path], kind: str) -> None:
    timeline, folder = made
    expected = of_json((folder / "timeline.json").read_text(encoding="utf-8"))
    with opened.perfetto(folder / f"timeline{kind}") as perfetto:
        assert perfetto.complaints() == []
        same(perfetto.content(), expected)
    assert len(expected.arrows) == len(timeline.messages.arrows) == 2 * 3 * RANKS
    assert sum(len(rank.slices) for rank in timeline.ranks) == len(expected.slices)

"""Runs made by hand: what each rank was doing when one looked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omb_py.tracing.monitor.findings import Concern, MonitorFinding, findings
from omb_py.tracing.monitor.snapshots import ObservationTime, Process, Snapshot, take_snapshot
from omb_py.tracing.records import reading
from omb_py.tracing.records.layout import NOBODY, Communicator
from tests.tracing.made_records import START, MadeRecord, communicator_line

SECOND = 1_000_000_000
HERE = "a"


@dataclass(frozen=True)
class Rank:
    """What one rank did, in seconds since its beginning, and what it does ``at`` a time."""

    routine: str = ""
    peer: int | Sequence[int] = NOBODY
    since: float = 0.0
    collectives: int = 0
    calls: Sequence[tuple[str, float, float, int]] = ()
    """Routine, beginning, end, bytes of the calls that are over."""
    ended: bool = False
    heard: float | None = None
    host: str = HERE
    communicator: Communicator | None = None
    other_communicators: Sequence[Communicator] = ()
    process: Process = Process.THERE
    operation: str = ""
    threads: Sequence[Rank] = ()
    """Other threads: their routine, peers, beginning, operation."""
    header: Mapping[str, float] = field(default_factory=dict)


def look(folder: Path, *ranks: Rank | None, at: float = 10.0) -> Snapshot:
    """The look at these ranks at a time; None has no record."""
    folder.mkdir(exist_ok=True)
    found = [
        made(folder, number, len(ranks), rank, at)
        for number, rank in enumerate(ranks)
        if rank is not None
    ]
    processes = {number: rank.process for number, rank in enumerate(ranks) if rank is not None}
    seen = take_snapshot(found, ObservationTime(HERE, ns(at)), processes)
    assert seen is not None
    return seen


def made(folder: Path, number: int, size: int, rank: Rank, at: float) -> reading.RankRecord:
    """The record of a rank."""
    written = MadeRecord(folder, number, size, host=rank.host)
    written.file.set("began_epoch", START)
    comm = rank.communicator or written.world
    for one in (written.world, comm, *rank.other_communicators):
        written.file.name(communicator_line(one))
    for routine, began, ended, nbytes in rank.calls:
        times = round(began * SECOND), round(ended * SECOND)
        written.call(routine, *times, nbytes=nbytes, communicator=rank.communicator)
    heard = at if rank.heard is None else rank.heard
    now: dict[str, Any] = {}
    if rank.routine:
        now = {**now_of(written, rank, comm), "now_peer": peers_of(rank)}
    elif rank.calls or rank.threads:
        now = {"now_began": ns(max((end for _, _, end, _ in rank.calls), default=0.0))}
    end = round(heard * SECOND) if rank.ended else None
    written.finish(end, **now, updated=ns(heard), **rank.header)
    for place, thread in enumerate(rank.threads):
        written.file.thread(4711 + place, *peers_of(thread), **now_of(written, thread, comm))
    return reading.read(written.file.path, events=False)


def now_of(written: MadeRecord, rank: Rank, comm: Communicator) -> dict[str, int]:
    """What a thread does, as the fields of a record."""
    return {
        "now_name": written.file.name(rank.routine),
        "now_operation": written.file.name(rank.operation),
        "now_communicator": written.file.name(communicator_line(comm)),
        "now_began": ns(rank.since),
        "now_collectives": rank.collectives,
    }


def peers_of(rank: Rank) -> Sequence[int]:
    """Whom it waits for."""
    return [rank.peer] if isinstance(rank.peer, int) else rank.peer


def ns(seconds: float) -> int:
    """A time of the clock that all ranks have."""
    return START + round(seconds * SECOND)


def said(seen: Snapshot) -> list[MonitorFinding]:
    """What there is to say of a look."""
    return findings(seen, min_wait_s=1.0, stale_after_s=5.0)


def about(concern: Concern, found: Sequence[MonitorFinding]) -> list[MonitorFinding]:
    """The findings of a kind."""
    return [one for one in found if one.concern is concern]

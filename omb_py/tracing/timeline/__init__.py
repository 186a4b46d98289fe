"""Timelines: what every rank did, and when, on one clock, from the records of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from omb_py.core.errors import UsageError
from omb_py.tracing.records import RankRecord, missing_ranks, read_folder
from omb_py.tracing.records.clocks import align
from omb_py.tracing.timeline.assembly import assemble
from omb_py.tracing.timeline.messages import match
from omb_py.tracing.timeline.model import NONE, RankTimeline, Timeline

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_RANKS = 10_000_000


def read(folder: str | Path) -> Timeline:
    """The timeline of the run whose records are in a folder.

    Raises `UsageError` when there are none, when one cannot be read, and when none has events.
    """
    return of(read_folder(folder))


def of(records: Sequence[RankRecord]) -> Timeline:
    """The timeline of a run's records, at least one.

    Raises `UsageError` when none has events, and when their ranks cannot be those of one run.
    """
    if all(record.header["events_capacity"] <= 0 for record in records):
        raise UsageError(
            "these records have tallies but no events: run omb-py profile with --timeline FILE"
        )
    size = records[0].ranks
    there = {record.rank for record in records}
    if len(there) < len(records) or size > MAX_RANKS or not there <= set(range(size)):
        raise UsageError(
            f"{Path(records[0].path).parent} has damaged records: their ranks cannot be"
        )
    ranks = tuple(assemble(alignment) for alignment in align(records))
    start = min(first_time(rank) for rank in ranks)
    record = ranks[0].alignment.record
    epoch = int(record.header["began_epoch"])
    return Timeline(
        ranks,
        match(ranks, [slices_of_events(rank) for rank in ranks]),
        size,
        tuple(missing_ranks(list(records))),
        start,
        epoch + start - ranks[0].began if epoch > 0 else 0,
        record.about,
    )


def first_time(rank: RankTimeline) -> int:
    """When anything of a rank is there first."""
    events = rank.events
    return min(rank.began, int(events["began"].min())) if len(events) else rank.began


def slices_of_events(rank: RankTimeline) -> NDArray[Any]:
    """The index of the slice of each event, NONE for those without."""
    found = np.full(len(rank.events), NONE, np.int64)
    for name in ("other", "event"):
        places = rank.slices[name]
        shown = (places != NONE) & (rank.slices["event"] != NONE)
        found[places[shown]] = np.flatnonzero(shown)
    return found


__all__ = ["Timeline", "of", "read"]

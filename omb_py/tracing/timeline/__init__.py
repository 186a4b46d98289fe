"""Timelines: the activity of every rank over time, on one clock, from the records of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from omb_py.core.errors import UsageError
from omb_py.tracing.records.run import RecordedRun, open_run
from omb_py.tracing.timeline.assembly import assemble, match
from omb_py.tracing.timeline.model import NONE, RankTimeline, Timeline

if TYPE_CHECKING:
    from numpy.typing import NDArray


def read(folder: str | Path) -> Timeline:
    """Return the timeline of the run whose records are in a folder.

    Raises `UsageError` if there are none, if one cannot be read, and if none has events.
    """
    return of(open_run(folder))


def of(run: RecordedRun) -> Timeline:
    """Return the timeline of a run; raises `UsageError` when no rank recorded events."""
    if all(record.header["events_capacity"] <= 0 for record in run.records):
        raise UsageError(
            "these records have tallies but no events: run omb-py profile with --timeline FILE"
        )
    ranks = tuple(map(assemble, run.alignments))
    start = min(first_time(rank) for rank in ranks)
    epoch = int(run.records[0].header["began_epoch"])
    return Timeline(
        ranks,
        match(ranks, [slices_of_events(rank) for rank in ranks]),
        run,
        start,
        epoch + start - ranks[0].began if epoch > 0 else 0,
    )


def first_time(rank: RankTimeline) -> int:
    """Return the time of a rank's first event or beginning."""
    events = rank.events
    return min(rank.began, int(events["began"].min())) if len(events) else rank.began


def slices_of_events(rank: RankTimeline) -> NDArray[Any]:
    """Return the index of the slice of each event, NONE for those without."""
    found = np.full(len(rank.events), NONE, np.int64)
    for name in ("other", "event"):
        places = rank.slices[name]
        shown = (places != NONE) & (rank.slices["event"] != NONE)
        found[places[shown]] = np.flatnonzero(shown)
    return found


__all__ = ["Timeline", "of", "read"]

"""A rank's calls of MPI as intervals on the common clock, with computation between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from omb_py.tracing.records.layout import EventKind
from omb_py.tracing.records.reading import RankRecord
from omb_py.tracing.records.run import RecordedRun

if TYPE_CHECKING:
    from numpy.typing import NDArray

BEFORE = -1
"""Instead of an interval: before the time that is looked at."""


@dataclass(frozen=True)
class Intervals:
    """The work of one rank from ``start`` to ``end`` (ns of the common clock).

    From ``begins[i]`` to ``ends[i]`` it was in MPI, in one call or in several that overlap; else it
    was outside. Intervals are in order and do not overlap. ``overlapping`` calls began while
    another one was under way, as those of several threads do.
    """

    record: RankRecord
    start: int
    end: int
    begins: NDArray[Any]
    ends: NDArray[Any]
    overlapping: int

    @property
    def outside(self) -> int:
        """Nanoseconds outside MPI."""
        return self.end - self.start - int((self.ends - self.begins).sum())

    def computed(self) -> NDArray[Any]:
        """Nanoseconds outside MPI before each interval."""
        lengths = self.ends - self.begins
        before: NDArray[Any] = self.begins - self.start - (np.cumsum(lengths) - lengths)
        return before

    def with_begin(self, times: Any) -> NDArray[Any]:
        """For times at which something began: the interval that it began in, or `BEFORE`."""
        found: NDArray[Any] = np.searchsorted(self.begins, times, "right") - 1
        return found

    def with_end(self, times: Any) -> NDArray[Any]:
        """For times at which something ended: the interval that it ended in, or `BEFORE`."""
        if not len(self.begins):
            return np.full(len(times), BEFORE)
        found = np.searchsorted(self.ends, times, "left")
        last = len(self.begins) - 1
        inside = (found <= last) & (self.begins[np.minimum(found, last)] <= times)
        intervals: NDArray[Any] = np.where(inside, found, found - 1)
        return intervals


def bounds(run: RecordedRun) -> list[tuple[int, int]]:
    """Start and end of each rank (ns): on the common clock, else each from 0."""
    if not run.on_one_clock:
        return [(0, one.ended - one.began) for one in run.records]
    return [(int(one.common(one.began)), int(one.common(one.ended))) for one in run.records]


def intervals_of(run: RecordedRun) -> list[Intervals]:
    """Return the intervals of each rank of a run, on one clock.

    Where a ring of events was too small, all ranks begin when that of the last one begins.
    """
    cut = [int(one.common(one.events["ended"][0])) for one in run.records if one.lost_events]
    found = zip(run.records, bounds(run), strict=True)
    return [_intervals(one, times, cut) for one, times in found]


def _intervals(record: RankRecord, times: tuple[int, int], cut: Sequence[int]) -> Intervals:
    calls = record.events[record.events["kind"] == EventKind.CALL]
    begins = np.asarray(record.common(calls["began"]), np.int64)
    ends = np.maximum(np.asarray(record.common(calls["ended"]), np.int64), begins)
    now = record.now
    if not record.complete and now.routine and now.began >= calls["ended"].max(initial=0):
        # a rank that was killed, or still runs, is in a call that it has not written yet
        begins = np.append(begins, int(record.common(now.began)))
        ends = np.append(ends, max(int(begins[-1]), times[1]))
    start = max(times[0], *cut) if cut else times[0]
    end = max(start, times[1], int(ends.max(initial=start)))
    kept = ends > start if cut else np.ones(len(ends), bool)
    order = np.argsort(begins[kept], kind="stable")
    begins, ends = np.maximum(begins[kept][order], start), ends[kept][order]
    return Intervals(record, start, end, *_united(begins, ends))


def _united(begins: NDArray[Any], ends: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], int]:
    """Spans that overlap as one; how many began within another."""
    if not len(begins):
        return begins, ends, 0
    reached = np.maximum.accumulate(ends)
    opens = np.append(True, begins[1:] >= reached[:-1])
    firsts = np.flatnonzero(opens)
    lasts = np.append(firsts[1:], len(begins)) - 1
    return begins[firsts], reached[lasts], len(begins) - len(firsts)

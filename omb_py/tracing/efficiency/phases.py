"""Efficiency of what a program named: the phases of a run, each by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from omb_py.tracing.efficiency.intervals import Intervals, intervals_of
from omb_py.tracing.efficiency.metrics import Efficiency, Times, efficiency
from omb_py.tracing.records.layout import LOADING, EventKind
from omb_py.tracing.records.reading import NS
from omb_py.tracing.records.run import RecordedRun

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class RecordedPhase:
    """All spans of one name, of all ranks.

    ``times.elapsed`` is the longest time that a rank spent in it, so that communication efficiency
    is of that time; waiting that one phase leaves to the next counts for the next. ``spans`` is the
    maximum number of a rank.
    """

    name: str
    spans: int
    times: Times
    efficiency: Efficiency


def phases_of(run: RecordedRun) -> list[RecordedPhase]:
    """The phases of a run, the longest first; none where nobody named any.

    Ranks that are never in a phase count with no time in it. Phases may contain each other.
    """
    if not run.on_one_clock:
        return []
    found: dict[str, dict[int, tuple[int, float, float]]] = {}
    for one in intervals_of(run):
        for name, mine in _of_rank(one).items():
            found.setdefault(name, {})[one.record.rank] = mine
    made = []
    for name, by_rank in found.items():
        told = [by_rank.get(record.rank, (0, 0.0, 0.0)) for record in run.records]
        times = Times(run.size, tuple(one[2] for one in told), max(one[1] for one in told))
        if times.elapsed > 0:
            made.append(RecordedPhase(name, max(one[0] for one in told), times, efficiency(times)))
    return sorted(made, key=lambda phase: -phase.times.elapsed)


def loading_of(every: Sequence[Intervals]) -> tuple[float, ...]:
    """The seconds that each rank waited for its input data, outside MPI."""
    return tuple(_of_rank(one).get(LOADING, (0, 0.0, 0.0))[2] for one in every)


def _of_rank(one: Intervals) -> dict[str, tuple[int, float, float]]:
    """For each phase of a rank: spans, seconds in all, seconds outside MPI."""
    events = one.record.events
    spans = events[(events["kind"] == EventKind.SPAN) & (events["lane"] == 0)]
    begins = np.maximum(one.record.common(spans["began"]), one.start)
    ends = np.maximum(one.record.common(spans["ended"]), begins)
    outside = (ends - begins) - (_inside(one, ends) - _inside(one, begins))
    found = {}
    for number in np.unique(spans["name"]).tolist():
        mine = spans["name"] == number
        lengths = float((ends - begins)[mine].sum()) * NS
        told = int(mine.sum()), lengths, float(outside[mine].sum()) * NS
        found[one.record.name(number)] = told
    return found


def _inside(one: Intervals, times: NDArray[Any]) -> NDArray[Any]:
    """Nanoseconds in MPI before each of some times."""
    if not len(one.begins):
        return np.zeros(len(times), np.int64)
    whole = np.append(0, np.cumsum(one.ends - one.begins))
    at = np.searchsorted(one.begins, times, "right")
    under_way = np.minimum(times, one.ends[at - 1]) - one.begins[at - 1]
    inside: NDArray[Any] = np.where(at > 0, whole[at - 1] + under_way, 0)
    return inside

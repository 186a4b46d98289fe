"""One rank's lanes, from its events."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from omb_py.tracing.records.layout import Kind
from omb_py.tracing.timeline.clocks import Alignment
from omb_py.tracing.timeline.events import LATEST, readable
from omb_py.tracing.timeline.lanes import apart, innermost, is_nested, outer_first
from omb_py.tracing.timeline.model import NONE, SLICE, Lane, LaneKind, RankTimeline

if TYPE_CHECKING:
    from numpy.typing import NDArray


def gaps(
    began: NDArray[Any], ended: NDArray[Any], start: int, end: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Beginnings and ends of the times between ``start`` and ``end`` that no interval covers."""
    order = np.argsort(began, kind="stable")
    begins = np.append(began[order], end)
    reached = np.maximum.accumulate(np.append(start, ended[order]))
    begins = np.minimum(begins, end)
    open_ = begins > reached
    return reached[open_], begins[open_]


def computing(
    calls: NDArray[Any], phases: NDArray[Any], places: NDArray[Any], start: int, end: int
) -> NDArray[Any]:
    """Slices of computing between calls, from ``start`` to ``end``, cut where a phase changes.

    ``calls`` and ``phases`` are events, ``places`` the phases' indices among all events: a slice
    has that of the innermost phase as ``other``.
    """
    begins, ends = gaps(calls["began"], calls["ended"], start, end)
    if not len(begins):
        return np.zeros(0, SLICE)
    times, inside = innermost(phases["began"], phases["ended"])
    cuts = times[1:]
    gap = np.searchsorted(begins, cuts, "right") - 1
    within = (gap >= 0) & (cuts > begins[gap]) & (cuts < ends[gap])
    starts = np.sort(np.concatenate([begins, cuts[within]]))
    slices = np.zeros(len(starts), SLICE)
    slices["began"] = starts
    slices["ended"] = np.minimum(
        ends[np.searchsorted(begins, starts, "right") - 1], np.append(starts[1:], ends[-1])
    )
    slices["event"] = NONE
    phase = inside[np.searchsorted(times, starts, "right") - 1]
    slices["other"] = np.append(places, NONE)[phase]
    return slices


UNNAMED = "(no name was kept)"
"""For names that the record had no room for."""


def assemble(alignment: Alignment) -> RankTimeline:
    """The lanes of a rank, from its record."""
    record = alignment.record
    events, unreadable = readable(record)
    kinds, lanes = events["kind"], events["lane"]
    calls = np.flatnonzero(kinds == Kind.CALL)
    spans = kinds == Kind.SPAN
    phases = np.flatnonzero(spans & (lanes == 0))
    inside, alone = arrivals(events)
    requests = np.concatenate([np.flatnonzero(kinds == Kind.DONE), alone])
    began, complete_from, ended = limits(alignment, events)

    marks = np.flatnonzero(kinds == Kind.INSTANT)

    made: list[Lane] = []
    parts = [laid(events, calls, apart, made, LaneKind.CALLS, "calls", 1)]
    parts[0]["other"] = inside[parts[0]["event"]]
    of_lanes = {0: len(made)}
    marked = int(bool(np.any(lanes[marks] == 0)))
    parts.append(laid(events, phases, is_nested, made, LaneKind.PHASES, "phases", marked))
    parts.append(laid(events, requests, apart, made, LaneKind.REQUESTS, "requests"))
    for number in np.unique(lanes[(spans | (kinds == Kind.INSTANT)) & (lanes != 0)]).tolist():
        name = record.name(number) or UNNAMED
        of_lanes[number] = len(made)
        mine = np.flatnonzero(spans & (lanes == number))
        parts.append(laid(events, mine, is_nested, made, LaneKind.NAMED, name, 1))
    if record.header["events_capacity"] > 0:
        parts.append(computing(events[calls], events[phases], phases, complete_from, ended))
    instants = slices_of(events, marks)
    instants["lane"] = [of_lanes[number] for number in lanes[marks].tolist()]
    slices = np.concatenate(parts)
    return RankTimeline(
        alignment,
        events,
        record.names,
        record.communicators,
        tuple(made),
        in_order(slices),
        in_order(instants),
        began,
        complete_from,
        ended,
        unreadable,
        pending(events),
    )


def slices_of(events: NDArray[Any], places: NDArray[Any]) -> NDArray[Any]:
    """A slice for each of the events at these places."""
    slices = np.zeros(len(places), SLICE)
    slices["began"], slices["ended"] = events["began"][places], events["ended"][places]
    slices["event"], slices["other"] = places, NONE
    return slices


def laid(
    events: NDArray[Any],
    places: NDArray[Any],
    lay: Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]],
    made: list[Lane],
    kind: LaneKind,
    name: str,
    minimum: int = 0,
) -> NDArray[Any]:
    """Slices of events in as many new lanes as they need, numbered from the second one on."""
    slices = slices_of(events, places)
    lanes = lay(slices["began"], slices["ended"])
    slices["lane"] = lanes + len(made)
    count = max(minimum, int(lanes.max()) + 1 if len(lanes) else 0)
    made += [Lane(kind, name if lane == 0 else f"{name} {lane + 1}") for lane in range(count)]
    return slices


def arrivals(events: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """What arrived in each call (an index by that of the call, else NONE), and what in none."""
    inside = np.full(len(events) + 1, NONE, np.int64)
    arrived = np.flatnonzero(events["kind"] == Kind.ARRIVED)
    could = (events["kind"] == Kind.CALL) & np.isin(events["name"], events["name"][arrived])
    places = np.flatnonzero(could)
    calls = dict(zip(call_keys(events[places]), places.tolist(), strict=True))
    alone = []
    for key, place in zip(call_keys(events[arrived]), arrived.tolist(), strict=True):
        call = calls.pop(key, None)
        if call is None:
            alone.append(place)
        else:
            inside[call] = place
    return inside, np.array(alone, np.int64)


def call_keys(events: NDArray[Any]) -> list[tuple[int, ...]]:
    """What a call has in common with what arrived in it."""
    fields = ("began", "ended", "name", "communicator")
    return list(zip(*(events[name].tolist() for name in fields), strict=True))


def limits(alignment: Alignment, events: NDArray[Any]) -> tuple[int, int, int]:
    """When a rank began, from when on all is there, when it was heard of last: rank 0's clock."""
    record = alignment.record
    first = int(events["began"].min()) if len(events) else None
    last = int(events["ended"].max()) if len(events) else None
    began = int(record.common(record.began)) if 0 <= record.began < LATEST else None
    if began is None or (first is not None and record.lost_events == 0 and began > first):
        began = first or 0
    complete_from = began
    if record.lost_events > 0 and len(events):
        complete_from = int(events["ended"][0])
    ended = began if last is None else last
    if 0 <= record.ended < LATEST:
        ended = max(ended, int(record.common(record.ended)))
    return began, complete_from, ended


def pending(events: NDArray[Any]) -> int:
    """Requests that a call began and nothing completed, as far as was recorded."""
    begun = events["request"][(events["kind"] == Kind.CALL) & (events["request"] > 0)]
    return int((~np.isin(begun, events["request"][events["kind"] == Kind.DONE])).sum())


def in_order(slices: NDArray[Any]) -> NDArray[Any]:
    """By lane, then by their beginning, what contains others before these."""
    ordered = slices[outer_first(slices["began"], slices["ended"])]
    by_lane: NDArray[Any] = ordered[np.argsort(ordered["lane"], kind="stable")]
    return by_lane

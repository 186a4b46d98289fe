"""Timelines: the activity of every rank over time, on one clock, from the records of a run.

`read` makes lanes of slices for each rank from its events, and arrows between them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from omb_py.core.errors import UsageError
from omb_py.core.text.words import count, some_ranks
from omb_py.tracing.records.layout import COUNTED, EventKind
from omb_py.tracing.records.messages import KEY, partners, same_as_before, sides_of, unique
from omb_py.tracing.records.reading import NS, RankRecord
from omb_py.tracing.records.run import Alignment, RecordedRun, open_run

if TYPE_CHECKING:
    from numpy.typing import NDArray

SLICE = np.dtype(
    [
        ("lane", np.int32),  # index into the rank's lanes
        ("began", np.int64),  # ns of rank 0's clock
        ("ended", np.int64),
        ("event", np.int64),  # index into the rank's events; NONE: computing
        ("other", np.int64),  # what arrived in a call, the phase of computing; else NONE
    ]
)
"""A slice of a lane."""

ARROW = np.dtype(
    [
        ("sender", np.int32),  # index into the timeline's ranks
        ("send", np.int64),  # index into its slices
        ("receiver", np.int32),
        ("receive", np.int64),
    ]
)
"""A message whose two sides are known."""

NONE = -1

CHUNK = 20_000
"""Slices that are handled at a time."""


@dataclass(frozen=True)
class RankTimeline:
    """The part of one rank.

    ``events`` has the fields of `records.layout.EVENT`, with times of rank 0's clock, and holds the
    readable ones; ``unreadable`` counts the others, which are not shown. ``lanes`` are named
    ``calls``, ``phases`` and ``requests``, numbered from the second of a kind on. ``slices`` is an
    array of `SLICE`, by lane, then by their beginning, outer ones before inner ones.
    ``complete_from`` is the time from which on nothing was lost. ``pending`` requests were begun,
    but their completion was not recorded.
    """

    alignment: Alignment
    events: NDArray[Any]
    lanes: tuple[str, ...]
    slices: NDArray[Any]
    began: int
    complete_from: int
    unreadable: int
    pending: int

    @property
    def record(self) -> RankRecord:
        """The rank's record."""
        return self.alignment.record

    @property
    def rank(self) -> int:
        """In MPI_COMM_WORLD."""
        return self.record.rank


@dataclass(frozen=True)
class Messages:
    """Arrows of messages (`ARROW`), and the numbers of messages without one.

    ``sent`` and ``received`` lack their other side; that of ``unnumbered`` and ``mixed`` ones is
    unknown (`records.messages.Sides`). ``unequal`` ones are of a kind whose bytes differ.
    ``backwards`` ended before they began, by up to ``most_backwards`` seconds, and ``beyond`` of
    them by more than the error bounds of the two clocks; an arrow cannot show that.
    """

    arrows: NDArray[Any]
    sent: int = 0
    received: int = 0
    unnumbered: int = 0
    mixed: int = 0
    unequal: int = 0
    backwards: int = 0
    most_backwards: float = 0.0
    beyond: int = 0


@dataclass(frozen=True)
class Timeline:
    """The activity of all ranks, on rank 0's clock.

    ``start`` is the time (ns) that is shown as 0, ``epoch`` the same in ns since 1970, 0 if
    unknown.
    """

    ranks: tuple[RankTimeline, ...]
    messages: Messages
    run: RecordedRun
    start: int
    epoch: int


def rows(slices: NDArray[Any]) -> Iterable[tuple[int, int, int, int, int]]:
    """Return rows of slices as numbers of Python, made some at a time."""
    places = range(0, len(slices), CHUNK)
    return chain.from_iterable(slices[at : at + CHUNK].tolist() for at in places)


def read(folder: str | Path) -> Timeline:
    """Return the timeline of the run whose records are in a folder.

    Raises `UsageError` if there are none, if one cannot be read, and if none has events.
    """
    run = open_run(folder)
    if all(record.header["events_capacity"] <= 0 for record in run.records):
        raise UsageError(
            "these records have tallies but no events: run omb-py profile with --events N"
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


LATEST = 1 << 61
"""ns; a time that is later is damage (it is 73 years of a monotonic clock)."""

MESSAGES = (EventKind.CALL, EventKind.DONE, EventKind.ARRIVED)


def readable(record: RankRecord) -> tuple[NDArray[Any], int]:
    """Return the events on the common clock, and how many make no sense: half written, or damaged.

    Those of MPI last for 1 ns at least, so that an arrow can begin and end inside of them.
    """
    events = record.events
    kinds, began, ended = events["kind"], events["began"], events["ended"]
    good = (kinds >= EventKind.CALL) & (kinds <= EventKind.PHASE) & (began >= 0)
    good &= (ended >= began) & (ended < LATEST)
    kept = events[good]
    kept["began"] = record.common(kept["began"])
    kept["ended"] = np.maximum(record.common(kept["ended"]), kept["began"])
    of_mpi = np.isin(kept["kind"], MESSAGES)
    kept["ended"] = np.where(of_mpi, np.maximum(kept["ended"], kept["began"] + 1), kept["ended"])
    return kept, int(len(events) - len(kept))


def apart(began: NDArray[Any], ended: NDArray[Any]) -> NDArray[Any]:
    """Return the lane (0, 1, ...) of each interval, so that no two of a lane share any time.

    There are no more lanes than intervals that share a time (greedy colouring of an interval
    graph), and of the free lanes an interval takes the first. An interval that begins when another
    ends may follow it.
    """
    order = np.lexsort((ended, began))
    begins, ends = began[order], ended[order]
    lanes = np.zeros(len(order), np.int32)
    if len(order) == 0 or bool(np.all(begins[1:] >= ends[:-1])):
        return lanes
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    opened = 0
    for place, begin, end in zip(order.tolist(), begins.tolist(), ends.tolist(), strict=True):
        while busy and busy[0][0] <= begin:
            heappush(free, heappop(busy)[1])
        if free:
            lane = heappop(free)
        else:
            lane = opened
            opened += 1
        lanes[place] = lane
        heappush(busy, (end, lane))
    return lanes


def nesting_lanes(began: NDArray[Any], ended: NDArray[Any]) -> NDArray[Any]:
    """Return the lane of each interval, so that of two in a lane that share a time one contains the
    other.

    An interval takes the first lane that can hold it.
    """
    lanes = np.zeros(len(began), np.int32)
    stacks: list[list[int]] = []
    order = outer_first(began, ended)
    ordered = zip(order.tolist(), began[order].tolist(), ended[order].tolist(), strict=True)
    for place, begin, end in ordered:
        lane = 0
        while lane < len(stacks) and not holds(stacks[lane], begin, end):
            lane += 1
        if lane == len(stacks):
            stacks.append([])
        stacks[lane].append(end)
        lanes[place] = lane
    return lanes


def holds(ends: list[int], begin: int, end: int) -> bool:
    """Return whether an interval fits into a lane whose open intervals have these ends.

    The innermost end is last. Intervals that are over before it begins are closed.
    """
    while ends and ends[-1] <= begin:
        ends.pop()
    return not ends or end <= ends[-1]


def outer_first(began: NDArray[Any], ended: NDArray[Any]) -> NDArray[Any]:
    """Return the order of intervals by their beginning, outer ones before inner ones.

    Of two equal intervals the one recorded last is the outer one, as it is left last.
    """
    return np.lexsort((-np.arange(len(began)), -ended, began))


def innermost(began: NDArray[Any], ended: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the innermost interval from each of some times on: the times, and its place or -1.

    Of several it is the one that began last. Times rise, and the first is before all.
    """
    times, places = [np.iinfo(np.int64).min], [-1]
    inside: list[int] = []
    left: set[int] = set()
    ends: list[tuple[int, int]] = []

    def enter(at: int, place: int) -> None:
        if times[-1] == at:
            places[-1] = place
        elif places[-1] != place:
            times.append(at)
            places.append(place)

    def leave(until: int) -> None:
        while ends and ends[0][0] <= until:
            end, place = heappop(ends)
            left.add(place)
            while inside and inside[-1] in left:
                inside.pop()
            enter(end, inside[-1] if inside else -1)

    for place in outer_first(began, ended).tolist():
        begin, end = int(began[place]), int(ended[place])
        leave(begin)
        if end > begin:
            inside.append(place)
            heappush(ends, (end, place))
            enter(begin, place)
    leave(np.iinfo(np.int64).max)
    return np.array(times, np.int64), np.array(places, np.int64)


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
    """Return the lanes of a rank, from its record."""
    record = alignment.record
    events, unreadable = readable(record)
    kinds = events["kind"]
    calls = np.flatnonzero(kinds == EventKind.CALL)
    phases = np.flatnonzero(kinds == EventKind.PHASE)
    inside, alone = arrivals(events)
    requests = np.concatenate([np.flatnonzero(kinds == EventKind.DONE), alone])
    began, complete_from, ended = limits(alignment, events)

    made: list[str] = []
    parts = [laid(events, calls, apart, made, "calls")]
    parts[0]["other"] = inside[parts[0]["event"]]
    parts.append(laid(events, phases, nesting_lanes, made, "phases"))
    parts.append(laid(events, requests, apart, made, "requests"))
    if record.header["events_capacity"] > 0:
        parts.append(computing(events[calls], events[phases], phases, complete_from, ended))
    return RankTimeline(
        alignment,
        events,
        tuple(made),
        in_order(np.concatenate(parts)),
        began,
        complete_from,
        unreadable,
        pending(events),
    )


def slices_of(events: NDArray[Any], places: NDArray[Any]) -> NDArray[Any]:
    """Return a slice for each of the events at these places."""
    slices = np.zeros(len(places), SLICE)
    slices["began"], slices["ended"] = events["began"][places], events["ended"][places]
    slices["event"], slices["other"] = places, NONE
    return slices


def laid(
    events: NDArray[Any],
    places: NDArray[Any],
    lay: Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]],
    made: list[str],
    name: str,
) -> NDArray[Any]:
    """Return slices of events in as many new lanes as they need, one at least."""
    slices = slices_of(events, places)
    lanes = lay(slices["began"], slices["ended"])
    slices["lane"] = lanes + len(made)
    count = int(lanes.max(initial=0)) + 1
    made += [name if lane == 0 else f"{name} {lane + 1}" for lane in range(count)]
    return slices


def arrivals(events: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the arrival in each call (an index by that of the call, else NONE), and others."""
    inside = np.full(len(events) + 1, NONE, np.int64)
    arrived = np.flatnonzero(events["kind"] == EventKind.ARRIVED)
    could = (events["kind"] == EventKind.CALL) & np.isin(events["name"], events["name"][arrived])
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
    """Return the fields that a call and its arrival share."""
    fields = ("began", "ended", "name", "communicator")
    return list(zip(*(events[name].tolist() for name in fields), strict=True))


def limits(alignment: Alignment, events: NDArray[Any]) -> tuple[int, int, int]:
    """Return a rank's begin, the time from which it is complete, and its last time: rank 0's
    clock."""
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
    begun = events["request"][(events["kind"] == EventKind.CALL) & (events["request"] > 0)]
    return int((~np.isin(begun, events["request"][events["kind"] == EventKind.DONE])).sum())


def in_order(slices: NDArray[Any]) -> NDArray[Any]:
    """Return slices by lane, then by their beginning, outer ones before inner ones."""
    ordered = slices[outer_first(slices["began"], slices["ended"])]
    by_lane: NDArray[Any] = ordered[np.argsort(ordered["lane"], kind="stable")]
    return by_lane


PAIR = np.dtype(
    [
        *ARROW.descr,
        ("message", np.int64),  # equal for those of one communicator, source, destination and tag
        ("left", np.int64),
        ("arrived", np.int64),
        ("sent", np.int64),  # bytes
        ("received", np.int64),
        ("counted", bool),  # these bytes came, else no more would have fitted
        ("error", np.float64),  # of the two clocks, seconds
    ]
)
"""The two sides of a message; slices are NONE where an event has none."""


def match(ranks: Sequence[RankTimeline], slices: Sequence[NDArray[Any]]) -> Messages:
    """Return the messages between ranks; ``slices`` has the slice of each rank's events, or NONE.

    A message leaves with the call that sends, and arrives at the end of the slice that received it.
    """
    keys: dict[str, int] = {}
    sides = [sides_of(index, rank.record, rank.events, keys) for index, rank in enumerate(ranks)]
    sends = unique(np.concatenate([one.sends for one in sides]))
    receives = unique(np.concatenate([one.receives for one in sides]))
    second = partners(sends, receives)
    first = np.flatnonzero(second >= 0)
    return replace(
        outcome(pairs_of(ranks, slices, sends[first], receives[second[first]])),
        sent=len(sends) - len(first),
        received=len(receives) - len(first),
        unnumbered=sum(one.unnumbered for one in sides),
        mixed=sum(one.mixed for one in sides),
    )


def pairs_of(
    ranks: Sequence[RankTimeline],
    slices: Sequence[NDArray[Any]],
    sends: NDArray[Any],
    receives: NDArray[Any],
) -> NDArray[Any]:
    """Return the pairs (`PAIR`) of these sides, which belong together one by one."""
    pairs = np.zeros(len(sends), PAIR)
    pairs["message"] = np.cumsum(~same_as_before(sends, KEY[:-1]))
    sending = "sender", "send", "left", "began", "sent", sends
    receiving = "receiver", "receive", "arrived", "ended", "received", receives
    for index, rank in enumerate(ranks):
        for who, slice_name, at, time, nbytes, side in (sending, receiving):
            mine = side["rank"] == index
            places = side["event"][mine]
            events = rank.events[places]
            pairs[who][mine], pairs[slice_name][mine] = index, slices[index][places]
            pairs[at][mine], pairs[nbytes][mine] = events[time], events["nbytes"]
            pairs["counted"][mine] |= (events["order"] & COUNTED) > 0
            pairs["error"][mine] += np.inf if rank.alignment.error is None else rank.alignment.error
    return pairs


def outcome(pairs: NDArray[Any]) -> Messages:
    """Return the arrows of pairs, and the numbers of those without one.

    Where the bytes of a pair differ, numbers of messages are out of step: none of its kind has one.
    """
    known = (pairs["sent"] >= 0) & (pairs["received"] >= 0)
    differ = np.where(
        pairs["counted"], pairs["received"] != pairs["sent"], pairs["received"] < pairs["sent"]
    )
    unequal = np.isin(pairs["message"], pairs["message"][known & differ])
    late = (pairs["left"] >= pairs["arrived"]) & ~unequal
    behind = (pairs["left"] - pairs["arrived"])[late] * NS
    drawn = pairs[~late & ~unequal & (pairs["send"] != NONE) & (pairs["receive"] != NONE)]
    drawn = drawn[np.argsort(drawn["left"], kind="stable")]
    return Messages(
        drawn[list(ARROW.names or ())].astype(ARROW),
        unequal=int(unequal.sum()),
        backwards=int(late.sum()),
        most_backwards=float(behind.max()) if len(behind) else 0.0,
        beyond=int((behind > pairs["error"][late]).sum()),
    )


def select(timeline: Timeline, ranks: Collection[int]) -> Timeline:
    """Return the timeline of these ranks, with the arrows between them.

    Raises `UsageError` for ranks without a record.
    """
    there = [rank.rank for rank in timeline.ranks]
    absent = set(ranks) - set(there)
    if absent:
        raise UsageError(
            f"there is no record of {some_ranks(absent)}: there are those of {some_ranks(there)}"
        )
    wanted = [index for index, rank in enumerate(there) if rank in ranks]
    new = np.full(len(there), NONE)
    new[wanted] = np.arange(len(wanted))
    arrows = timeline.messages.arrows.copy()
    for who in ("sender", "receiver"):
        arrows[who] = new[arrows[who]]
    shown = arrows[(arrows["sender"] != NONE) & (arrows["receiver"] != NONE)]
    return replace(
        timeline,
        ranks=tuple(timeline.ranks[index] for index in wanted),
        messages=replace(timeline.messages, arrows=shown),
    )


def notes(timeline: Timeline) -> list[str]:
    """Return notes that a reader of the timeline needs, most important first."""
    return [*_lacking(timeline), *_of_messages(timeline), *_of_times(timeline)]


def _lacking(timeline: Timeline) -> Iterator[str]:
    ranks = timeline.ranks
    yield from timeline.run.notes
    silent = [rank for rank in ranks if rank.record.header["events_capacity"] <= 0]
    if silent:
        yield f"{some_ranks(r.rank for r in silent)} recorded no events"
    lossy = [rank for rank in ranks if rank.record.lost_events > 0]
    if lossy:
        lost = sum(rank.record.lost_events for rank in lossy)
        since = (max(rank.complete_from for rank in lossy) - timeline.start) * NS
        yield (
            f"{were(lost, 'event')} written over by later ones on "
            f"{some_ranks(r.rank for r in lossy)}: the timeline has all from {since:.6f} s on "
            "(omb-py profile --events keeps more)"
        )
    unreadable = sum(rank.unreadable for rank in ranks)
    unnamed = sum(int(rank.record.header["names_lost"]) for rank in ranks)
    for number, what in (
        (unreadable, "left out that made no sense: half written, or the file is damaged"),
        (unnamed, "not given a name, for want of room in the record"),
    ):
        if number > 0:
            yield f"{were(number, 'event')} {what}"
    pending = sum(rank.pending for rank in ranks)
    if pending:
        yield (
            f"{were(pending, 'request')} begun, but no completion was recorded: "
            "shown are only the calls that began them"
        )


def _of_messages(timeline: Timeline) -> Iterator[str]:
    messages = timeline.messages
    for number, what, why in (
        (messages.sent, "send", "no receive was recorded that fits"),
        (messages.received, "receive", "no send was recorded that fits"),
        (messages.unnumbered, "more side", "the record does not tell which message it was"),
        (messages.mixed, "receive", "what wildcards received meanwhile was not recorded"),
        (messages.unequal, "message", "of its sender and tag, bytes sent and received differ"),
    ):
        if number:
            yield f"{count(number, what)} without an arrow: {why}"
    if messages.backwards:
        worst = f"by up to {messages.most_backwards * 1e6:.3f} us"
        beyond = (
            f"{count(messages.beyond, 'message')} of them by more than the clocks' error bounds"
            if messages.beyond
            else "all within the clocks' error bounds"
        )
        yield (
            f"{count(messages.backwards, 'message')} without an arrow: received before sent "
            f"{worst}, {beyond}"
        )


def _of_times(timeline: Timeline) -> Iterator[str]:
    unknown = [rank for rank in timeline.ranks if rank.alignment.error is None]
    if unknown:
        yield (
            f"the clock of {some_ranks(r.rank for r in unknown)} was not compared with rank 0's: "
            "its times are its own"
        )
    compared = [rank for rank in timeline.ranks if rank.alignment.error]
    if compared:
        bound = max(rank.alignment.error or 0.0 for rank in compared)
        yield (
            f"{some_ranks(r.rank for r in compared)} read other clocks than rank 0: "
            f"their times are wrong by {bound * 1e6:.3f} us at most"
        )


def were(number: int, noun: str) -> str:
    """Return a number of things, as the subject of a passive sentence."""
    return f"{count(number, noun)} {'was' if number == 1 else 'were'}"

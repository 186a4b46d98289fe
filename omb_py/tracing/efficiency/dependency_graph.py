"""Waiting between ranks of a recorded run, as work for the replay.

Collective calls are matched by communicator and number, messages by `records.messages`. On an ideal
network a rank waits as follows: a receive for the beginning of its send, a synchronous send for
that of its receive, a completion for what it completes, a blocking probe for the message that is
received next, a collective call for the ranks that `routines.dependence` names. Everything else
ends at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from omb_py.tracing.efficiency.intervals import BEFORE, Intervals
from omb_py.tracing.efficiency.replay import Work
from omb_py.tracing.records.layout import NOBODY, EventKind
from omb_py.tracing.records.messages import partners, sides_of, unique
from omb_py.tracing.records.routines import (
    Dependence,
    Role,
    base,
    dependence,
    nonblocking,
    prepares,
    role,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


NO_COMMUNICATOR = ("", 0)

NOT_REPLAYED = (None, Dependence.NEIGHBOURS, Dependence.GROUPS, Dependence.OTHERS)
"""Dependences whose awaited ranks are unknown from a record."""


class Act(IntEnum):
    """The action for an event.

    BEGIN: keep the beginning of an operation that another event ends. PROBE: wait for the message
    received next. RECEIVE: receive it. COLLECTIVE: a collective call; END: the end of a
    non-blocking one; COUNTED: a collective call without a number.

    BEGIN: what another event ends. PROBE: wait for what is received next. RECEIVE: it is received.
    COLLECTIVE: a collective call; END: of a non-blocking one; COUNTED: one that has no number.
    """

    NOTHING = 0
    BEGIN = 1
    PROBE = 2
    COLLECTIVE = 3
    END = 4
    COUNTED = 5
    RECEIVE = 6


Place = tuple[int, int]
"""Index of a rank, index of one of its intervals."""


class MatchedCollective(NamedTuple):
    """A rank waits in a collective call."""

    key: tuple[str, int]
    dependence: Dependence
    root: int
    size: int
    place: Place


class MatchedWait(NamedTuple):
    """A wait at ``place`` for the event that begins at ``source``; None if that was not
    recorded."""

    source: Place | None
    place: Place


@dataclass
class MatchedEvents:
    """The matched events of records: the places of waits, and their sources.

    ``guesses`` count only if their source was in time. ``members`` are the ranks that take part in
    each collective call. ``unnumbered`` ends of messages cannot be matched; ``unknown`` counts
    calls, by routine, whose awaited ranks are unknown.
    """

    ranks: list[int]
    waits: list[MatchedWait] = field(default_factory=list)
    guesses: list[MatchedWait] = field(default_factory=list)
    members: dict[tuple[str, int], dict[int, Place]] = field(default_factory=dict)
    collectives: list[MatchedCollective] = field(default_factory=list)
    unknown: Counter[str] = field(default_factory=Counter)
    unnumbered: int = 0


def match_events(every: Sequence[Intervals]) -> MatchedEvents:
    """Match the events of a run's records, with indices of ranks as in ``every``."""
    found = MatchedEvents([one.record.rank for one in every])
    keys: dict[str, int] = {}
    readers = [_Reader(found, index, one, keys) for index, one in enumerate(every)]
    sends, receives, synchronous = (
        np.concatenate(sides)
        for sides in (
            [reader.sides.sends for reader in readers],
            [reader.sides.receives for reader in readers],
            [reader.synchronous() for reader in readers],
        )
    )
    sends = unique(sends)
    posts = [readers[rank].post(event) for rank, event in sends[["rank", "event"]].tolist()]
    sources = [posts[place] if place >= 0 else None for place in partners(receives, sends).tolist()]
    for side, source in zip(receives.tolist(), sources, strict=True):
        *_, rank, event = side
        found.waits.append(MatchedWait(source, readers[rank].wait(event)))
    for side, place in zip(synchronous.tolist(), partners(synchronous, receives), strict=True):
        *_, rank, event = side
        source = None
        if place >= 0:
            source = readers[receives["rank"][place]].post(receives["event"][place])
        found.waits.append(MatchedWait(source, readers[rank].wait(event)))
    for index, reader in enumerate(readers):
        mine = np.flatnonzero(receives["rank"] == index)
        reader.read(receives[mine], [sources[place] for place in mine.tolist()])
    return found


class _Reader:
    """A reader of one rank's record into the matched events."""

    def __init__(
        self, found: MatchedEvents, index: int, intervals: Intervals, keys: dict[str, int]
    ) -> None:
        record = intervals.record
        self.found = found
        self.index = index
        self.rank = record.rank
        self.record = record
        self.names = record.names
        self.keys = keys
        self.counts = not record.lost_events
        self.communicators = {
            number: (one.key, one.size) for number, one in record.communicators.items()
        }
        self.begun: dict[int, int] = {}
        self.counted: dict[str, int] = {}
        self.probes: list[tuple[int, int, Place]] = []
        events = record.events
        self.sides = sides_of(index, record.rank, events, record.names, record.communicators, keys)
        found.unnumbered += self.sides.unnumbered
        self.waits = intervals.with_end(record.common(events["ended"]))
        begins = intervals.with_begin(record.common(events["began"]))
        # in calls of no length at the same time a wait must not stand before its own beginning
        self.posts = np.minimum(begins, self.waits)

    def post(self, event: int) -> Place:
        """Return the place of an event's beginning."""
        return self.index, int(self.posts[event])

    def wait(self, event: int) -> Place:
        """Return the place of an event's end."""
        return self.index, int(self.waits[event])

    def synchronous(self) -> NDArray[Any]:
        """Return the sides of sends that end when their receive has begun."""
        sends, events = self.sides.sends, self.record.events[self.sides.sends["event"]]
        names = [self.names[number] for number in events["name"].tolist()]
        synchronous = np.array([base(name) == "ssend" for name in names], bool)
        begins = np.array([nonblocking(name) for name in names], bool)
        chosen: NDArray[Any] = sends[synchronous & (~begins | (events["kind"] == EventKind.DONE))]
        return chosen

    def read(self, receives: NDArray[Any], sources: Sequence[Place | None]) -> None:
        """Go through the events in the order in which they began.

        Those that receive messages are given with the places at which these were sent.
        """
        message = {
            side[-1]: (side, source)
            for side, source in zip(receives.tolist(), sources, strict=True)
        }
        for event, act, name, comm, peer, request, number in self._rows(list(message)):
            key, size = self.communicators.get(comm, NO_COMMUNICATOR)
            if event in message:
                self._received(*message[event])
            elif act == Act.PROBE:
                self.probes.append(
                    (self.keys.setdefault(key, len(self.keys)), peer, self.wait(event))
                )
            else:
                if act == Act.BEGIN:
                    self.begun[request] = number
                elif act == Act.END and number == 0:
                    number = self.begun.get(request, 0)
                self._together(act, name, (key, number), peer, size, event)

    def _rows(self, received: list[int]) -> Iterator[tuple[int, ...]]:
        """Yield relevant events: their places, the action, and their fields."""
        events = self.record.events
        acts = np.array([acts_of(name) for name in self.names] + [(0, 0, 0)])
        kinds = np.select(
            [events["kind"] == EventKind.CALL, events["kind"] == EventKind.DONE], [1, 2]
        )
        act = acts[np.clip(events["name"], -1, len(self.names)), kinds]
        if np.any(act == Act.PROBE):
            act[received] = Act.RECEIVE
        order = np.flatnonzero(act)
        order = order[np.argsort(events["began"][order], kind="stable")]
        columns = [order, act[order]]
        columns += [
            events[one][order] for one in ("name", "communicator", "peer", "request", "sequence")
        ]
        return zip(*(column.tolist() for column in columns), strict=True)

    def _received(self, side: tuple[int, ...], source: Place | None) -> None:
        """Match the blocking probes before a receive with its send."""
        communicator, peer, *_, event = side
        _, post = self.post(event)
        for key, wanted, place in self.probes:
            if key == communicator and wanted in (NOBODY, peer) and place[1] <= post and source:
                self.found.guesses.append(MatchedWait(source, place))
        self.probes = [probe for probe in self.probes if probe[2][1] > post]

    def _together(
        self, act: int, name: int, key: tuple[str, int], root: int, size: int, event: int
    ) -> None:
        """A call of several ranks of a communicator."""
        whom = dependence(self.names[name])
        if act == Act.COUNTED and key[0]:
            kind = f"{key[0]} {base(self.names[name])}"
            self.counted[kind] = self.counted.get(kind, 0) + 1
            key = (kind, key[1] or self.counts * self.counted[kind])
        if whom in NOT_REPLAYED or key[1] == 0:
            self.found.unknown[self.names[name]] += act != Act.BEGIN
            return
        self.found.members.setdefault(key, {}).setdefault(self.rank, self.post(event))
        if act != Act.BEGIN:
            self.found.collectives.append(
                MatchedCollective(key, whom, root, size, self.wait(event))
            )


def acts_of(name: str) -> tuple[int, int, int]:
    """Return the actions for a routine's events: of other kinds, of `CALL`, of `DONE`."""
    what, begins = role(name), nonblocking(name)
    if what is Role.PROBE:
        return Act.NOTHING, Act.NOTHING if begins else Act.PROBE, Act.NOTHING
    if what is Role.COLLECTIVE:
        begin = Act.BEGIN if begins else Act.COLLECTIVE
        return Act.NOTHING, Act.NOTHING if prepares(name) else begin, Act.END
    if dependence(name) is not None and what is not Role.FILE:
        return Act.NOTHING, Act.COUNTED, Act.NOTHING
    return Act.NOTHING, Act.NOTHING, Act.NOTHING


@dataclass(frozen=True)
class DependencyGraph:
    """All work, and the gates by the number of their posts.

    ``kept`` waits are replayed. ``unmatched`` ones are not, since the other side was not recorded,
    nor ``contradictory`` ones, which ended before their source began (with wrong clocks, or in a
    collective call of no bytes). ``unknown`` are calls, by routine, whose awaited ranks are
    unknown.
    """

    work: list[Work]
    gates: list[int]
    kept: int
    unmatched: int
    contradictory: int
    unknown: Counter[str]


def dependency_graph(every: Sequence[Intervals]) -> DependencyGraph:
    """Return the work of all ranks of a run, in the order of ``every``."""
    return _Gates(every, match_events(every)).made()


class _Gates:
    """A builder of gates from matched events."""

    def __init__(self, every: Sequence[Intervals], found: MatchedEvents) -> None:
        self.found = found
        self.begins = [one.begins.tolist() for one in every]
        self.ends = [one.ends.tolist() for one in every]
        self.every = every
        self.gates: list[int] = []
        self.single: dict[Place, int] = {}
        self.common: dict[tuple[str, int], tuple[int, int]] = {}
        self.posts: list[dict[int, list[int]]] = [{} for _ in every]
        self.waits: list[dict[int, list[int]]] = [{} for _ in every]
        self.kept = self.contradictory = 0
        self.unmatched = found.unnumbered

    def made(self) -> DependencyGraph:
        """Return the whole graph."""
        found = self.found
        for source, place in found.waits:
            self._wait(source, place)
        for source, place in found.guesses:
            if source and place[1] != BEFORE and self._fits(source, place):
                self._wait(source, place)
        for called in found.collectives:
            self._collective(called)
        return DependencyGraph(
            [self._work(index) for index in range(len(self.every))],
            self.gates,
            self.kept,
            self.unmatched,
            self.contradictory,
            found.unknown,
        )

    def _wait(self, source: Place | None, place: Place) -> None:
        """Wait at a place for the event that begins at ``source``."""
        if place[1] == BEFORE:
            return
        if source is None:
            self.unmatched += 1
        elif not self._fits(source, place):
            self.contradictory += 1
        elif source[1] != BEFORE:
            gate = self.single.get(source)
            if gate is None:
                gate = self.single[source] = self._gate([source])
            self._on(gate, place)

    def _collective(self, called: MatchedCollective) -> None:
        rank, members = self.found.ranks[called.place[0]], self.found.members[called.key]
        if called.place[1] == BEFORE:
            return
        if called.dependence is Dependence.ROOT:
            if rank != called.root:
                self._wait(members.get(called.root), called.place)
        elif called.dependence is Dependence.LOWER:
            # by the world's order, which a communicator's may differ from
            for other, place in members.items():
                if other < rank:
                    self._wait(place, called.place)
        elif called.dependence is Dependence.ALL or rank == called.root:
            self._all(called, members)

    def _all(self, called: MatchedCollective, members: dict[int, Place]) -> None:
        self.unmatched += max(0, called.size - len(members))
        found = self.common.get(called.key)
        if found is None:
            there = [place for place in members.values() if place[1] != BEFORE]
            last = max((self.begins[rank][at] for rank, at in there), default=0)
            found = self.common[called.key] = (self._gate(there) if there else -1, last)
        gate, last = found
        if gate < 0:
            return
        if last <= self.ends[called.place[0]][called.place[1]]:
            self._on(gate, called.place)
            return
        for place in members.values():
            self._wait(place, called.place)

    def _fits(self, source: Place, place: Place) -> bool:
        """Return whether the source began before the wait ended, by the clocks."""
        at = source[1]
        return at == BEFORE or self.begins[source[0]][at] <= self.ends[place[0]][place[1]]

    def _gate(self, places: Sequence[Place]) -> int:
        self.gates.append(len(places))
        for rank, at in places:
            self.posts[rank].setdefault(at, []).append(len(self.gates) - 1)
        return len(self.gates) - 1

    def _on(self, gate: int, place: Place) -> None:
        self.kept += 1
        self.waits[place[0]].setdefault(place[1], []).append(gate)

    def _work(self, index: int) -> Work:
        one, posts, waits = self.every[index], self.posts[index], self.waits[index]
        steps = sorted(posts.keys() | waits.keys())
        computed, ends = one.computed()[steps].tolist(), self.ends[index]
        return Work(
            one.start,
            one.outside,
            computed,
            [posts.get(at, ()) for at in steps],
            [waits.get(at, ()) for at in steps],
            [ends[at] for at in steps],
        )

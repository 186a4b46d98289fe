"""Where messages begin and where somebody waits in a recorded run.

Messages are matched by communicator, ranks, tag and number, collective calls by communicator and
number. What a rank waits for when the network is ideal: a receive for the beginning of its send, a
synchronous send for that of its receive, a completion for what it completes, a blocking probe for
the message that is received next, a collective call for the ranks that `routines.dependence` names.
Everything else ends at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from omb_py.tracing.efficiency.stretches import Stretches
from omb_py.tracing.records import Kind
from omb_py.tracing.records.layout import NOBODY
from omb_py.tracing.records.routines import (
    Dependence,
    Role,
    base,
    dependence,
    nonblocking,
    prepares,
    role,
)

OF_ALL = frozenset(
    "comm_dup comm_split comm_split_type comm_create cart_create cart_sub graph_create "
    "dist_graph_create dist_graph_create_adjacent win_create win_allocate win_allocate_shared "
    "win_create_dynamic win_fence win_free".split()
)
"""Routines that are no collective communication, but called by all ranks of a communicator."""

UNTOLD = frozenset(
    "win_start win_complete win_wait win_lock parrived comm_create_group intercomm_create "
    "intercomm_merge comm_spawn comm_accept comm_connect comm_disconnect".split()
)
"""Routines in which a rank may wait for others of which a record does not tell."""

KINDS = (0, Kind.CALL, Kind.DONE, Kind.ARRIVED)
NO_COMMUNICATOR = ("", 0)


class Act(IntEnum):
    """What is to be done with an event.

    RECEIVE: wait for a send. SEND: a message begins. SYNCHRONOUS: the same, and wait for its
    receive. HALF: one of these, of a call that did both. BEGIN: what another event ends. PROBE:
    wait for what is received next. TOGETHER: a collective call; END: of a non-blocking one;
    COUNTED: one that has no number.
    """

    NOTHING = 0
    RECEIVE = 1
    SEND = 2
    SYNCHRONOUS = 3
    HALF = 4
    BEGIN = 5
    PROBE = 6
    TOGETHER = 7
    END = 8
    COUNTED = 9


Message = tuple[str, int, int, int, int]
"""Communicator's key, sender, receiver, tag, number."""

Place = tuple[int, int]
"""Index of a rank, index of one of its stretches."""


class Collective(NamedTuple):
    """A rank waits in a collective call."""

    key: tuple[str, int]
    dependence: Dependence
    root: int
    size: int
    place: Place


@dataclass
class Found:
    """What the records hold: where messages begin, and where somebody waits for them.

    ``guesses`` wait for messages, too, if they were in time. ``members`` are the ranks that take
    part in each collective call. ``unnumbered`` ends of messages cannot be matched; ``unknown``
    counts calls, by routine, of which it is not known whom they wait for.
    """

    ranks: list[int]
    sends: dict[Message, Place] = field(default_factory=dict)
    receives: dict[Message, Place] = field(default_factory=dict)
    for_sends: list[tuple[Message, Place]] = field(default_factory=list)
    guesses: list[tuple[Message, Place]] = field(default_factory=list)
    for_receives: list[tuple[Message, Place]] = field(default_factory=list)
    members: dict[tuple[str, int], dict[int, Place]] = field(default_factory=dict)
    collectives: list[Collective] = field(default_factory=list)
    unknown: Counter[str] = field(default_factory=Counter)
    unnumbered: int = 0


def waits_of(every: Sequence[Stretches]) -> Found:
    """What the records of a run hold, with indices of ranks as in ``every``."""
    found = Found([one.record.rank for one in every])
    for index, one in enumerate(every):
        _Reader(found, index, one).read()
    return found


class _Reader:
    """Reads what one rank recorded into what is found."""

    def __init__(self, found: Found, index: int, stretches: Stretches) -> None:
        record = stretches.record
        self.found = found
        self.index = index
        self.rank = record.rank
        self.stretches = stretches
        self.names = record.names
        self.whom = [whom_of(name) for name in record.names]
        self.counts = not record.lost_events
        self.communicators = {
            number: (one.key, one.size) for number, one in record.communicators.items()
        }
        self.begun: dict[int, tuple[int, ...]] = {}
        self.counted: dict[str, int] = {}
        self.probes: list[tuple[str, int, Place]] = []

    def read(self) -> None:
        """Go through the events in the order in which they began."""
        found, index, rank, communicators = self.found, self.index, self.rank, self.communicators
        sends, receives, for_sends = found.sends, found.receives, found.for_sends
        for act, name, comm, peer, tag, request, number, post, wait in self._rows():
            key, size = communicators.get(comm, NO_COMMUNICATOR)
            if act == Act.HALF:
                # the sending half has the peer, tag and number of the call
                act = Act.SEND if self.begun.get(request) == (peer, tag, number) else Act.RECEIVE
            elif act == Act.BEGIN:
                self.begun[request] = (peer, tag, number)
                if self.whom[name] is None:
                    act = Act.SEND
            if act <= Act.SYNCHRONOUS and (peer == NOBODY or number == 0):
                found.unnumbered += peer != NOBODY
            elif act == Act.RECEIVE:
                message = (key, peer, rank, tag, number)
                receives[message] = (index, post)
                for_sends.append((message, (index, wait)))
                if self.probes:
                    self._probed(message, post)
            elif act <= Act.SYNCHRONOUS:
                message = (key, rank, peer, tag, number)
                sends.setdefault(message, (index, post))
                if act == Act.SYNCHRONOUS:
                    found.for_receives.append((message, (index, wait)))
            elif act == Act.PROBE:
                self.probes.append((key, peer, (index, wait)))
            else:
                if act == Act.END and number == 0:
                    number = self.begun.get(request, (0,))[-1]
                self._together(act, name, (key, number), peer, size, (index, post), (index, wait))

    def _rows(self) -> Iterator[tuple[int, ...]]:
        """Events that matter: what is to be done, their fields, where they began and ended."""
        events = self.stretches.record.events
        acts = np.array([acts_of(name) for name in self.names] + [(0,) * len(KINDS)])
        kinds = np.where(np.isin(events["kind"], KINDS), events["kind"], 0)
        act = acts[np.clip(events["name"], -1, len(self.names)), kinds]
        order = np.flatnonzero(act)
        order = order[np.argsort(events["began"][order], kind="stable")]
        events = events[order]
        common = self.stretches.record.common
        columns = [act[order]]
        columns += [events[one] for one in "name communicator peer tag request sequence".split()]
        waits = self.stretches.with_end(common(events["ended"]))
        begins = self.stretches.with_begin(common(events["began"]))
        # in calls of no length at the same time a wait must not stand before its own beginning
        columns += [np.minimum(begins, waits), waits]
        return zip(*(column.tolist() for column in columns), strict=True)

    def _probed(self, message: Message, post: int) -> None:
        """What blocking probes before a receive waited for."""
        key, peer, *_ = message
        for communicator, asked, place in self.probes:
            if communicator == key and asked in (NOBODY, peer) and place[1] <= post:
                self.found.guesses.append((message, place))
        self.probes = [probe for probe in self.probes if probe[2][1] > post]

    def _together(
        self,
        act: int,
        name: int,
        key: tuple[str, int],
        root: int,
        size: int,
        post: Place,
        wait: Place,
    ) -> None:
        """A call of several ranks of a communicator."""
        whom = self.whom[name]
        if act == Act.COUNTED and key[0]:
            kind = f"{key[0]} {base(self.names[name])}"
            self.counted[kind] = self.counted.get(kind, 0) + 1
            key = (kind, key[1] or self.counts * self.counted[kind])
        if whom in (None, Dependence.NEIGHBOURS) or key[1] == 0:
            self.found.unknown[self.names[name]] += act != Act.BEGIN
            return
        self.found.members.setdefault(key, {}).setdefault(self.rank, post)
        if act != Act.BEGIN:
            self.found.collectives.append(Collective(key, whom, root, size, wait))


def whom_of(name: str) -> Dependence | None:
    """Whom ranks wait for in a call of several, None where it is none or that is not known."""
    return Dependence.ALL if base(name) in OF_ALL else dependence(name)


def acts_of(name: str) -> tuple[int, ...]:
    """What to do with the events of a routine: one `Act` for each kind of `KINDS`."""
    short, what = base(name), role(name)
    later, persistent = nonblocking(name), prepares(name)
    if what is Role.RECEIVE:
        return Act.NOTHING, Act.NOTHING if later else Act.RECEIVE, Act.RECEIVE, Act.RECEIVE
    if what is Role.SEND:
        act = Act.SYNCHRONOUS if short == "ssend" else Act.SEND
        begin = Act.NOTHING if persistent else Act.SEND if later else act
        end = act if persistent or act == Act.SYNCHRONOUS else Act.NOTHING
        return Act.NOTHING, begin, end, Act.NOTHING
    if what is Role.SENDRECV:
        return Act.NOTHING, Act.BEGIN if later else Act.SEND, Act.HALF, Act.RECEIVE
    if what is Role.PROBE:
        return Act.NOTHING, Act.NOTHING if later else Act.PROBE, Act.NOTHING, Act.NOTHING
    if what is Role.COLLECTIVE:
        begin = Act.NOTHING if persistent else Act.BEGIN if later else Act.TOGETHER
        return Act.NOTHING, begin, Act.END, Act.NOTHING
    if short in OF_ALL | UNTOLD and what is not Role.FILE:
        return Act.NOTHING, Act.COUNTED, Act.NOTHING, Act.NOTHING
    return (Act.NOTHING,) * len(KINDS)

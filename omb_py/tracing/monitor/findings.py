"""Findings in a snapshot: ranks that wait for each other, or are gone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from graphlib import CycleError, TopologicalSorter
from typing import TypeAlias

from omb_py.core.text.units import duration
from omb_py.core.text.words import some_ranks
from omb_py.tracing.monitor.snapshots import RankSnapshot, RankState, Snapshot, ThreadSnapshot
from omb_py.tracing.records.layout import ANYONE, NOBODY, WORLD, Communicator
from omb_py.tracing.records.reading import ThreadRecord
from omb_py.tracing.records.routines import (
    Dependence,
    Role,
    base,
    begins_collective,
    dependence,
    prepares,
    role,
)

TWO_SIDED = (Role.SEND, Role.RECEIVE, Role.SENDRECV, Role.PROBE, Role.COMPLETION)


class Needs(Enum):
    """The ranks that end a wait: each of several, at least one of them, or perhaps others."""

    EACH = "each"
    SOME = "some"
    OPEN = "open"


@dataclass(frozen=True)
class RankWait:
    """A rank is in ``routine`` until ``others`` do their part, as far as it ``needs`` them.

    ``anyone``: they are all ranks that could send to it.
    """

    rank: int
    routine: str
    seconds: float
    others: tuple[int, ...]
    needs: Needs = Needs.EACH
    anyone: bool = False


@dataclass(frozen=True)
class Waiting:
    """Waiting ranks, the ranks that they wait for in the end, and ranks that wait in a circle.

    ``roots`` has, for each rank that waits, those that it waits for, also through others, and that
    wait for no rank or are in a circle. In a circle each rank waits for the next, the last one for
    the first.
    """

    waits: Mapping[int, RankWait]
    roots: Mapping[int, frozenset[int]]
    circles: tuple[tuple[int, ...], ...]

    def chain(self, rank: int) -> list[int]:
        """From a rank to one that all this comes from, each waiting for the next."""
        found = [rank]
        roots = self.roots.get(rank, frozenset())
        while found[-1] not in roots and found[-1] in self.waits:
            others = self.waits[found[-1]].others
            found.append(min(others, key=lambda one: (one in roots, one)))
        return found


def waiting(snapshot: Snapshot, min_wait_s: float, stale_after_s: float) -> Waiting:
    """Return the ranks that have waited for others for longer than ``min_wait_s``.

    A rank that is in a collective call waits for those that have begun fewer of them on its
    communicator; one that sends, receives, probes or waits for requests, for their peers. A rank of
    which another thread is elsewhere may go on all the same.
    """
    waits = {}
    for one in snapshot.ranks:
        if one.state(stale_after_s) is RankState.RUNS:
            found = [
                RankWait(one.rank, _place(one, thread), thread.seconds, *told)
                for thread in one.living
                if thread.now.routine and thread.seconds >= min_wait_s
                if (told := awaited(one, thread.now, snapshot.ranks))[0]
            ]
            if found:  # of several threads the longest, in spite of which the others may go on
                wait = max(found, key=lambda wait: wait.seconds)
                more = len(one.living) > 1
                waits[one.rank] = replace(wait, needs=Needs.OPEN) if more else wait
    roots, circles = _traced(waits)
    return Waiting(waits, roots, circles)


def _place(one: RankSnapshot, thread: ThreadSnapshot) -> str:
    """Return the routine of a thread, with its name if the rank has others."""
    return thread.now.routine + (f" of {thread.now.name}" if len(one.living) > 1 else "")


Awaited: TypeAlias = tuple[tuple[int, ...], Needs, bool]
"""As the last fields of `RankWait`."""


def awaited(one: RankSnapshot, now: ThreadRecord, ranks: tuple[RankSnapshot, ...]) -> Awaited:
    """Return the ranks that a thread of ``one`` waits for; none if that is not known."""
    routine = now.awaited
    if begins_collective(routine) and now.communicator:
        return _late(one, now, ranks), Needs.EACH, False
    if role(routine) in TWO_SIDED:
        return _peers(one, now, ranks)
    together = dependence(routine) in (Dependence.ALL, Dependence.GROUPS)
    if not together or prepares(routine):
        return (), Needs.EACH, False
    name, key = base(routine), now.communicator.key if now.communicator else None
    members = [other for other in ranks if key is None or key in other.communicators]
    late = (m.rank for m in members if name not in (base(t.now.routine) for t in m.living))
    return tuple(late), Needs.EACH, False


def _peers(one: RankSnapshot, now: ThreadRecord, ranks: tuple[RankSnapshot, ...]) -> Awaited:
    """Return the other sides of messages; requests of different kinds may complete each other."""
    there, named = {other.rank for other in ranks}, set(now.peers) - {ANYONE}
    anyone = ANYONE in now.peers
    if anyone and now.communicator:
        members = begun_by(now.communicator, ranks)
        named |= (
            (members.keys() - {one.rank}) if len(members) == now.communicator.size else {NOBODY}
        )
    mixed = role(now.awaited) is Role.COMPLETION or (anyone and not now.communicator)
    needs = Needs.SOME if len(named) > 1 else Needs.EACH
    others = tuple(sorted(named & there - {one.rank}))
    return others, Needs.OPEN if mixed or named - set(others) else needs, anyone


def _late(one: RankSnapshot, now: ThreadRecord, ranks: tuple[RankSnapshot, ...]) -> tuple[int, ...]:
    """Return the ranks that a collective call needs and that have not begun it."""
    assert now.communicator is not None
    mine, root = now.collectives, now.peer
    begun = begun_by(now.communicator, ranks)
    late = tuple(rank for rank, calls in begun.items() if rank != one.rank and calls < mine)
    needs = dependence(now.awaited)
    if needs is Dependence.LOWER:
        return tuple(rank for rank in late if rank < one.rank)
    # What comes from the root may come through others that are late.
    if needs in (Dependence.ROOT, Dependence.AT_ROOT) and root != NOBODY and root in late:
        return (root,)
    return late


def begun_by(communicator: Communicator, ranks: tuple[RankSnapshot, ...]) -> dict[int, int]:
    """Return how many collective calls each of its ranks has begun on a communicator.

    From C a rank has it in its record only from its first call on. Ranks without it count as
    members if their number is exactly the number of missing members.
    """
    key = communicator.key
    begun = {one.rank: one.collectives[key] for one in ranks if key in one.collectives}
    others = [one.rank for one in ranks if key not in one.collectives]
    if key == WORLD or len(begun) + len(others) == communicator.size:
        begun |= dict.fromkeys(others, 0)
    return dict(sorted(begun.items()))


def _stuck(waits: Mapping[int, RankWait]) -> set[int]:
    """Return the ranks that wait for others of which none can go on."""
    stuck, before = {rank for rank, wait in waits.items() if wait.needs is not Needs.OPEN}, -1
    while len(stuck) != before:
        before = len(stuck)
        for rank in [*sorted(stuck), *sorted(stuck, reverse=True)]:
            some = all if waits[rank].needs is Needs.SOME else any
            if not some(other in stuck for other in waits[rank].others):
                stuck.discard(rank)
    return stuck


def _traced(
    waits: Mapping[int, RankWait],
) -> tuple[dict[int, frozenset[int]], tuple[tuple[int, ...], ...]]:
    """Whom each waits for in the end, and circles; waits for one of several ranks lead no further,
    unless none of these can go on."""
    stuck, graph = _stuck(waits), {}
    for rank, wait in waits.items():
        inside = tuple(other for other in wait.others if other in stuck)
        some = inside[:1] if rank in stuck else ()
        graph[rank] = (inside or wait.others) if wait.needs is Needs.EACH else some
    direct = {rank: frozenset(waits[rank].others) for rank, others in graph.items() if not others}
    circles: list[tuple[int, ...]] = []
    while True:
        try:
            order = list(TopologicalSorter(graph).static_order())
            break
        except CycleError as error:
            circle = error.args[1][:0:-1]  # each is one that the next in the list waits for
            first = circle.index(min(circle))
            circles.append((*circle[first:], *circle[:first]))
            graph |= dict.fromkeys(circle, ())
    ends: dict[int, frozenset[int]] = {}
    for rank in order:
        others = graph.get(rank, ())
        ends[rank] = frozenset().union(*(ends[o] for o in others)) if others else frozenset([rank])
    return {rank: ends[rank] for rank in graph if graph[rank]} | direct, tuple(circles)


GONE = {
    RankState.ENDED: "has ended",
    RankState.KILLED: "was killed",
    RankState.STOPPED: "is stopped",
    RankState.SILENT: "was not heard of",
}
"""Words for ranks that others wait for in vain."""

LONGEST_CHAIN = 12


class Concern(Enum):
    """The subject of a finding, the gravest first."""

    DEADLOCK = "deadlock"
    MISMATCH = "mismatch"
    KILLED = "killed"
    STOPPED = "stopped"
    SILENT = "silent"
    WAITING = "waiting"
    MISSING = "missing"
    ENDED = "ended"


@dataclass(frozen=True)
class MonitorFinding:
    """A sentence, with the ``ranks`` that it is about and those that are ``waiting`` for them."""

    concern: Concern
    ranks: tuple[int, ...]
    waiting: tuple[int, ...]
    text: str


def findings(snapshot: Snapshot, min_wait_s: float, stale_after_s: float) -> list[MonitorFinding]:
    """Return all findings, the gravest first."""
    found = waiting(snapshot, min_wait_s, stale_after_s)
    said = [
        *circles(found),
        *mismatches(snapshot, min_wait_s, stale_after_s),
        *states(snapshot, stale_after_s),
        *held_up(snapshot, found, stale_after_s),
    ]
    order = list(Concern)
    return sorted(said, key=lambda one: order.index(one.concern))


def circles(found: Waiting) -> Iterator[MonitorFinding]:
    """Yield ranks that wait for each other."""
    for circle in found.circles:
        inside = set(circle)
        steps = [found.waits[rank] for rank in circle[:LONGEST_CHAIN]]
        after = [*circle[1:], circle[0]]
        words = [
            f"{wait.rank} waits in {wait.routine} for {'any rank' if wait.anyone else other}"
            for wait, other in zip(steps, after, strict=False)
        ]
        if len(circle) > LONGEST_CHAIN:
            words.append("and so on")
        behind = tuple(r for r, roots in found.roots.items() if roots & inside and r not in inside)
        more = f"; {some_ranks(behind)} wait{'s' if len(behind) == 1 else ''} for them"
        text = f"possible deadlock of {some_ranks(circle)}: {', '.join(words)}"
        yield MonitorFinding(Concern.DEADLOCK, circle, behind, text + (more if behind else ""))


def mismatches(
    snapshot: Snapshot, min_wait_s: float, stale_after_s: float
) -> Iterator[MonitorFinding]:
    """Yield ranks that are in different collective calls, where it should be the same."""
    calls: dict[tuple[str, int], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for one in snapshot.ranks:
        if one.state(stale_after_s) is not RankState.RUNS:
            continue
        for now in (thread.now for thread in one.living if thread.seconds >= min_wait_s):
            if now.communicator and begins_collective(now.awaited):
                calls[now.communicator.key, now.collectives][base(now.awaited)].append(one.rank)
    for (key, number), routines in calls.items():
        if len(routines) > 1:
            by_size = sorted(routines.items(), key=lambda item: len(item[1]))
            label = label_of(snapshot, key)
            words = [f"{some_ranks(ranks)} in MPI_{name.capitalize()}" for name, ranks in by_size]
            text = f"collective call {number} on {label} is not the same: {', '.join(words)}"
            rest = tuple(sorted(rank for _, ranks in by_size[1:] for rank in ranks))
            yield MonitorFinding(Concern.MISMATCH, tuple(by_size[0][1]), rest, text)


def label_of(snapshot: Snapshot, key: str) -> str:
    """Return a communicator's label."""
    found = (one.communicators[key].label for one in snapshot.ranks if key in one.communicators)
    return next(found, key)


def states(snapshot: Snapshot, stale_after_s: float) -> Iterator[MonitorFinding]:
    """Yield ranks that do not run."""
    by_state: dict[RankState, list[RankSnapshot]] = defaultdict(list)
    for one in snapshot.ranks:
        by_state[one.state(stale_after_s)].append(one)
    for one in by_state[RankState.KILLED]:
        text = f"rank {one.rank} on {one.host} was killed: {_last_seen(one)}"
        yield MonitorFinding(Concern.KILLED, (one.rank,), (), text)
    for one in by_state[RankState.STOPPED]:
        text = f"the process of rank {one.rank} on {one.host} is stopped: {_last_seen(one)}"
        yield MonitorFinding(Concern.STOPPED, (one.rank,), (), text)
    for one in by_state[RankState.SILENT]:
        text = f"rank {one.rank} on {one.host} was not heard of for {duration(one.since_update_s)}"
        yield MonitorFinding(Concern.SILENT, (one.rank,), (), text)
    if snapshot.missing:
        text = f"{some_ranks(snapshot.missing)} of {snapshot.size} have no record yet"
        text = text.replace("have", "has", 1) if len(snapshot.missing) == 1 else text
        yield MonitorFinding(Concern.MISSING, tuple(snapshot.missing), (), text)
    ended = tuple(one.rank for one in by_state[RankState.ENDED])
    if ended and len(ended) < len(snapshot.ranks):
        text = f"{some_ranks(ended)} {'has' if len(ended) == 1 else 'have'} ended"
        yield MonitorFinding(Concern.ENDED, ended, (), text)


def _last_seen(one: RankSnapshot) -> str:
    inside = " and ".join(_place(one, thread) for thread in one.living if thread.now.routine)
    where = f"in {inside}" if inside else "outside MPI"
    return f"last seen {where}, {duration(one.since_update_s)} ago"


def held_up(snapshot: Snapshot, found: Waiting, stale_after_s: float) -> Iterator[MonitorFinding]:
    """Yield ranks that wait, by those that they all wait for in the end.

    Ranks that wait in a circle, or for any rank, are left out: others find them. A rank that wrote
    nothing for ``stale_after_s`` seconds is called silent.
    """
    in_circles = {rank for circle in found.circles for rank in circle}
    groups: dict[frozenset[int], list[RankWait]] = defaultdict(list)
    for rank, roots in found.roots.items():
        if not roots & in_circles and not found.waits[rank].anyone:
            groups[roots].append(found.waits[rank])
    by_rank = {one.rank: one for one in snapshot.ranks}
    for roots, waits in sorted(groups.items(), key=lambda item: sorted(item[0])):
        ranks = tuple(sorted(wait.rank for wait in waits))
        routines = list(dict.fromkeys(wait.routine for wait in waits))
        longest = duration(max(wait.seconds for wait in waits))
        who = f"{some_ranks(ranks)} wait{'s' if len(ranks) == 1 else ''}"
        one = len(roots) > 1 and any(wait.needs is not Needs.EACH for wait in waits)
        awaited = f"{'one or more of ' * one}{some_ranks(roots)}"
        held = f"{who} in {' and '.join(routines)} ({longest}) for {awaited}"
        text = f"{held}{doing((by_rank[rank] for rank in roots), stale_after_s)}"
        chain = max((found.chain(rank) for rank in ranks), key=len)
        if 2 < len(chain) <= LONGEST_CHAIN:
            text += f"; {' for '.join(map(str, chain))}"
        yield MonitorFinding(Concern.WAITING, tuple(sorted(roots)), ranks, text)


def doing(ranks: Iterable[RankSnapshot], stale_after_s: float) -> str:
    """Return the activity of ranks that others wait for, as the end of a sentence."""
    found = []
    for one in ranks:
        state = one.state(stale_after_s)
        if state is not RankState.RUNS:
            found.append(GONE[state])
        else:
            found.append(f"is {' and '.join(_doing(one, thread) for thread in one.living)}")
    if len(found) == 1:
        return f", which {found[0]}"
    idle = all(text.startswith("is outside MPI") and " and " not in text for text in found)
    return ", which are outside MPI" if idle else ""


def _doing(one: RankSnapshot, thread: ThreadSnapshot) -> str:
    now, seconds = thread.now, duration(thread.seconds)
    peer = f" of {now.peer}" if now.peer >= 0 else ""
    idle = f" (at least {seconds})" if thread.seconds >= 1 else ""
    words = f"in {now.routine}{peer} ({seconds})" if now.routine else f"outside MPI{idle}"
    return f"{words} in {now.name}" if len(one.living) > 1 else words

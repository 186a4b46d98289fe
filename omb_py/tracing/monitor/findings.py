"""Findings in a snapshot: ranks that wait for each other, or are gone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from graphlib import CycleError, TopologicalSorter

from omb_py.core.text.units import duration
from omb_py.core.text.words import some_ranks
from omb_py.tracing.monitor.snapshots import RankSnapshot, RankState, Snapshot
from omb_py.tracing.records.layout import NOBODY, WORLD, Communicator
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


@dataclass(frozen=True)
class RankWait:
    """A rank is in ``routine`` until each of ``others`` does its part."""

    rank: int
    routine: str
    seconds: float
    others: tuple[int, ...]


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
    communicator; one that sends, receives or waits for a message, for its peer. A message from any
    source, and several requests at a time, do not show the awaited rank.
    """
    running = [one for one in snapshot.ranks if one.state(stale_after_s) is RankState.RUNS]
    by_rank = {one.rank: one for one in snapshot.ranks}
    waits = {}
    for one in running:
        if one.now.routine and one.in_call_s >= min_wait_s:
            others = awaited(one, snapshot.ranks, by_rank)
            if others:
                waits[one.rank] = RankWait(one.rank, one.now.routine, one.in_call_s, others)
    roots, circles = _traced(waits)
    return Waiting(waits, roots, circles)


def awaited(
    one: RankSnapshot, ranks: tuple[RankSnapshot, ...], by_rank: Mapping[int, RankSnapshot]
) -> tuple[int, ...]:
    """Return the ranks that ``one`` waits for; empty if that is not known."""
    now = one.now
    if begins_collective(now.routine) and now.communicator:
        return _late(one, ranks)
    if role(now.routine) in TWO_SIDED:
        return (now.peer,) if now.peer in by_rank and now.peer != one.rank else ()
    together = dependence(now.routine) in (Dependence.ALL, Dependence.GROUPS)
    if together and not prepares(now.routine):
        name = base(now.routine)
        key = now.communicator.key if now.communicator else None
        members = [other for other in ranks if key is None or key in other.communicators]
        return tuple(other.rank for other in members if base(other.now.routine) != name)
    return ()


def _late(one: RankSnapshot, ranks: tuple[RankSnapshot, ...]) -> tuple[int, ...]:
    """Return the ranks that a collective call needs and that have not begun it."""
    assert one.now.communicator is not None
    mine, root = one.now.collectives, one.now.peer
    begun = begun_by(one.now.communicator, ranks)
    late = tuple(rank for rank, calls in begun.items() if rank != one.rank and calls < mine)
    needs = dependence(one.now.routine)
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


def _traced(
    waits: Mapping[int, RankWait],
) -> tuple[dict[int, frozenset[int]], tuple[tuple[int, ...], ...]]:
    """Whom each waits for in the end, and circles."""
    graph = {rank: wait.others for rank, wait in waits.items()}
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
    return {rank: ends[rank] for rank in graph if graph[rank]}, tuple(circles)


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
            f"{wait.rank} waits in {wait.routine} for {other}"
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
        now = one.now
        if one.state(stale_after_s) is not RankState.RUNS or one.in_call_s < min_wait_s:
            continue
        if now.communicator and begins_collective(now.routine):
            calls[now.communicator.key, now.collectives][base(now.routine)].append(one.rank)
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
    where = f"in {one.now.routine}" if one.now.routine else "outside MPI"
    return f"last seen {where}, {duration(one.since_update_s)} ago"


def held_up(snapshot: Snapshot, found: Waiting, stale_after_s: float) -> Iterator[MonitorFinding]:
    """Yield ranks that wait, by those that this comes from in the end."""
    in_circles = {rank for circle in found.circles for rank in circle}
    groups: dict[frozenset[int], list[RankWait]] = defaultdict(list)
    for rank, roots in found.roots.items():
        if not roots & in_circles:
            groups[roots].append(found.waits[rank])
    by_rank = {one.rank: one for one in snapshot.ranks}
    for roots, waits in sorted(groups.items(), key=lambda item: sorted(item[0])):
        ranks = tuple(sorted(wait.rank for wait in waits))
        routines = list(dict.fromkeys(wait.routine for wait in waits))
        longest = duration(max(wait.seconds for wait in waits))
        who = f"{some_ranks(ranks)} wait{'s' if len(ranks) == 1 else ''}"
        held = f"{who} in {' and '.join(routines)} ({longest}) for {some_ranks(roots)}"
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
        elif one.now.routine:
            peer = f" of {one.now.peer}" if one.now.peer >= 0 else ""
            found.append(f"is in {one.now.routine}{peer} ({duration(one.in_call_s)})")
        else:
            idle = f" (at least {duration(one.idle_s)})" if one.idle_s >= 1 else ""
            found.append(f"is outside MPI{idle}")
    if len(found) == 1:
        return f", which {found[0]}"
    return ", which are outside MPI" if set(found) == {"is outside MPI"} else ""

"""Who waits for whom, as far as that follows from the routines that ranks are in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

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
    """Who waits for whom, whom that comes from in the end, and ranks that wait in a circle.

    ``roots`` has, for each rank that waits, those it waits for through others that wait for
    nobody, or that are in a circle. In a circle each rank waits for the next, the last one for the
    first.
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
    """Who has waited for whom for longer than ``min_wait_s``.

    A rank that is in a collective call waits for those that have begun fewer of them on its
    communicator; one that sends, receives or waits for a message, for its peer. A message from
    anybody, and several requests at a time, say nothing of whom.
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
    """The ranks that ``one`` waits for; empty where that is not known."""
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
    """Those that have not begun the collective call that a rank is in, as far as it needs them."""
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
    """How many collective calls each of its ranks has begun on a communicator.

    From C a rank has it in its record only from its first call on. Ranks without it are taken for
    members where there are just as many of them as there is need for.
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

"""Who waits for whom in a recorded run, as work for the replay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from omb_py.tracing.efficiency.event_matching import (
    MatchedCollective,
    MatchedEvents,
    Place,
    match_events,
)
from omb_py.tracing.efficiency.intervals import BEFORE, Intervals
from omb_py.tracing.efficiency.replay import Work
from omb_py.tracing.records.routines import Dependence


@dataclass(frozen=True)
class DependencyGraph:
    """All work, and the gates by the number of their posts.

    ``kept`` waits are replayed. ``unmatched`` ones are not, since the other side was not recorded,
    nor ``contradictory`` ones, which ended before what they should have waited for began (as when
    clocks are wrong, or a collective call of no bytes). ``unknown`` are calls of which it is not
    known whom they wait for, by routine.
    """

    work: list[Work]
    gates: list[int]
    kept: int
    unmatched: int
    contradictory: int
    unknown: Counter[str]


def dependency_graph(every: Sequence[Intervals]) -> DependencyGraph:
    """The work of all ranks of a run, in the order of ``every``."""
    return _Gates(every, match_events(every)).made()


class _Gates:
    """Makes gates of what was found."""

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
        """The whole graph."""
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
        """Wait at a place for what begins at another one."""
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
        """Whether what is waited for began before the wait ended, as the clocks have it."""
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

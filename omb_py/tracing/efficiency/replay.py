"""A recorded run on an ideal network: recorded computation, and messages that take no time.

This is the simulation behind POP's serialisation and transfer efficiency (Dimemas with zero latency
and infinite bandwidth). It is independent of MPI: a rank computes, opens gates, and waits for
gates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class Work:
    """The work of one rank, as steps.

    Before step ``i`` it has computed ``computed[i]`` ns in all; at the step it posts to the gates
    ``posts[i]``, then it waits until the gates ``waits[i]`` are open. ``whole`` is its whole
    computation, ``start`` its beginning (ns). ``recorded`` are the times at which steps ended in
    the recording: they decide which wait is given up when all ranks wait.
    """

    start: int
    whole: int
    computed: list[int] = field(default_factory=list)
    posts: list[Sequence[int]] = field(default_factory=list)
    waits: list[Sequence[int]] = field(default_factory=list)
    recorded: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Ideal:
    """The result of a run on the ideal network.

    ``ends`` are the times (ns) at which the ranks ended. ``given_up`` waits were for gates that no
    rank could open any more.
    """

    ends: tuple[int, ...]
    given_up: int


def replay(ranks: Sequence[Work], gates: Sequence[int]) -> Ideal:
    """Run the work of all ranks; gate ``g`` opens with its ``gates[g]``-th post.

    A rank that has waited goes on at the time of the gates' last post, or at once if it came
    later. Ends whatever the gates are: when all ranks wait, the wait that ended first in the
    recording is given up.
    """
    missing = list(gates)
    opened = [0] * len(missing)
    waiting: list[list[int]] = [[] for _ in missing]
    clocks = [work.start for work in ranks]
    places = [0] * len(ranks)
    posted = [False] * len(ranks)
    blocked: dict[int, int] = {}
    ready = list(range(len(ranks)))
    given_up = 0

    while ready or blocked:
        if not ready:
            first = min(blocked, key=lambda rank: (ranks[rank].recorded[places[rank]], rank))
            gate = blocked.pop(first)
            waiting[gate].remove(first)
            waits = ranks[first].waits
            waits[places[first]] = [one for one in waits[places[first]] if one != gate]
            given_up += 1
            ready.append(first)
        rank = ready.pop()
        work, clock, place = ranks[rank], clocks[rank], places[rank]
        computed, posts, waits = work.computed, work.posts, work.waits
        steps = len(computed)
        while place < steps:
            if not posted[rank]:
                clock += computed[place] - (computed[place - 1] if place else 0)
                for gate in posts[place]:
                    opened[gate] = max(opened[gate], clock)
                    missing[gate] -= 1
                    if missing[gate] == 0:
                        for woken in waiting[gate]:
                            del blocked[woken]
                            ready.append(woken)
                        waiting[gate].clear()
                posted[rank] = True
            closed = next((gate for gate in waits[place] if missing[gate] > 0), None)
            if closed is not None:
                waiting[closed].append(rank)
                blocked[rank] = closed
                break
            for gate in waits[place]:
                if opened[gate] > clock:
                    clock = opened[gate]
            posted[rank] = False
            place += 1
        else:
            clock += work.whole - (computed[-1] if steps else 0)
        clocks[rank], places[rank] = clock, place
    return Ideal(tuple(clocks), given_up)

"""How often a rank has called what, and how long it took: counted in memory, reported as cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf
from typing import Any

from omb_py.tracing.records.layout import size_bin

MAX_TALLIES = 20_000
"""Tallies of distinct sizes and peers that are kept at a time; then they are put together."""

FOREVER = 1 << 62


class Tally:
    """Calls that are alike: how many, and the ticks that they took in all, at least and at most.

    ``routine``, ``communicator`` (numbers of names), ``peer`` (the rank in MPI_COMM_WORLD) and
    ``nbytes`` do not change. A call is counted without a call of Python in between, so that no
    other thread can come between under CPython's lock.
    """

    __slots__ = ("calls", "communicator", "max", "min", "nbytes", "peer", "routine", "ticks")

    calls: int
    ticks: float
    min: float
    max: float

    def __init__(self, routine: int, communicator: int, peer: int, nbytes: int) -> None:
        self.routine = routine
        self.communicator = communicator
        self.peer = peer
        self.nbytes = nbytes
        self.reset()

    def reset(self) -> None:
        """Forget all calls."""
        self.calls = 0
        self.ticks = 0
        self.min = inf
        self.max = 0

    def update_range(self, ticks: float) -> None:
        """Let ``min`` and ``max`` include what a call took."""
        self.min = min(self.min, ticks)
        self.max = max(self.max, ticks)


Cache = dict[Any, dict[Any, dict[Any, Tally]]]
"""Tallies of a routine by communicator, peer and bytes as the program gave them."""

MISS = (KeyError, AttributeError, TypeError)
"""What a look-up in a cache raises when the tally is not there, or the bytes are not easy to tell.
"""

Key = tuple[int, int, int, int, int]
"""Routine, communicator, the peer's rank in it, bytes, site."""

Cell = tuple[int, ...]
"""What a cell is about: routine, communicator, the peer's rank in the world, bin, site."""


class Tallies:
    """All tallies of a rank."""

    def __init__(self, world_rank: Callable[[int, int], int], tick: float) -> None:
        """``world_rank(communicator, peer)`` is a peer's rank in the world; ``tick`` is in ns."""
        self._world_rank = world_rank
        self._tick = tick
        self._tallies: dict[Key, Tally] = {}
        self._caches: list[Cache] = []
        self._folded: dict[Cell, list[int]] = {}
        self._kept: dict[Cell, list[int]] | None = None

    def cache(self) -> Cache:
        """A new cache, which is emptied when tallies are put together."""
        cache: Cache = {}
        self._caches.append(cache)
        return cache

    def tally(self, number: int, communicator: int, peer: int, nbytes: int, site: int = 0) -> Tally:
        """The tally of calls of a routine that are alike, a new one if there is none yet."""
        key = number, communicator, peer, nbytes, site
        tally = self._tallies.get(key)
        if tally is None:
            if len(self._tallies) >= MAX_TALLIES:
                self._fold()
            world = self._world_rank(communicator, peer)
            new = Tally(number, communicator, world, nbytes)
            tally = self._tallies.setdefault(key, new)
        return tally

    def count(
        self, number: int, communicator: int, peer: int, nbytes: int, site: int, ticks: float
    ) -> None:
        """Count a call that took ``ticks``."""
        tally = self._tallies.get((number, communicator, peer, nbytes, site))
        if tally is None:
            tally = self.tally(number, communicator, peer, nbytes, site)
        tally.calls += 1
        tally.ticks += ticks
        if ticks < tally.min or ticks > tally.max:
            tally.update_range(ticks)

    @property
    def paused(self) -> bool:
        """Whether what is counted will be forgotten."""
        return self._kept is not None

    def pause(self) -> None:
        """Forget what is counted from now on until `resume`."""
        self._kept = self._totals()

    def resume(self) -> None:
        """Go on from where `pause` was called."""
        assert self._kept is not None
        for tally in list(self._tallies.values()):
            tally.reset()
        self._folded, self._kept = self._kept, None

    def cells(self) -> list[tuple[int, ...]]:
        """All that was counted, as rows of `layout.CELL`."""
        totals = self._totals() if self._kept is None else self._kept
        return [(*key, 0, *values) for key, values in totals.items()]

    def _totals(self) -> dict[Cell, list[int]]:
        """Calls, bytes, ns, minimum and maximum ns of each cell."""
        totals = {key: list(values) for key, values in list(self._folded.items())}
        self._add(list(self._tallies.items()), totals)
        return totals

    def _fold(self) -> None:
        """Put tallies together whose sizes are in the same bin."""
        tallies = list(self._tallies.items())
        self._tallies.clear()
        for cache in self._caches:
            cache.clear()
        self._add(tallies, self._folded)

    def _add(self, tallies: Iterable[tuple[Key, Tally]], totals: dict[Cell, list[int]]) -> None:
        tick = self._tick
        for (routine, communicator, _, nbytes, site), tally in tallies:
            calls, ticks, shortest, longest = tally.calls, tally.ticks, tally.min, tally.max
            if calls:
                key = routine, communicator, tally.peer, size_bin(nbytes), site
                total = totals.setdefault(key, [0, 0, 0, FOREVER, 0])
                total[0] += calls
                total[1] += calls * max(0, nbytes)
                total[2] += round(ticks * tick)
                total[3] = min(total[3], round(shortest * tick))
                total[4] = max(total[4], round(longest * tick))


def remember(cache: Cache, tally: Tally, communicator: int, peer: Any, nbytes: Any) -> Tally:
    """Let a tally be found by these from now on, unless ``nbytes`` is no number of bytes."""
    if isinstance(nbytes, int):
        cache.setdefault(communicator, {}).setdefault(peer, {})[nbytes] = tally
    return tally

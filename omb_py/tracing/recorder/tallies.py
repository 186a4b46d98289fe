"""How often a rank has called what, and how long it took: counted in memory, told in cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf
from typing import Any

from omb_py.tracing.records.layout import size_bin

MOST = 20_000
"""Tallies of distinct sizes and peers that are kept at a time; then they are put together."""

FOREVER = 1 << 62

Tally = list[Any]
"""Of calls that are alike: how many, the ticks they took, the least and the greatest of them, then
what does not change: bytes, communicator, the peer's rank in MPI_COMM_WORLD. It is changed without
a call in between, so that no other thread can come between under CPython's lock."""

Known = dict[Any, dict[Any, dict[Any, Tally]]]
"""Tallies of a routine by communicator, peer and bytes as the program gave them."""

MET_FIRST = (KeyError, AttributeError, TypeError)
"""What looking for a tally raises when there is none yet, or the bytes are not easy to tell."""

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
        self._ways: list[Known] = []
        self._folded: dict[Cell, list[int]] = {}
        self._kept: dict[Cell, list[int]] | None = None

    def known(self) -> Known:
        """Room for a quicker way to tallies, which is emptied when they are put together."""
        known: Known = {}
        self._ways.append(known)
        return known

    def tally(self, number: int, communicator: int, peer: int, nbytes: int, site: int = 0) -> Tally:
        """The tally of calls of a routine that are alike, a new one if there is none yet."""
        key = number, communicator, peer, nbytes, site
        found = self._tallies.get(key)
        if found is None:
            if len(self._tallies) >= MOST:
                self._fold()
            world = self._world_rank(communicator, peer)
            new = [0, 0, inf, 0, nbytes, communicator, world]
            found = self._tallies.setdefault(key, new)
        return found

    def count(
        self, number: int, communicator: int, peer: int, nbytes: int, site: int, spent: float
    ) -> None:
        """Count a call that took ``spent`` ticks."""
        tally = self.tally(number, communicator, peer, nbytes, site)
        tally[0] += 1
        tally[1] += spent
        if not tally[2] <= spent <= tally[3]:
            widen(tally, spent)

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
            tally[:4] = 0, 0, inf, 0
        self._folded, self._kept = self._kept, None

    def cells(self) -> list[tuple[int, ...]]:
        """All that was counted, as rows of `layout.CELL`."""
        totals = self._totals() if self._kept is None else self._kept
        return [(*key, 0, *values) for key, values in totals.items()]

    def _totals(self) -> dict[Cell, list[int]]:
        """Calls, bytes, ns, least and greatest ns of each cell."""
        totals = {key: list(values) for key, values in list(self._folded.items())}
        self._add(list(self._tallies.items()), totals)
        return totals

    def _fold(self) -> None:
        """Put tallies together whose sizes are in the same bin."""
        tallies = list(self._tallies.items())
        self._tallies.clear()
        for known in self._ways:
            known.clear()
        self._add(tallies, self._folded)

    def _add(self, tallies: Iterable[tuple[Key, Tally]], totals: dict[Cell, list[int]]) -> None:
        tick = self._tick
        for (routine, communicator, _, nbytes, site), tally in tallies:
            calls, spent, least, greatest = tally[:4]
            if calls:
                key = routine, communicator, tally[-1], size_bin(nbytes), site
                into = totals.setdefault(key, [0, 0, 0, FOREVER, 0])
                into[0] += calls
                into[1] += calls * max(0, nbytes)
                into[2] += round(spent * tick)
                into[3] = min(into[3], round(least * tick))
                into[4] = max(into[4], round(greatest * tick))


def widen(tally: Tally, spent: float) -> None:
    """Let the least and the greatest of a tally include what a call took."""
    tally[2] = min(tally[2], spent)
    tally[3] = max(tally[3], spent)


def keep(known: Known, tally: Tally, communicator: int, peer: Any, buf: Any) -> Tally:
    """Let a tally be found by these arguments from now on, where they tell their bytes."""
    nbytes = getattr(buf, "nbytes", None)
    if isinstance(nbytes, int):
        known.setdefault(communicator, {}).setdefault(peer, {})[nbytes] = tally
    return tally

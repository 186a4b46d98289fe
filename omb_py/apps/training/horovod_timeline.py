"""What becomes of each gradient, said to whoever records a timeline, in the words of Horovod's.

Every gradient has a lane by its name. On it are NEGOTIATE_ALLREDUCE, from where the gradient is
ready on this rank to the end of the cycle in which all ranks agree on it, and ALLREDUCE with what
happens in it. Horovod's timeline has WAIT_FOR_DATA, too, which there is nothing of here: gradients
are on the device when they are said to be ready.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import monotonic_ns

from omb_py.apps.training.fusion import Plan
from omb_py.tracing.recorder import annotation

NEGOTIATE = "NEGOTIATE_ALLREDUCE"
ALLREDUCE = "ALLREDUCE"
WAIT_FOR_OTHERS = "WAIT_FOR_OTHER_TENSOR_DATA"
QUEUE = "QUEUE"
PACK = "MEMCPY_IN_FUSION_BUFFER"
UNPACK = "MEMCPY_OUT_FUSION_BUFFER"
CYCLE = "CYCLE_START"


class Activities:
    """Says nothing, for when nobody records.

    Gradients are counted in the order of their arrival.
    """

    def ready(self, place: int) -> None:
        """A gradient is complete on this rank."""

    def asked(self, rank: int, places: Iterable[int]) -> None:
        """This rank has learned that another one, or itself, has these gradients."""

    def cycle(self) -> None:
        """A cycle of negotiation begins."""

    def enter(self, begin: int, end: int, activity: str) -> None:
        """From now on this is done with the gradients from ``begin`` to ``end``; empty: no name."""

    def leave(self, begin: int, end: int) -> None:
        """These gradients are averaged."""


class Recorded(Activities):
    """Says it as slices and marks; see `omb_py.tracing.recorder.annotation`."""

    def __init__(self, names: Sequence[str], sizes: Sequence[int], plan: Plan | None) -> None:
        """``names`` and bytes of gradients; ``plan`` are the buckets where ranks do not negotiate.

        Then a gradient waits for the others of its bucket instead.
        """
        self._names = names
        self._sizes = sizes
        self._bucket = {place: bucket for bucket in plan or () for place in range(*bucket)}
        self._there = dict.fromkeys(plan or (), 0)
        self._doing = [""] * len(names)
        self._since = [0] * len(names)
        self._began = [0] * len(names)

    def ready(self, place: int) -> None:
        now = monotonic_ns()
        self._since[place] = self._began[place] = now
        if place not in self._bucket:
            self._doing[place] = NEGOTIATE
            return
        self._doing[place] = WAIT_FOR_OTHERS
        begin, end = bucket = self._bucket[place]
        self._there[bucket] += 1
        if self._there[bucket] == end - begin:
            self._there[bucket] = 0
            self._doing[place] = ""  # the last one waits for none
            for one in range(begin, end):
                self._change(one, QUEUE, now)

    def asked(self, rank: int, places: Iterable[int]) -> None:
        now = monotonic_ns()
        for place in places:
            annotation.instant(str(rank), now, self._names[place])

    def cycle(self) -> None:
        annotation.instant(CYCLE, monotonic_ns())

    def enter(self, begin: int, end: int, activity: str) -> None:
        now = monotonic_ns()
        for place in range(begin, end):
            self._change(place, activity, now)

    def leave(self, begin: int, end: int) -> None:
        now = monotonic_ns()
        for place in range(begin, end):
            self._change(place, "", now)
            annotation.span(
                ALLREDUCE, self._began[place], now, self._names[place], self._sizes[place]
            )

    def _change(self, place: int, activity: str, now: int) -> None:
        """End what is done with a gradient, and begin something else."""
        doing = self._doing[place]
        if doing:
            annotation.span(doing, self._since[place], now, self._names[place])
        if doing == NEGOTIATE:
            self._began[place] = now
        self._doing[place] = activity
        self._since[place] = now


SILENT = Activities()


def activities_of(names: Sequence[str], sizes: Sequence[int], plan: Plan | None) -> Activities:
    """Those of a training, as in `Recorded`; whether anybody records is asked only now."""
    return Recorded(names, sizes, plan) if annotation.recording() else SILENT

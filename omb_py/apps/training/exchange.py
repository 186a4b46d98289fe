"""Gradients averaged over the ranks, as Horovod and PyTorch's DDP do it.

Gradients arrive in the order of the backward pass: the last declared one first. They travel in
buckets, packed into a buffer if there are several in one, and are summed in one of several ways
(`fusion`). Without negotiation the buckets are planned once, as by DDP.

With negotiation (`schedules`) there is a cycle whenever ``cycle_time`` has passed since the last
one began, also while no gradient is ready. Gradients that all ranks have are then fused and summed;
others come with a later cycle. Horovod's cycles are made by a thread in the background. Here the
thread that computes makes them, when a gradient is reported ready or time has passed, and then also
those that it has missed; a rank that comes early waits in the cycle for the others, as Horovod's
thread would, but does not compute meanwhile. When its backward pass is over, a rank goes on making
cycles until all gradients are agreed on. This cannot block: for any clocks, all ranks make the same
sequence of collectives, since only the outcome of a cycle decides what follows it, and the cycle in
which the last gradient is agreed on ends the step on all ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from omb_py.apps import Detail
from omb_py.apps.runtime.team import Array, Team
from omb_py.apps.training import MILLISECOND, Training
from omb_py.apps.training.fusion import FusedBuffers, Summing, elements, plan_of, summing_of
from omb_py.apps.training.schedules import Cached, Negotiated, Planned, Schedule
from omb_py.core.datatypes import HALF, Datatype, find_types
from omb_py.core.errors import UsageError
from omb_py.core.options import LIBRARY
from omb_py.core.text.numbers import MEBIBYTE


class GradientExchange:
    """Averages gradients over the ranks of a team; one rank makes no calls.

    Raises `UsageError` for options that exclude each other.
    """

    def __init__(self, team: Team, gradients: Sequence[Array], training: Training) -> None:
        """``gradients`` are of float32, in the order of their declaration; collective."""
        check(training)
        self._there = [False] * len(gradients)
        self._arrived = 0
        self._steps = 0
        self._bytes = elements(gradients) * datatype_of(training).itemsize
        self._summing: Summing | None = None
        self._schedule = Schedule()
        if team.ranks > 1:
            self._schedule = self._scheduled(team, gradients[::-1], training)

    def begin(self) -> None:
        """Begin training, before any gradient is ready."""
        self._steps = 0
        self._schedule.begin()

    def ready(self, tensor: int) -> None:
        """Note that gradient number ``tensor`` is complete."""
        there = self._there
        there[-1 - tensor] = True
        while self._arrived < len(there) and there[self._arrived]:
            self._arrived += 1
        self._schedule.advance(self._arrived)

    def tick(self) -> None:
        """Advance: time has passed."""
        self._schedule.advance(self._arrived)

    def finish(self) -> None:
        """Return when all gradients of a step are averaged."""
        self._schedule.finish()
        self._there = [False] * len(self._there)
        self._arrived = 0
        self._steps += 1

    @property
    def negotiating(self) -> float:
        """The seconds of negotiations since the beginning."""
        return self._schedule.negotiating

    def parts(self) -> list[Detail]:
        """Return details of the steps since the beginning."""
        count = len(self._there)
        size = Detail(f"Gradients of a step: {count}", value=self._bytes / MEBIBYTE, unit="MiB")
        found = [size, *self._schedule.parts(max(1, self._steps))]
        return found + (self._summing.parts() if self._summing else [])

    def _scheduled(self, team: Team, arriving: Sequence[Array], training: Training) -> Schedule:
        """Return the schedule that sends the gradients, which are in the order of their arrival."""
        datatype = datatype_of(training)
        counts = [gradient.data.size for gradient in arriving]
        sizes = [count * datatype.itemsize for count in counts]
        packed = room(sizes, training) // datatype.itemsize
        buffer = team.array(packed, datatype) if packed else None
        self._summing = summing_of(team, training, max(packed, *counts), datatype)
        plan = plan_of(training, sizes) if training.negotiation == "none" else None
        fused = FusedBuffers(team, arriving, self._summing, buffer, training.overlap)
        if plan is not None:
            return Planned(fused, plan, training.overlap)
        negotiation = Cached(team.beside_device(), len(arriving))
        fuse, pause = partial(plan_of, training), training.cycle_time * MILLISECOND
        return Negotiated(fused, sizes, fuse, negotiation, pause, team.phases)


def datatype_of(training: Training) -> Datatype:
    """Return the type in which gradients travel, and in which limits of buckets are counted."""
    return HALF if training.compression == "fp16" else find_types(("float32",))[0]


def room(sizes: Sequence[int], training: Training) -> int:
    """Return the bytes of the buffer that packs gradients of these sizes; 0 without packing.

    That is enough for the largest bucket, or for all of them if many are under way.
    """
    half = training.compression == "fp16"
    if training.fusion == 0 and not half:
        return 0
    if training.overlap:
        return sum(sizes)
    if training.negotiation != "none":
        return min(sum(sizes), max(training.fusion, max(sizes) if half else 0))
    buckets = [sizes[slice(*bucket)] for bucket in plan_of(training, sizes)]
    return max((sum(bucket) for bucket in buckets if half or len(bucket) > 1), default=0)


def check(training: Training) -> None:
    """Raise `UsageError` for options of an exchange that exclude each other."""
    if training.overlap and training.hierarchical:
        raise UsageError(
            "--hierarchical has several calls, one after the other: leave out --overlap"
        )
    if training.allreduce != LIBRARY and (training.overlap or training.hierarchical):
        other = "overlap" if training.overlap else "hierarchical"
        raise UsageError(
            f"--allreduce {training.allreduce} is many calls, one after the other: leave out "
            f"--{other}, or use --allreduce {LIBRARY}"
        )
    if training.buckets == "ddp" and training.negotiation != "none":
        raise UsageError("DDP does not negotiate: leave out --negotiation, or --buckets ddp")
    if training.buckets == "ddp" and training.fusion == 0:
        raise UsageError("--fusion 0 leaves no buckets: leave out --buckets")

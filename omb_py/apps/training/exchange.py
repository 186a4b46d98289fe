"""Gradients averaged over the ranks, as Horovod and PyTorch's DDP do it.

Gradients arrive in the order of the backward pass: the last declared one first. They travel in
buckets, packed into a buffer if there are several in one, and are summed in one of several ways
(`fusion`). The buckets are planned once, as by DDP.
"""

from __future__ import annotations

from collections.abc import Sequence

from omb_py.apps import Detail
from omb_py.apps.runtime.team import Array, Team
from omb_py.apps.training import Training
from omb_py.apps.training.fusion import (
    PACKING,
    FusedBuffers,
    Plan,
    Summing,
    elements,
    plan_of,
    summing_of,
)
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
        self._sent = 0
        self._steps = 0
        self._early = training.overlap
        self._plan: Plan = []
        self._summing: Summing | None = None
        self._fused: FusedBuffers | None = None
        datatype = datatype_of(training)
        self._bytes = elements(gradients) * datatype.itemsize
        if team.ranks == 1:
            return
        arriving = gradients[::-1]
        counts = [gradient.data.size for gradient in arriving]
        sizes = [count * datatype.itemsize for count in counts]
        packed = room(sizes, training) // datatype.itemsize
        buffer = team.array(packed, datatype) if packed else None
        self._summing = summing_of(team, training, max(packed, *counts), datatype)
        self._fused = FusedBuffers(team, arriving, self._summing, buffer, training.overlap)
        self._plan = plan_of(training, sizes)
        for bucket in self._plan:
            self._fused.of(*bucket)

    def begin(self) -> None:
        """Begin training, before any gradient is ready."""
        self._steps = 0
        if self._fused is not None:
            self._fused.begin()

    def ready(self, tensor: int) -> None:
        """Note that gradient number ``tensor`` is complete; with overlap, send complete buckets."""
        there = self._there
        there[-1 - tensor] = True
        while self._arrived < len(there) and there[self._arrived]:
            self._arrived += 1
        if self._early:
            self._send()

    def finish(self) -> None:
        """Return when all gradients of a step, which are ready now, are averaged."""
        self._arrived = len(self._there)
        self._send()
        if self._fused is not None:
            self._fused.complete()
        self._there = [False] * len(self._there)
        self._arrived = self._sent = 0
        self._steps += 1

    def parts(self) -> list[Detail]:
        """Return details of the steps since the beginning."""
        count = len(self._there)
        size = Detail(f"Gradients of a step: {count}", value=self._bytes / MEBIBYTE, unit="MiB")
        if self._fused is None or self._summing is None:
            return [size]
        buckets = Detail("Buckets of a step", value=self._fused.sent / max(1, self._steps))
        copies = Detail("Fusion copies and averaging", seconds=self._fused.seconds[PACKING])
        return [size, buckets, copies, *self._summing.parts()]

    def _send(self) -> None:
        """Send each complete bucket that has not been sent."""
        while self._sent < len(self._plan) and self._plan[self._sent][1] <= self._arrived:
            assert self._fused is not None
            self._fused.send(*self._plan[self._sent])
            self._sent += 1


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
    if training.buckets == "ddp" and training.fusion == 0:
        raise UsageError("--fusion 0 leaves no buckets: leave out --buckets")

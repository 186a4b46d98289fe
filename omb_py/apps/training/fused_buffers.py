"""Gradients that travel together: packed into a buffer, summed in one call, unpacked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from omb_py.apps.runtime.phases import Timed
from omb_py.apps.runtime.team import Array, Team
from omb_py.apps.training.summing import GradientSum, Summing
from omb_py.core.datatypes import HALF

PACKING = "packing"
"""What the seconds of packing and unpacking are kept under."""


@dataclass(frozen=True)
class FusedBuffer:
    """Gradients that travel together: what packs them, their sum, and what unpacks it."""

    packs: Sequence[Callable[[], Any]]
    sum: GradientSum
    unpacks: Sequence[Callable[[], Any]]
    packing: Timed

    def send(self) -> None:
        """Pack and start the sum."""
        if self.packs:
            with self.packing:
                for pack in self.packs:
                    pack()
        for call in self.sum.start:
            call()

    def receive(self) -> None:
        """Wait for the sum, and give each gradient the average."""
        self.sum.wait()
        with self.packing:
            for unpack in self.unpacks:
                unpack()


class FusedBuffers:
    """The fused buffer of each stretch of the arriving gradients, made when it is sent first."""

    def __init__(
        self,
        team: Team,
        gradients: Sequence[Array],
        summing: Summing,
        buffer: Array | None,
        overlap: bool,
    ) -> None:
        """``gradients`` are in the order of their arrival.

        Several of them are packed at the beginning of ``buffer``. With ``overlap`` many are under
        way at a time, and each gradient has a place of its own there. Without a buffer gradients
        travel one by one.
        """
        self.seconds = {PACKING: 0.0}
        self._packing = Timed(self.seconds, PACKING, team.buffer.wait())
        self.sent = 0
        self._xp = team.xp
        self._ranks = team.ranks
        self._gradients = gradients
        self._summing = summing
        self._buffer = buffer
        self._overlap = overlap
        self._made: dict[tuple[int, int], FusedBuffer] = {}
        self._under_way: list[FusedBuffer] = []

    def begin(self) -> None:
        """Count anew."""
        self.seconds[PACKING] = 0.0
        self.sent = 0

    def of(self, begin: int, end: int) -> FusedBuffer:
        """The fused buffer of the gradients from ``begin`` to ``end``."""
        if (begin, end) not in self._made:
            self._made[begin, end] = self._make(begin, end)
        return self._made[begin, end]

    def send(self, begin: int, end: int) -> None:
        """Send a fused buffer; it has arrived at once, or in `complete` where sending overlaps."""
        fused = self.of(begin, end)
        fused.send()
        self.sent += 1
        if self._overlap:
            self._under_way.append(fused)
        else:
            fused.receive()

    def complete(self) -> None:
        """Wait for all that is under way."""
        for fused in self._under_way:
            fused.receive()
        self._under_way.clear()

    def _make(self, begin: int, end: int) -> FusedBuffer:
        gradients, buffer = self._gradients[begin:end], self._buffer
        divide, copy, ranks = self._xp.divide, self._xp.copyto, self._ranks
        if buffer is None or (end - begin == 1 and buffer.datatype != HALF):
            (alone,) = gradients
            average = partial(divide, alone.data, ranks, alone.data)
            return FusedBuffer((), self._summing.sum(alone), (average,), self._packing)
        start = elements(self._gradients[:begin]) if self._overlap else 0
        place = buffer.rows(start, start + elements(gradients))
        packs, unpacks, start = [], [], 0
        for gradient in gradients:
            flat = gradient.data.reshape(-1)
            packed = place.data[start : start + flat.size]
            start += flat.size
            if buffer.datatype == HALF:
                # Divided before, a sum overflows only where the average does.
                packs.append(partial(self._xp.multiply, flat, 1 / ranks, packed))
                unpacks.append(partial(copy, flat, packed))
            else:
                packs.append(partial(copy, packed, flat))
                unpacks.append(partial(divide, packed, ranks, flat))
        return FusedBuffer(packs, self._summing.sum(place), unpacks, self._packing)


def elements(gradients: Sequence[Array]) -> int:
    """The numbers of several gradients together."""
    return sum(gradient.data.size for gradient in gradients)

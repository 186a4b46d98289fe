"""The passes of a pipeline: batches, the order of micro-batches, what goes between stages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from omb_py.apps import share
from omb_py.apps.runtime.phases import Phase
from omb_py.apps.runtime.team import Team
from omb_py.apps.training.stages import Stage
from omb_py.bindings import BoundCall
from omb_py.core.calls import Call, Slot

Range: TypeAlias = tuple[int, int]
"""The begin and the end of a range."""


def batches(samples: int, batch: int) -> list[Range]:
    """Return the batches of an epoch; the last one may be smaller."""
    return [(start, min(start + batch, samples)) for start in range(0, samples, batch)]


def micro_batches(samples: int, parts: int) -> list[Range]:
    """Divide samples into non-empty parts of nearly equal size."""
    parts = min(parts, samples)
    return [share(samples, parts, part) for part in range(parts)]


def batch_share(batch: Range, pipelines: int, pipeline: int, parts: int) -> list[Range]:
    """Return the micro-batches of pipeline number ``pipeline`` in a batch.

    They are counted from the first of its own samples, and are none if there are fewer samples than
    pipelines.
    """
    start, stop = batch
    begin, end = share(stop - start, pipelines, pipeline)
    return micro_batches(end - begin, parts)


@dataclass(frozen=True)
class Pass:
    """A micro-batch goes through a stage, forward or backward."""

    forward: bool
    part: int


def gpipe(stages: int, stage: int, parts: int) -> list[Pass]:
    """Return the passes of a stage: all forward, then all backward."""
    return [
        *(Pass(True, part) for part in range(parts)),
        *(Pass(False, part) for part in reversed(range(parts))),
    ]


def one_forward_one_backward(stages: int, stage: int, parts: int) -> list[Pass]:
    """Return passes: forward once for each later stage, then alternating, then the rest back."""
    ahead = min(stages - stage - 1, parts)
    found = [Pass(True, part) for part in range(ahead)]
    for part in range(parts - ahead):
        found += [Pass(True, ahead + part), Pass(False, part)]
    return found + [Pass(False, part) for part in range(parts - ahead, parts)]


SCHEDULES: dict[str, Callable[[int, int, int], list[Pass]]] = {
    "gpipe": gpipe,
    "1f1b": one_forward_one_backward,
}
"""Schedules by name of ``--schedule``: the passes of a stage, for stages and micro-batches."""


TAG = 200
"""Tag of activations and of their gradients, which go opposite ways."""


class Boundary:
    """A boundary seen from one stage: what goes to the other, and what comes from it.

    There is an array for each of ``sizes``, with so many numbers for each sample of a batch: inside
    a residual block there are two, since what goes around its layers passes as well. Each stretch
    of rows has sends and receives of its own, bound once. Sends do not block, so that two stages
    that send to each other never wait for one another; `complete` waits for them.

    Receiving counts as waiting: mostly it is, but the transfer is in it too.
    """

    def __init__(
        self,
        team: Team,
        peer: int,
        sizes: Sequence[int],
        stretches: Iterable[Range],
        dtype: str = "float32",
    ) -> None:
        """Prepare both ranks together; ``stretches`` are the first and last rows of
        micro-batches."""
        stretches = list(stretches)
        rows = max((stop for _, stop in stretches), default=1)
        self._outgoing = [team.array((rows, size), dtype) for size in sizes]
        self._incoming = [team.array((rows, size), dtype) for size in sizes]
        self._sends: dict[Range, tuple[BoundCall, BoundCall]] = {}
        self._receives: dict[Range, BoundCall] = {}
        self._under_way: list[BoundCall] = []
        for stretch in stretches:
            slots = [Slot() for _ in sizes]
            outgoing = [array.rows(*stretch).message() for array in self._outgoing]
            sends = [
                Call("isend", (message,), peer=peer, tag=TAG, slot=slot)
                for message, slot in zip(outgoing, slots, strict=True)
            ]
            incoming = [array.rows(*stretch).message() for array in self._incoming]
            receives = [Call("recv", (message,), peer=peer, tag=TAG) for message in incoming]
            waits = [Call("wait", slot=slot) for slot in slots]
            self._sends[stretch] = team.bind(*sends), team.bind(*waits)
            self._receives[stretch] = team.bind(*receives, phase=Phase.WAIT)

    def give(self, stretch: Range, stage: Stage) -> None:
        """Begin to send the other stage its rows."""
        with stage.team.computing:
            for array in self._outgoing:
                stage.write(array.data[slice(*stretch)])
        send, wait = self._sends[stretch]
        send()
        self._under_way.append(wait)

    def take(self, stretch: Range) -> None:
        """Receive rows of the other stage, which stay until the same ones are received again."""
        self._receives[stretch]()

    def complete(self) -> None:
        """Wait until all is sent."""
        for wait in self._under_way:
            wait()
        self._under_way.clear()

    def arrived(self, stretch: Range) -> Iterator[Any]:
        """Return the rows that came last."""
        return (array.data[slice(*stretch)] for array in self._incoming)

"""What passes between two stages of a pipeline: activations one way, their gradients the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from omb_py.apps.runtime.phases import Phase
from omb_py.apps.runtime.team import Team
from omb_py.apps.training.batches import Range
from omb_py.apps.training.stages import Stage
from omb_py.bindings import BoundCall
from omb_py.core.calls import Call, Slot

TAG = 200
"""Of activations and of their gradients, which go opposite ways."""


class Boundary:
    """A boundary seen from one stage: what goes to the other, and what comes from it.

    There is an array for each of ``sizes``, with so many numbers for each sample of a batch: inside
    a residual block there are two, since what goes around its layers passes as well. Each stretch
    of rows has sends and receives of its own, bound once. Sends do not block, so that two stages
    that send to each other never wait for one another; `complete` waits for them.

    Receiving counts as waiting: mostly it is, but the transfer is in it too.
    """

    def __init__(
        self, team: Team, peer: int, sizes: Sequence[int], stretches: Iterable[Range]
    ) -> None:
        """Made on both ranks; ``stretches`` are where the rows of micro-batches begin and end."""
        stretches = list(stretches)
        rows = max((stop for _, stop in stretches), default=1)
        self._outgoing = [team.array((rows, size)) for size in sizes]
        self._incoming = [team.array((rows, size)) for size in sizes]
        self._sends: dict[Range, tuple[BoundCall, BoundCall]] = {}
        self._receives: dict[Range, BoundCall] = {}
        self._under_way: list[BoundCall] = []
        for stretch in stretches:
            cells = [Slot() for _ in sizes]
            outgoing = [array.rows(*stretch).message() for array in self._outgoing]
            sends = [
                Call("isend", (message,), peer=peer, tag=TAG, cell=cell)
                for message, cell in zip(outgoing, cells, strict=True)
            ]
            incoming = [array.rows(*stretch).message() for array in self._incoming]
            receives = [Call("recv", (message,), peer=peer, tag=TAG) for message in incoming]
            waits = [Call("wait", cell=cell) for cell in cells]
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
        """The rows that came last."""
        return (array.data[slice(*stretch)] for array in self._incoming)

"""Where two stages of a pipeline meet."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from omb_py.calls import Call
from omb_py.measure.phases import Phase
from omb_py.measure.team import Team
from omb_py.training.batches import Stretch
from omb_py.training.layers import Shape

TAG = 200
"""Of activations and of their gradients, which go opposite ways."""


class Boundary:
    """A boundary seen from one stage: what goes to the other, and what comes from it.

    One way these are activations, the other way their gradients: a row of ``shape`` for each sample
    of a batch. Each stretch of rows that passes has a send and a receive of its own, bound once.

    Receiving counts as waiting: mostly it is, but the transfer is in it too. Sending counts as
    communicating, though a large message leaves only when the other stage receives it.
    """

    def __init__(self, team: Team, peer: int, shape: Shape, stretches: Iterable[Stretch]) -> None:
        """Made on both ranks; ``stretches`` are where the rows of micro-batches begin and end."""
        stretches = list(stretches)
        rows = max((stop for _, stop in stretches), default=1)
        self._computing = team.computing
        self._outgoing = team.array((rows, *shape))
        self._incoming = team.array((rows, *shape))
        self._send, self._receive = {}, {}
        for stretch in stretches:
            outgoing = (self._outgoing.rows(*stretch).message(),)
            incoming = (self._incoming.rows(*stretch).message(),)
            receive = Call("recv", incoming, peer=peer, tag=TAG)
            self._send[stretch] = team.bind(Call("send", outgoing, peer=peer, tag=TAG))
            self._receive[stretch] = team.bind(receive, phase=Phase.WAIT)

    def give(self, stretch: Stretch, values: Any) -> None:
        """Send the other stage its rows."""
        with self._computing:
            self._outgoing.data[slice(*stretch)] = values
        self._send[stretch]()

    def take(self, stretch: Stretch) -> Any:
        """Receive rows of the other stage, which stay until the same ones are received again."""
        self._receive[stretch]()
        return self._incoming.data[slice(*stretch)]

"""A number of each rank, combined over all of them."""

from __future__ import annotations

from omb_py.apps.runtime.team import Team
from omb_py.core.calls import Call


class OneNumber:
    """The sum, or another operation of MPI, of a number of each rank, on all of them."""

    def __init__(self, team: Team, op: str = "sum") -> None:
        """Collective."""
        self._call = None
        if team.ranks > 1:
            host = team.beside_device()
            self._array = host.array(1, "float64")
            operands = host.in_place(self._array.message())
            self._call = host.bind(Call("allreduce", operands, op=op))

    def __call__(self, value: float) -> float:
        """What it is of the ranks' values; collective."""
        if self._call is None:
            return value
        self._array.data[0] = value
        self._call()
        return float(self._array.data[0])

"""Arrays that rank 0 has as a whole and whose rows are divided over a team."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from omb_py.apps import share, shares
from omb_py.calls import Call
from omb_py.measure.team import Array, Team


class Blocks:
    """Rows divided as evenly as can be: ``mine`` are this rank's, ``whole`` all of them on rank 0.

    A single rank divides nothing: ``mine`` is ``whole``, and nothing is copied.
    """

    def __init__(self, team: Team, shape: tuple[int, ...], dtype: str = "float32") -> None:
        rows = shape[0]
        self.begin, self.end = share(rows, team.ranks, team.rank)
        self.whole: Array | None = team.array(shape, dtype) if team.rank == 0 else None
        if team.ranks == 1:
            assert self.whole is not None
            self.mine = self.whole
            self.scatter = self.gather = team.bind()
            return
        self.mine = team.array((self.end - self.begin, *shape[1:]), dtype)
        row = prod(shape[1:])
        counts = tuple(row * own for own in shares(rows, team.ranks))
        even = len(set(counts)) == 1
        whole = None
        if self.whole is not None:
            whole = self.whole.message(counts, "" if even else "v")
        mine = self.mine.message()
        form = "" if even else "v"
        self.scatter = team.bind(Call(f"scatter{form}", (whole, mine), root=0))
        self.gather = team.bind(Call(f"gather{form}", (mine, whole), root=0))


def broadcast(team: Team, array: Array) -> Callable[[], None]:
    """A bound call that gives rank 0's array to all; on one rank it does nothing."""
    if team.ranks == 1:
        return team.bind()
    return team.bind(Call("bcast", (array.message(),), root=0))

"""The data of an application over its ranks: generated, divided into blocks, exchanged."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

from omb_py.apps import option, share, shares
from omb_py.apps.runtime.team import Array, Team
from omb_py.bindings import BoundCall
from omb_py.core.calls import Call, Message, Window
from omb_py.core.errors import UnsupportedError
from omb_py.core.options import LIBRARY

EXCHANGES = ("alltoallv", "pairs")

exchange_option = partial(
    option, EXCHANGES[0], "One call of all ranks, or isend and irecv with each.", choices=EXCHANGES
)
"""Return the field of a problem whose kernel calls `exchange`."""


class BlockDistribution:
    """Rows divided as evenly as can be: ``mine`` are this rank's, ``whole`` all of them on rank 0.

    On a single rank ``mine`` is ``whole``, without a copy. Raises `UnsupportedError` if the binding
    cannot move blocks of unequal sizes.
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
        try:
            self.scatter = team.bind(Call(f"scatter{form}", (whole, mine), root=0))
            self.gather = team.bind(Call(f"gather{form}", (mine, whole), root=0))
        except UnsupportedError as error:
            if even:
                raise
            near = max(1, rows // team.ranks) * team.ranks
            raise UnsupportedError(
                f"{error}, or {near} rows instead of {rows}, which {team.ranks} ranks divide evenly"
            ) from error


def broadcast(team: Team, array: Array, algorithm: str = LIBRARY) -> Callable[[], None]:
    """Return a bound call that gives rank 0's array to all; on one rank it is empty.

    ``algorithm`` is `LIBRARY` or one of `omb_py.benchmarks.algorithms`.
    """
    if team.ranks == 1:
        return team.bind()
    call = Call("bcast", (array.message(),), root=0)
    if algorithm == LIBRARY:
        return team.bind(call)
    new = partial(team.new_message, array.datatype)
    return team.bind(*team.own_steps(call, algorithm, new))


def exchange(team: Team, how: str, sent: Message, received: Message) -> BoundCall:
    """Return a call that moves each rank's block of ``sent`` into its place in ``received``.

    ``how`` is one of `EXCHANGES`. Raises `UnsupportedError` if the binding lacks its functions.
    """
    from omb_py.benchmarks.algorithms.exchanges import blocks_of

    if how == EXCHANGES[0] and team.ranks > 1:
        try:
            return team.bind(Call("alltoallv", (sent, received)))
        except UnsupportedError as error:
            raise UnsupportedError(f"{error}, or --exchange {EXCHANGES[1]}") from error
    both = blocks_of(received), blocks_of(sent)
    others = [(team.rank + distance) % team.ranks for distance in range(1, team.ranks)]
    calls = [
        Call(function, (blocks[peer],), peer)
        for function, blocks in zip(("irecv", "isend"), both, strict=True)
        for peer in others
        if blocks[peer].elements
    ]
    messages = team.bind(*[Window((tuple(calls),))] * bool(calls))
    there, own = (blocks[team.rank].memory.ndarray(sent.datatype.dtype) for blocks in both)

    def make() -> None:
        with team.computing:
            there[...] = own
        messages()

    return make


def random_numbers(seed: tuple[int, ...], begin: int, end: int) -> Any:
    """Return numbers ``begin`` to ``end`` of an endless random sequence, float64 from 0 to 1.

    NumPy's PCG64 takes one step for each and can skip any number of them.
    """
    import numpy as np

    generator = np.random.PCG64(seed)
    generator.advance(begin)
    return np.random.Generator(generator).random(end - begin)

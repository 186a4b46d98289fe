"""The data of an application over its ranks: generated, divided into blocks, collected, transposed.

A global transpose makes of a matrix whose rows are divided one whose columns are, and back. Each
rank has a block for every other one. A block goes as it is, row by row, so that what arrives from
all ranks, back to back, is all rows of this rank's columns: its ``.T`` are the rows of the
transpose.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

from omb_py.apps import share, shares
from omb_py.apps.runtime.team import Array, Team
from omb_py.core.calls import Call, Form, Message
from omb_py.core.datatypes import Datatype
from omb_py.core.errors import UnsupportedError, UsageError
from omb_py.core.options import LIBRARY


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
    new = partial(message_of, team, array.datatype)
    return team.bind(*team.own_steps(call, algorithm, new))


def message_of(team: Team, datatype: Datatype, count: int) -> Message:
    """Return a message of so many elements in new memory."""
    return team.array(count, datatype).message()


def random_numbers(seed: tuple[int, ...], begin: int, end: int) -> Any:
    """Return numbers ``begin`` to ``end`` of an endless random sequence, float64 from 0 to 1.

    NumPy's PCG64 takes one step for each and can skip any number of them.
    """
    import numpy as np

    generator = np.random.PCG64(seed)
    generator.advance(begin)
    return np.random.Generator(generator).random(end - begin)


def collect(team: Team, data: Any) -> list[Any] | None:
    """Return each rank's array, flat and on the host, on rank 0; None elsewhere. Collective.

    It allocates and binds, so that a run without a check does not: it is not for timed code.
    Arrays may differ in size; all are sent in the length of the longest, since objects cannot be
    gathered unevenly.
    """
    if team.ranks == 1:
        return [team.on_host(data).reshape(-1)]
    data = team.xp.asarray(data)
    every = (1,) * team.ranks
    size, sizes = team.array(1, "int64"), team.array(team.ranks, "int64")
    size.data[...] = data.size
    team.bind(Call("allgather", (size.message(), sizes.message(every))))()
    lengths = [int(length) for length in team.on_host(sizes.data)]
    longest, dtype = max(lengths), data.dtype.name
    part = team.array(longest, dtype)
    part.data[: data.size] = data.reshape(-1)
    whole = team.array((team.ranks, longest), dtype) if team.rank == 0 else None
    parts = None if whole is None else whole.message((longest,) * team.ranks)
    team.bind(Call("gather", (part.message(), parts), root=0))()
    if whole is None:
        return None
    rows = team.on_host(whole.data)
    return [row[:length] for row, length in zip(rows, lengths, strict=True)]


class Transpose:
    """The exchange of blocks between all ranks of a team, two or more.

    ``columns`` has all rows of this rank's columns. ``to_columns`` fills it from what was packed;
    ``to_rows`` takes it back to what can be unpacked. All ranks call each together.
    """

    def __init__(self, team: Team, shape: tuple[int, int], dtype: str) -> None:
        """``shape`` is the whole matrix's; each rank has at least a row and a column of it."""
        rows, columns = shape
        row_shares, column_shares = shares(rows, team.ranks), shares(columns, team.ranks)
        own_rows, own_columns = row_shares[team.rank], column_shares[team.rank]
        packed = team.array(own_rows * columns, dtype)
        self.columns = team.array((rows, own_columns), dtype)
        self._blocks = []
        for rank in range(team.ranks):
            begin, end = share(columns, team.ranks, rank)
            block = packed.data[own_rows * begin : own_rows * end]
            self._blocks.append((slice(begin, end), block.reshape(own_rows, end - begin)))
        form: Form = "" if rows % team.ranks == columns % team.ranks == 0 else "v"
        by_rows = packed.message([own_rows * other for other in column_shares], form)
        by_columns = self.columns.message([other * own_columns for other in row_shares], form)
        self.to_columns = team.bind(Call(f"alltoall{form}", (by_rows, by_columns)))
        self.to_rows = team.bind(Call(f"alltoall{form}", (by_columns, by_rows)))

    def pack(self, rows: Any) -> None:
        """Put each rank's block of this rank's rows where ``to_columns`` takes it."""
        for columns, block in self._blocks:
            block[...] = rows[:, columns]

    def unpack(self, rows: Any) -> None:
        """Put the blocks that ``to_rows`` has brought into this rank's rows."""
        for columns, block in self._blocks:
            rows[:, columns] = block


def check_shares(team: Team, **lengths: int) -> None:
    """Raise `UsageError` if an option is less than one row or column for each rank."""
    for name, length in lengths.items():
        if length < team.ranks:
            raise UsageError(
                f"--{name} {length} is less than one for each of {team.ranks} ranks: choose "
                f"--{name} {team.ranks} or more, or start fewer ranks"
            )

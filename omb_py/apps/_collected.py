"""What the ranks have found, brought together for a check."""

from __future__ import annotations

from typing import Any

from omb_py.calls import Call
from omb_py.measure.team import Team


def collected(team: Team, data: Any) -> list[Any] | None:
    """Each rank's array, flat and on the host, on rank 0; None elsewhere. Collective.

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

"""Keys of communicators: equal on all members, found without communication.

MPI_COMM_WORLD has the key `WORLD`, MPI_COMM_SELF that of `self_key`, all others `communicator_key`.
"""

from __future__ import annotations

from collections.abc import Sequence

WORLD = "world"

BETWEEN = -1
"""Stands between the two groups of an intercommunicator."""

ELSEWHERE = -2
"""Stands for a process that does not belong to this rank's MPI_COMM_WORLD."""

FNV_START, FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3
"""Of FNV-1a with 64 bits (G. Fowler, L. C. Noll, K.-P. Vo)."""


def self_key(rank: int) -> str:
    """The key of MPI_COMM_SELF of a rank."""
    return f"self-{rank}"


def communicator_key(members: Sequence[int], instance: int) -> str:
    """The key of a communicator: ``"<hash>#<instance>"``.

    ``members`` are the ranks in MPI_COMM_WORLD of its processes, in the order of its group. Those
    of an intercommunicator are both groups, the one with the lower first rank first, `BETWEEN`
    between them. The hash is FNV-1a with 64 bits over these numbers in decimal, separated by
    commas (``0,1,2``), as 16 hexadecimal digits.

    ``instance`` is the ordinal, from 1, of this one among the communicators with exactly these
    ``members`` that this rank has made, in the order of the calls that made them (that of
    MPI_Comm_idup, not its completion). MPI_COMM_WORLD and MPI_COMM_SELF do not count, and a
    communicator that was freed still does. MPI makes all members call in the same order, so that
    they find the same number.
    """
    found = FNV_START
    for byte in ",".join(map(str, members)).encode():
        found = (found ^ byte) * FNV_PRIME & 0xFFFFFFFFFFFFFFFF
    return f"{found:016x}#{instance}"

"""Trees that collective algorithms send along, and who sends how much on them.

See `omb_py.algorithms.patterns` for the sources. Rank numbers are relative to the root.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from omb_py.algorithms.patterns import Pattern, Send, Shape, power_within, whole

Parent: TypeAlias = Callable[[int, int], int]
"""The parent of a rank (not of the root) in a tree of so many ranks."""


def binomial_by_lowest(rank: int, ranks: int) -> int:
    """Binomial tree in which the lowest digit is cleared: subtrees are runs of ranks [CHPG]."""
    return rank & (rank - 1)


def binomial_by_highest(rank: int, ranks: int) -> int:
    """Binomial tree in which the highest digit is cleared: neighbours are near the root."""
    return rank ^ (1 << (rank.bit_length() - 1))


def binomial_preorder(rank: int, ranks: int) -> int:
    """Binomial tree whose ranks are numbered root first, then one subtree after the other."""
    root, after, size = 0, 1, power_within(ranks - 1) * 2 if ranks > 1 else 1
    while True:
        # children of ``root`` come with subtrees of size/2, size/4 … ranks
        size //= 2
        if rank == after:
            return root
        if rank < after + size:
            root, after = after, after + 1
        else:
            after += size


def knomial(radix: int) -> Parent:
    """The binomial tree with digits of another radix: the lowest digit is cleared."""

    def parent(rank: int, ranks: int) -> int:
        weight = 1
        while rank // weight % radix == 0:
            weight *= radix
        return rank - rank // weight % radix * weight

    return parent


def complete(fanout: int) -> Parent:
    """Ranks in the order of a heap, each with so many children."""

    def parent(rank: int, ranks: int) -> int:
        return (rank - 1) // fanout

    return parent


def by_levels(rank: int, ranks: int) -> int:
    """A binary tree whose ranks are dealt out level by level, as Open MPI numbers it."""
    level = (rank + 1).bit_length() - 1
    if level == 1:
        return 0
    above = 1 << (level - 1)
    return rank - above if rank - above < 2 * above - 1 else rank - 2 * above


def chains(number: int) -> Parent:
    """So many chains of ranks that begin at the root, the first ones longer where they differ."""

    def parent(rank: int, ranks: int) -> int:
        length, longer = divmod(ranks - 1, number)
        starts, start = [], 1
        for chain in range(number):
            starts.append(start)
            start += length + (chain < longer)
        return 0 if rank in starts else rank - 1

    return parent


def down(parent: Parent, part: Callable[[Shape], float] = whole) -> Pattern:
    """A message from the root to all."""

    def sends(shape: Shape) -> Iterator[Send]:
        for rank in range(1, shape.ranks):
            yield parent(rank, shape.ranks), rank, part(shape)

    return sends


def scattered(parent: Parent, part: Callable[[Shape], float]) -> Pattern:
    """A block of its own to each rank, with those of all ranks below it."""

    def sends(shape: Shape) -> Iterator[Send]:
        below = [1] * shape.ranks
        for rank in reversed(range(1, shape.ranks)):
            above = parent(rank, shape.ranks)
            below[above] += below[rank]
            yield above, rank, below[rank] * part(shape)

    return sends


def in_order(shape: Shape) -> Iterator[Send]:
    """A reduction that adds up in the order of the ranks: binary trees, left before right.

    The last rank is on top, and passes the result to the root.
    """
    for rank in range(shape.ranks - 1):
        yield rank, _above(rank, shape.ranks), shape.nbytes
    if shape.ranks > 1:
        yield shape.ranks - 1, 0, shape.nbytes


def _above(rank: int, ranks: int) -> int:
    """The parent of a rank that is not the last: half of the ranks are left of each parent."""
    first, size = 0, ranks
    while True:
        top, left = first + size - 1, size // 2
        if rank in (top - 1, first + left - 1):
            return top
        if rank < first + left:
            size = left
        else:
            first, size = first + left, size - 1 - left

"""Trees that collective algorithms send along, and who sends how much on them.

See `omb_py.algorithms.patterns` for the sources. Rank numbers are relative to the root.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from omb_py.algorithms.patterns import (
    CollectiveShape,
    Part,
    Pattern,
    Round,
    around,
    doubled_shares,
    exchanges,
    on_powers_of_two,
    power_within,
    reduction,
    renamed,
    share,
    together,
    whole,
)

Parent: TypeAlias = Callable[[int, int], int]
"""The parent of a rank (not of the root) in a tree of a number of ranks."""

Order: TypeAlias = Callable[[int], int]
"""Children that a rank serves first have the smaller one, of how far they are behind the rank."""


def binomial_by_lowest(rank: int, ranks: int) -> int:
    """Make a binomial tree that clears the lowest digit: subtrees are runs of ranks [CHPG]."""
    return rank & (rank - 1)


def binomial_by_highest(rank: int, ranks: int) -> int:
    """Make a binomial tree that clears the highest digit: neighbours are near the root."""
    return rank ^ (1 << (rank.bit_length() - 1))


def binomial_preorder(rank: int, ranks: int) -> int:
    """Make a binomial tree with ranks numbered root first, then one subtree after the other."""
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
    """Return the binomial tree with digits of another radix: the lowest digit is cleared."""

    def parent(rank: int, ranks: int) -> int:
        weight = 1
        while rank // weight % radix == 0:
            weight *= radix
        return rank - rank // weight % radix * weight

    return parent


def heap(rank: int, ranks: int) -> int:
    """Make a binary tree of ranks in the order of a heap."""
    return (rank - 1) // 2


def by_levels(rank: int, ranks: int) -> int:
    """Return the parent in a binary tree filled level by level, as Open MPI numbers it."""
    level = (rank + 1).bit_length() - 1
    if level == 1:
        return 0
    above = 1 << (level - 1)
    return rank - above if rank - above < 2 * above - 1 else rank - 2 * above


def chains(number: int) -> Parent:
    """Return a ``number`` of chains from the root; the first ones may be longer."""

    def parent(rank: int, ranks: int) -> int:
        length, longer = divmod(ranks - 1, number)
        starts, start = [], 1
        for chain in range(number):
            starts.append(start)
            start += length + (chain < longer)
        return 0 if rank in starts else rank - 1

    return parent


def nearest_first(distance: int) -> int:
    """Return the key by which children are in the order of their ranks."""
    return distance


def largest_first(radix: int = 2) -> Order:
    """Return children of a `knomial` tree, or the first of the binomial ones, by their weight.

    Those of the same weight are in the order of their ranks.
    """

    def order(distance: int) -> int:
        weight = 1
        while weight * radix <= distance:
            weight *= radix
        return -weight

    return order


def farthest_first(distance: int) -> int:
    """Return the key by which children are against the order of their ranks."""
    return -distance


def down(
    parent: Parent,
    part: Part = whole,
    order: Order = nearest_first,
    at_once: bool = False,
) -> Pattern:
    """Send a message from the root to all; a rank sends to its children ``at_once``, or in turn."""

    def rounds(shape: CollectiveShape) -> Iterator[Round]:
        nbytes = part(shape)
        for edges in served(parent, shape.ranks, order, at_once):
            yield Round([(rank, child, nbytes) for rank, child in edges])

    return rounds


def scattered(parent: Parent, part: Part, order: Order = nearest_first) -> Pattern:
    """Send a block of its own to each rank, together with those of all ranks below it."""

    def rounds(shape: CollectiveShape) -> Iterator[Round]:
        below = [1] * shape.ranks
        for rank in reversed(range(1, shape.ranks)):
            below[parent(rank, shape.ranks)] += below[rank]
        block = part(shape)
        for edges in served(parent, shape.ranks, order, at_once=False):
            yield Round([(rank, child, below[child] * block) for rank, child in edges])

    return rounds


# Of several libraries: a scatter, and broadcasts of the whole message or by parts [CHPG, TRG].
scatter_of_blocks = scattered(binomial_by_lowest, whole, largest_first())
binomial = down(binomial_by_lowest, order=largest_first())
_scatter = scattered(binomial_by_lowest, share, largest_first())
scatter_allgather = on_powers_of_two(together(_scatter, exchanges(doubled_shares)))
scatter_ring = together(_scatter, around(share))


def served(
    parent: Parent, ranks: int, order: Order, at_once: bool
) -> Iterator[list[tuple[int, int]]]:
    """Yield ranks and their children, from level to level.

    A list has all children of a level's ranks, or one of each.
    """
    children: list[list[int]] = [[] for _ in range(ranks)]
    for rank in range(1, ranks):
        children[parent(rank, ranks)].append(rank)
    for rank, found in enumerate(children):
        distances = sorted((child - rank for child in found), key=order)
        children[rank] = [rank + distance for distance in distances]
    level = [0] if children[0] else []
    while level:
        if at_once:
            yield [(rank, child) for rank in level for child in children[rank]]
        else:
            for turn in range(max(len(children[rank]) for rank in level)):
                yield [(r, children[r][turn]) for r in level if turn < len(children[r])]
        level = [child for rank in level for child in children[rank] if children[child]]


def in_order(shape: CollectiveShape) -> Iterator[Round]:
    """Reduce in the order of the ranks: binary trees, left before right.

    The last rank is on top, and passes the result to the root.
    """
    last = shape.ranks - 1

    def parent(rank: int, ranks: int) -> int:
        return last - _above(last - rank, ranks)

    yield from renamed(reduction(down(parent))(shape), range(last, -1, -1))
    if last:
        yield Round([(last, 0, shape.nbytes)])


def _above(rank: int, ranks: int) -> int:
    """Return the parent of a rank that is not the last: half of the ranks are to its left."""
    first, size = 0, ranks
    while True:
        top, left = first + size - 1, size // 2
        if rank in (top - 1, first + left - 1):
            return top
        if rank < first + left:
            size = left
        else:
            first, size = first + left, size - 1 - left

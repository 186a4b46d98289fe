"""Algorithms for powers of two of ranks, made to serve any number [TRG, section 4.5].

Of the first ranks, one of each pair hands its data to the other, which then stands for both; some
give the result back in the end. See `omb_py.algorithms.patterns` for the sources.
"""

from __future__ import annotations

from collections.abc import Iterator

from omb_py.algorithms.patterns import (
    Pattern,
    Send,
    Shape,
    all_data,
    exchanges,
    halved,
    no_data,
    on,
    power_within,
    powers_below,
)


def fold(
    inner: Pattern, before: Pattern | None, after: Pattern | None = None, keep: int = 1
) -> Pattern:
    """``inner`` among the ranks that stay; ``before`` and ``after`` are between 0 and 1 of a pair.

    ``keep`` says which of them stays.
    """

    def sends(shape: Shape) -> Iterator[Send]:
        real = staying(shape.ranks, keep)
        yield from pairs(before, shape)
        for source, target, nbytes in inner(on(len(real), shape)):
            yield real[source], real[target], nbytes
        yield from pairs(after, shape)

    return sends


def staying(ranks: int, keep: int) -> list[int]:
    """The ranks that stay, a power of two of them."""
    left = power_within(ranks)
    extra = ranks - left
    return [2 * rank + keep if rank < extra else rank + extra for rank in range(left)]


def pairs(pattern: Pattern | None, shape: Shape) -> Iterator[Send]:
    """A pattern of two ranks for each pair of which one does not stay."""
    for pair in range(shape.ranks - power_within(shape.ranks)):
        for source, target, nbytes in pattern(on(2, shape)) if pattern else ():
            yield 2 * pair + source, 2 * pair + target, nbytes


def lower_to_upper(shape: Shape) -> Iterator[Send]:
    """The lower of two ranks sends all that it has."""
    yield 0, 1, shape.nbytes


def upper_to_lower(shape: Shape) -> Iterator[Send]:
    """The upper of two ranks sends all that it has."""
    yield 1, 0, shape.nbytes


def half_each(shape: Shape) -> Iterator[Send]:
    """Two ranks add up half of the data each, then the upper one hands over its half."""
    yield 0, 1, shape.nbytes / 2
    yield 1, 0, shape.nbytes / 2
    yield 1, 0, shape.nbytes / 2


def signal(source: int, target: int) -> Pattern:
    """A message without data between the two of a pair."""
    return lambda shape: iter([(source, target, 0.0)])


recursive_doubling = fold(exchanges(all_data), lower_to_upper, upper_to_lower)
"""Allreduce: all data in each round [TRG]."""

doubling_barrier = fold(exchanges(no_data), signal(0, 1), signal(1, 0))
"""Barrier by the same exchanges."""


def doubling_barrier_above(shape: Shape) -> Iterator[Send]:
    """Barrier by doubling in which ranks above the power of two report to the first ones."""
    left = power_within(shape.ranks)
    for rank in range(left, shape.ranks):
        yield rank, rank - left, 0.0
    yield from exchanges(no_data)(on(left, shape))
    for rank in range(left, shape.ranks):
        yield rank - left, rank, 0.0


def halving_and_doubling(shape: Shape) -> Iterator[Send]:
    """Rabenseifner's allreduce on a power of two of ranks: halves, quarters … and back [TRG]."""
    for _ in range(2):
        yield from exchanges(halved)(shape)


def halving_and_gather(shape: Shape) -> Iterator[Send]:
    """Rabenseifner's reduction on a power of two of ranks: halving, then a gather [TRG]."""
    yield from exchanges(halved)(shape)
    for rank in range(1, shape.ranks):
        distance = power_within(rank)
        yield rank, rank - distance, shape.nbytes / (2 * distance)


def recursive_halving(shape: Shape) -> Iterator[Send]:
    """Reduce_scatter: each round sends what the other half of the ranks will keep [TRG]."""
    real = staying(shape.ranks, keep=1)
    extra = shape.ranks - len(real)
    blocks = [2 if rank < extra else 1 for rank in range(len(real))]
    block = shape.nbytes / shape.ranks
    yield from pairs(lower_to_upper, shape)
    for distance in powers_below(len(real)):
        for rank, number in enumerate(real):
            partner = rank ^ distance
            first = partner // distance * distance
            yield number, real[partner], block * sum(blocks[first : first + distance])
    for pair in range(extra):
        yield 2 * pair + 1, 2 * pair, block

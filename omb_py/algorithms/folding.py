"""Algorithms for powers of two of ranks, made to serve any number [TRG, section 4.5].

Of the first ranks, one of each pair hands its data to the other, which then stands for both; some
give the result back in the end. See `omb_py.algorithms.patterns` for the sources.
"""

from __future__ import annotations

from collections.abc import Iterator

from omb_py.algorithms.patterns import (
    CollectiveShape,
    Pattern,
    Round,
    Send,
    Sends,
    added,
    backwards,
    exchanges,
    halved,
    nothing,
    power_within,
    powers_below,
    renamed,
    together,
    whole,
)
from omb_py.core.dataclass import replace


def fold(
    inner: Pattern, before: Pattern | None, after: Pattern | None = None, keep: int = 1
) -> Pattern:
    """Run ``inner`` among the ranks that stay; ``before`` and ``after`` are between 0 and 1.

    ``keep`` is the one of them that stays.
    """

    def rounds(shape: CollectiveShape) -> Iterator[Round]:
        real = staying(shape.ranks, keep)
        yield from pairs(before, shape)
        yield from renamed(inner(replace(shape, ranks=len(real))), real)
        yield from pairs(after, shape)

    return rounds


def staying(ranks: int, keep: int) -> list[int]:
    """Return the ranks that stay, a power of two of them."""
    left = power_within(ranks)
    extra = ranks - left
    return [2 * rank + keep if rank < extra else rank + extra for rank in range(left)]


def pairs(pattern: Pattern | None, shape: CollectiveShape) -> Iterator[Round]:
    """Yield a pattern of two ranks for each folded-out rank and its partner, all pairs at once."""
    extra = shape.ranks - power_within(shape.ranks)

    def sends(of_two: Round) -> Iterator[Send]:
        for pair in range(extra):
            for source, target, nbytes in of_two.sends:
                yield 2 * pair + source, 2 * pair + target, nbytes

    for one in pattern(replace(shape, ranks=2)) if pattern and extra else ():
        yield replace(one, sends=Sends(sends, one))


def lower_to_upper(shape: CollectiveShape) -> Iterator[Round]:
    """Yield the round in which the lower of two ranks sends all that it has."""
    yield Round([(0, 1, shape.nbytes)])


def upper_to_lower(shape: CollectiveShape) -> Iterator[Round]:
    """Yield the round in which the upper of two ranks sends all that it has."""
    yield Round([(1, 0, shape.nbytes)])


def half_each(shape: CollectiveShape) -> Iterator[Round]:
    """Yield rounds in which two ranks add up half of the data each; the upper sends its half."""
    half = shape.nbytes / 2
    yield Round([(0, 1, half), (1, 0, half)], added=True)
    yield Round([(1, 0, half)])


def signal(source: int, target: int) -> Pattern:
    """Return the pattern of a message without data between the two of a pair."""
    return lambda shape: iter([Round([(source, target, 0.0)])])


recursive_doubling = fold(added(exchanges(whole)), added(lower_to_upper), upper_to_lower)
"""Allreduce: all data in each round [TRG]."""

doubling_barrier = fold(exchanges(nothing), signal(0, 1), signal(1, 0))
"""Barrier by the same exchanges."""


def doubling_barrier_above(shape: CollectiveShape) -> Iterator[Round]:
    """Yield a barrier by doubling in which ranks above the power of two report to the first."""
    left = power_within(shape.ranks)
    above = range(left, shape.ranks)
    yield Round([(rank, rank - left, 0.0) for rank in above])
    yield from exchanges(nothing)(replace(shape, ranks=left))
    yield Round([(rank - left, rank, 0.0) for rank in above])


halving = added(exchanges(halved))
"""Sums of a part each, on a power of two of ranks: halves are exchanged, then quarters … [TRG]."""

halving_and_doubling = together(halving, backwards(exchanges(halved)))
"""Rabenseifner's allreduce on a power of two of ranks: halves, quarters … and back [TRG]."""


def halving_and_gather(shape: CollectiveShape) -> Iterator[Round]:
    """Yield Rabenseifner's reduction on a power of two of ranks: halving, a gather [TRG]."""
    yield from halving(shape)
    for distance in reversed(list(powers_below(shape.ranks))):
        nbytes = shape.nbytes / (2 * distance)
        yield Round([(rank + distance, rank, nbytes) for rank in range(distance)])


def recursive_halving(shape: CollectiveShape) -> Iterator[Round]:
    """Yield a reduce_scatter: each round sends data that the other half will keep [TRG].

    Partners are farthest from each other in the first round.
    """
    real = staying(shape.ranks, keep=1)
    extra = shape.ranks - len(real)
    blocks = [2 if rank < extra else 1 for rank in range(len(real))]
    block = shape.nbytes / shape.ranks

    def sends(distance: int) -> Iterator[Send]:
        for rank, number in enumerate(real):
            partner = rank ^ distance
            first = partner // distance * distance
            yield number, real[partner], block * sum(blocks[first : first + distance])

    yield from pairs(added(lower_to_upper), shape)
    for distance in reversed(list(powers_below(len(real)))):
        yield Round(Sends(sends, distance), added=True)
    if extra:
        yield Round([(2 * pair + 1, 2 * pair, block) for pair in range(extra)])

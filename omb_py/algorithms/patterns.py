"""Collective algorithms by their textbook definitions: sender, receiver and bytes of each message.

Sources, named where they are used:

[BHKUW]  J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby: Efficient Algorithms for All-to-All
         Communications in Multiport Message-Passing Systems. IEEE TPDS 8(11), 1997.
[CHPG]   E. Chan, M. Heimlich, A. Purkayastha, R. van de Geijn: Collective communication: theory,
         practice, and experience. Concurrency and Computation 19(13), 2007.
[CZZY]   J. Chen, L. Zhang, Y. Zhang, W. Yuan: Performance evaluation of Allgather algorithms on
         terascale Linux cluster with fast Ethernet. HPC Asia, 2005.
[HFM]    D. Hensgen, R. Finkel, U. Manber: Two algorithms for barrier synchronization. International
         Journal of Parallel Programming 17(1), 1988.
[LK]     W. J. Loch, G. P. Koslovski: Sparbit: a new logarithmic-cost and data locality-aware MPI
         Allgather algorithm. arXiv:2109.08751, 2021.
[TRG]    R. Thakur, R. Rabenseifner, W. Gropp: Optimization of Collective Communication Operations
         in MPICH. Int. J. of High Performance Computing Applications 19(1), 2005.

A definition is a sequence of rounds (`Round`). Messages of a round are made only when a caller
iterates over them. Rank numbers are relative to the root, which is 0. A message's bytes are exact
up to the rounding of blocks to whole elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from math import ceil
from typing import Any, TypeAlias

from omb_py.core.dataclass import dataclass, replace


@dataclass(frozen=True)
class CollectiveShape:
    """A collective call: ranks, the benchmark's message size in bytes, bytes of an element."""

    ranks: int
    nbytes: int
    itemsize: int = 1
    in_place: bool = False

    @property
    def elements(self) -> int:
        return self.nbytes // self.itemsize


Send: TypeAlias = tuple[int, int, float]
"""A message: who sends it, who receives it, and its bytes."""


class Sends:
    """Messages that a generator function makes from its arguments, as often as they are needed."""

    def __init__(self, make: Callable[..., Iterator[Send]], *arguments: Any) -> None:
        self._make = partial(make, *arguments)

    def __iter__(self) -> Iterator[Send]:
        return self._make()


@dataclass(frozen=True)
class Round:
    """Messages that do not wait for each other; those from a rank to another one are in order.

    A rank begins all its messages of a round, receives first, once those of its earlier rounds are
    over; a rank without any takes no part in it. The round is repeated ``times`` in a row.
    ``added`` means that receivers add what arrives to their own data, ``overlapping`` that sends
    are waited for only at the end of the call, receives as always.
    """

    sends: Iterable[Send]
    times: int = 1
    added: bool = False
    overlapping: bool = False


Pattern: TypeAlias = Callable[[CollectiveShape], Iterator[Round]]
"""All messages of one call, in their order."""

Part: TypeAlias = Callable[[CollectiveShape], float]
"""Bytes of a message."""

PartAt: TypeAlias = Callable[[CollectiveShape, int], float]
"""Bytes of a message to a rank at a distance."""


def messages(pattern: Pattern, shape: CollectiveShape) -> Iterator[Send]:
    """Yield all messages of one call, round after round."""
    for one in pattern(shape):
        for _ in range(one.times):
            yield from one.sends


def whole(shape: CollectiveShape, distance: int = 0) -> float:
    """Return the bytes of a whole message, at any distance."""
    return shape.nbytes


def share(shape: CollectiveShape) -> float:
    """Return the bytes of each rank's part of a message that is divided among the ranks."""
    return shape.nbytes / shape.ranks


def nothing(shape: CollectiveShape, distance: int = 0) -> float:
    """Return the bytes of a message without data, as those of a barrier."""
    return 0.0


def together(*patterns: Pattern) -> Pattern:
    def rounds(shape: CollectiveShape) -> Iterator[Round]:
        for pattern in patterns:
            yield from pattern(shape)

    return rounds


def added(pattern: Pattern) -> Pattern:
    """Return a pattern whose receivers add the data that arrives."""

    def rounds(shape: CollectiveShape) -> Iterator[Round]:
        return (replace(one, added=True) for one in pattern(shape))

    return rounds


def backwards(pattern: Pattern) -> Pattern:
    """Reverse the pattern's rounds and messages: a gather is a scatter backwards [CHPG]."""

    def rounds(shape: CollectiveShape) -> Iterator[Round]:
        for one in reversed(list(pattern(shape))):
            yield replace(one, sends=Sends(answers, one.sends))

    return rounds


def answers(sends: Iterable[Send]) -> Iterator[Send]:
    return ((target, source, nbytes) for source, target, nbytes in sends)


def reduction(pattern: Pattern) -> Pattern:
    """Return a broadcast played backwards, with additions [CHPG]."""
    return added(backwards(pattern))


def up_and_down(pattern: Pattern) -> Pattern:
    """Return a reduction to the root, and then a broadcast from it."""
    return together(reduction(pattern), pattern)


def cut(pattern: Pattern, segment: int) -> Pattern:
    """Cut messages into segments of at most ``segment`` bytes: all of one, then all of the next.

    Messages of a round are of one length, here and below.
    """

    def rounds(shape: CollectiveShape) -> Iterator[Round]:
        for one in pattern(shape):
            pieces = pieces_of([one], segment)
            yield replace(one, sends=Sends(divided, one.sends, pieces), times=one.times * pieces)

    return rounds


def by_segments(pattern: Pattern, segment: int) -> Pattern:
    """Return the pattern for a first segment, then for the next one, with overlapping sends."""

    def rounds(shape: CollectiveShape) -> Iterator[Round]:
        all_rounds = list(pattern(shape))
        pieces = pieces_of(all_rounds, segment)
        for _ in range(pieces):
            for one in all_rounds:
                sends = Sends(divided, one.sends, pieces)
                yield replace(one, sends=sends, overlapping=True)

    return rounds


def pipelined(pattern: Pattern, segment: int) -> Pattern:
    """Let each rank receive a segment while it sends the one before, at each tree level."""

    def rounds(shape: CollectiveShape) -> Iterator[Round]:
        levels = list(pattern(shape))
        pieces = pieces_of(levels, segment)
        first = 0
        while levels and first < pieces + len(levels) - 1:
            begin, end = max(0, first - pieces + 1), min(len(levels), first + 1)
            full = end - begin == len(levels)
            times = pieces - len(levels) + 1 if full else 1
            active = [one.sends for one in levels[begin:end]]
            yield replace(levels[0], sends=Sends(divided_levels, active, pieces), times=times)
            first += times

    return rounds


def pieces_of(rounds: Iterable[Round], segment: int) -> int:
    """Return the number of segments that the messages of some rounds are cut into."""
    first = next((next(iter(one.sends), None) for one in rounds), None)
    return max(1, ceil(first[2] / segment)) if first else 1


def divided(sends: Iterable[Send], pieces: int) -> Iterator[Send]:
    """Yield one of the ``pieces`` of each message."""
    return ((source, target, nbytes / pieces) for source, target, nbytes in sends)


def divided_levels(levels: Sequence[Iterable[Send]], pieces: int) -> Iterator[Send]:
    """Yield one of the ``pieces`` of each message of several levels."""
    for sends in levels:
        yield from divided(sends, pieces)


def renamed(rounds: Iterable[Round], names: Sequence[int]) -> Iterator[Round]:
    """Yield rounds in which rank ``names[rank]`` stands for each rank."""

    def sends(one: Round) -> Iterator[Send]:
        return ((names[source], names[target], nbytes) for source, target, nbytes in one.sends)

    return (replace(one, sends=Sends(sends, one)) for one in rounds)


def to_next(ranks: int, distance: int, nbytes: float) -> Iterator[Send]:
    """Yield messages in which every rank sends to the one so far after it."""
    return ((rank, (rank + distance) % ranks, nbytes) for rank in range(ranks))


def around(part: Part, times: Callable[[int], int] = lambda ranks: ranks - 1) -> Pattern:
    """Let every rank send to the next one ``times`` in a row [CHPG, the bucket algorithms]."""

    def rounds(shape: CollectiveShape) -> Iterator[Round]:
        if number := times(shape.ranks):
            yield Round(Sends(to_next, shape.ranks, 1, part(shape)), number)

    return rounds


def double_ring(shape: CollectiveShape) -> Iterator[Round]:
    """Pass a message without data from rank to rank and back to the first, twice."""
    for rank in (*range(shape.ranks), *range(shape.ranks)):
        yield Round([(rank, (rank + 1) % shape.ranks, 0.0)])


def along(shape: CollectiveShape) -> Iterator[Round]:
    """Let every rank but the last send all to the next one, after it has received."""
    for rank in range(shape.ranks - 1):
        yield Round([(rank, rank + 1, shape.nbytes)])


def from_root(part: Part = whole) -> Pattern:
    """Let the root send to each other rank by itself, to all of them at once."""

    def rounds(shape: CollectiveShape) -> Iterator[Round]:
        yield Round([(0, rank, part(shape)) for rank in range(1, shape.ranks)])

    return rounds


def from_root_in_turn(shape: CollectiveShape) -> Iterator[Round]:
    """Let the root send to each other rank by itself, to one after the other."""
    for rank in range(1, shape.ranks):
        yield Round([(0, rank, shape.nbytes)])


def to_root_in_turn(shape: CollectiveShape) -> Iterator[Round]:
    """Let the root receive from one rank after the other."""
    for rank in range(1, shape.ranks):
        yield Round([(rank, 0, shape.nbytes)])


Partner: TypeAlias = Callable[[int, int, int], int]
"""Whom a rank sends to in a step, from rank, step and the number of ranks."""


def after(rank: int, step: int, ranks: int) -> int:
    """Return the rank ``step`` places after ``rank``, around the ring of ``ranks``."""
    return (rank + step) % ranks


def opposite(rank: int, step: int, ranks: int) -> int:
    """Return the rank to exchange with, if ranks are a power of two; else as `after`."""
    return rank ^ step if ranks == power_within(ranks) else after(rank, step, ranks)


def everyone(
    part: Part, itself: bool = False, at_once: int = 0, partner: Partner = after
) -> Pattern:
    """Let every rank send to every other rank, and maybe to ``itself``, first to those near it.

    So many of its messages are under way ``at_once``, then the next ones; 0: all.
    """

    def sends(shape: CollectiveShape, steps: range) -> Iterator[Send]:
        ranks, nbytes = shape.ranks, part(shape)
        return ((rank, partner(rank, s, ranks), nbytes) for s in steps for rank in range(ranks))

    def rounds(shape: CollectiveShape) -> Iterator[Round]:
        steps = range(0 if itself else 1, shape.ranks)
        number = at_once or shape.ranks
        for first in steps[::number]:
            yield Round(Sends(sends, shape, range(first, min(first + number, steps.stop))))

    return rounds


def pairwise_exchange(part: Part, itself: bool = False, partner: Partner = after) -> Pattern:
    """Let every rank send to every other rank, to one after the other [TRG]."""
    return everyone(part, itself, 1, partner)


def powers_below(ranks: int) -> Iterator[int]:
    """Yield 1, 2, 4 … below a number of ranks."""
    power = 1
    while power < ranks:
        yield power
        power *= 2


def power_within(ranks: int) -> int:
    """Return the maximum power of two that is not above a number of ranks."""
    return 1 << (ranks.bit_length() - 1)


def exchanges(part: PartAt) -> Pattern:
    """Let ranks r and r XOR d exchange, for d = 1, 2, 4 …; ``part`` gives the bytes at distance d.

    Recursive doubling and halving [TRG]; a rank without a partner in a round rests.
    """

    def sends(ranks: int, distance: int, nbytes: float) -> Iterator[Send]:
        for rank in range(ranks):
            if rank ^ distance < ranks:
                yield rank, rank ^ distance, nbytes

    def rounds(shape: CollectiveShape) -> Iterator[Round]:
        for distance in powers_below(shape.ranks):
            yield Round(Sends(sends, shape.ranks, distance, part(shape, distance)))

    return rounds


def halved(shape: CollectiveShape, distance: int) -> float:
    """Return the bytes at a distance of a vector halved in each round, nearest partners first."""
    return shape.nbytes / (2 * distance)


def doubled(shape: CollectiveShape, distance: int) -> float:
    """Return the bytes at a distance of blocks of a whole message each, doubled in each round."""
    return shape.nbytes * distance


def doubled_shares(shape: CollectiveShape, distance: int) -> float:
    """Return the bytes at a distance of blocks that are a rank's part of one message each."""
    return share(shape) * distance


def all_but_done(shape: CollectiveShape, distance: int) -> float:
    """Return the bytes at a distance if all that is not added up yet is exchanged [TRG, 4.3]."""
    return shape.nbytes - share(shape) * distance


def dissemination(part: PartAt, direction: int = 1) -> Pattern:
    """Send from rank r to rank r + d, d = 1, 2, 4 … [HFM for barriers, BHKUW for alltoall].

    Direction -1 is to rank r - d, as in Bruck's allgather.
    """

    def rounds(shape: CollectiveShape) -> Iterator[Round]:
        for distance in powers_below(shape.ranks):
            nbytes = part(shape, distance)
            yield Round(Sends(to_next, shape.ranks, direction * distance, nbytes))

    return rounds


def bruck_blocks(shape: CollectiveShape, distance: int) -> float:
    """Return the bytes of Bruck's allgather at a distance: all blocks, at last the missing ones."""
    return shape.nbytes * min(distance, shape.ranks - distance)


def bruck_digits(shape: CollectiveShape, distance: int) -> float:
    """Return the bytes of Bruck's alltoall: the blocks with this binary digit [BHKUW]."""
    return shape.nbytes * sum(bool(block & distance) for block in range(shape.ranks))


def sparbit(shape: CollectiveShape) -> Iterator[Round]:
    """Send from rank r to r + d, d = …, 4, 2, 1, block by block; doubled in each round [LK]."""
    known = [shape.ranks]
    while known[-1] > 1:
        known.append(ceil(known[-1] / 2))

    def sends(distance: int, blocks: int) -> Iterator[Send]:
        for _ in range(blocks):
            yield from to_next(shape.ranks, distance, shape.nbytes)

    distances = list(zip(powers_below(shape.ranks), pairwise(known), strict=True))
    for distance, (more, fewer) in reversed(distances):
        yield Round(Sends(sends, distance, more - fewer))


def neighbor_exchange(shape: CollectiveShape) -> Iterator[Round]:
    """Let pairs of neighbours exchange what they have, left and right alternately [CZZY]."""

    def sends(number: int) -> Iterator[Send]:
        for rank in range(shape.ranks):
            step = 1 if (rank + number) % 2 == 0 else -1
            yield rank, (rank + step) % shape.ranks, shape.nbytes * (2 if number else 1)

    for number in range(shape.ranks // 2):
        yield Round(Sends(sends, number))


def swapped_digits(shape: CollectiveShape) -> Iterator[Round]:
    """Send each rank's part to the rank of the same binary digits in reverse order."""
    digits = (shape.ranks - 1).bit_length()

    def sends() -> Iterator[Send]:
        for rank in range(shape.ranks):
            target = int(format(rank, f"0{digits}b")[::-1], 2) if digits else 0
            if target != rank:
                yield rank, target, share(shape)

    yield Round(Sends(sends))


def on_powers_of_two(pattern: Pattern) -> Pattern:
    """Return a pattern known for powers of two of ranks; else it raises `NotImplementedError`."""

    def rounds(shape: CollectiveShape) -> Iterator[Round]:
        if shape.ranks != power_within(shape.ranks):
            raise NotImplementedError(f"nothing to compare with on {shape.ranks} ranks")
        yield from pattern(shape)

    return rounds


# Of several libraries.
bruck_allgather = dissemination(bruck_blocks, direction=-1)
bruck_alltoall = dissemination(bruck_digits)
doubling_scan = added(exchanges(whole))
doubling_reduce_scatter = on_powers_of_two(added(exchanges(all_but_done)))

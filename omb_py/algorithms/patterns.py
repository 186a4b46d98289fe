"""Who sends how much to whom: collective algorithms by their textbook definitions.

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

Rank numbers are relative to the root, which is 0. A message's bytes are exact up to the rounding of
blocks to whole elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from math import ceil
from typing import TypeAlias

from omb_py.core.dataclass import dataclass, replace


@dataclass(frozen=True)
class Shape:
    """A collective call: ranks, the benchmark's message size in bytes, bytes of an element."""

    ranks: int
    nbytes: int
    itemsize: int = 1
    in_place: bool = False

    @property
    def elements(self) -> int:
        """Elements of a message."""
        return self.nbytes // self.itemsize


Send: TypeAlias = tuple[int, int, float]
"""A message: who sends it, who receives it, and its bytes."""

Pattern: TypeAlias = Callable[[Shape], Iterator[Send]]
"""All messages of one call."""

Part: TypeAlias = Callable[[Shape], float]
"""Bytes of a message."""


def whole(shape: Shape) -> float:
    """A whole message."""
    return shape.nbytes


def share(shape: Shape) -> float:
    """The part of a message that each rank has, where it is divided among them."""
    return shape.nbytes / shape.ranks


def nothing(shape: Shape) -> float:
    """A message without data, as those of a barrier."""
    return 0.0


def together(*patterns: Pattern) -> Pattern:
    """One pattern after the other."""

    def sends(shape: Shape) -> Iterator[Send]:
        for pattern in patterns:
            yield from pattern(shape)

    return sends


def backwards(pattern: Pattern) -> Pattern:
    """Every message the other way: a reduction is a broadcast played backwards [CHPG]."""

    def sends(shape: Shape) -> Iterator[Send]:
        for source, target, nbytes in pattern(shape):
            yield target, source, nbytes

    return sends


def up_and_down(pattern: Pattern) -> Pattern:
    """To the root, and then from it."""
    return together(backwards(pattern), pattern)


def cut(pattern: Pattern, segment: int) -> Pattern:
    """These messages in segments of at most so many bytes."""

    def sends(shape: Shape) -> Iterator[Send]:
        for source, target, nbytes in pattern(shape):
            pieces = max(1, ceil(nbytes / segment))
            for _ in range(pieces):
                yield source, target, nbytes / pieces

    return sends


def around(part: Part, times: Callable[[int], int] = lambda ranks: ranks - 1) -> Pattern:
    """Every rank sends to the next one so many times [CHPG, the bucket algorithms]."""

    def sends(shape: Shape) -> Iterator[Send]:
        for _ in range(times(shape.ranks)):
            for rank in range(shape.ranks):
                yield rank, (rank + 1) % shape.ranks, part(shape)

    return sends


def along(shape: Shape) -> Iterator[Send]:
    """Every rank but the last sends all to the next one."""
    for rank in range(shape.ranks - 1):
        yield rank, rank + 1, shape.nbytes


def from_root(part: Part = whole) -> Pattern:
    """The root sends to each other rank by itself."""

    def sends(shape: Shape) -> Iterator[Send]:
        for rank in range(1, shape.ranks):
            yield 0, rank, part(shape)

    return sends


def everyone(part: Part, itself: bool = False) -> Pattern:
    """Every rank sends to every other rank, and maybe to ``itself``."""

    def sends(shape: Shape) -> Iterator[Send]:
        for source in range(shape.ranks):
            for target in range(shape.ranks):
                if source != target or itself:
                    yield source, target, part(shape)

    return sends


def powers_below(ranks: int) -> Iterator[int]:
    """1, 2, 4 … below a number of ranks."""
    power = 1
    while power < ranks:
        yield power
        power *= 2


def power_within(ranks: int) -> int:
    """The maximum power of two that is not above a number of ranks."""
    return 1 << (ranks.bit_length() - 1)


def exchanges(part: Callable[[Shape, int], float]) -> Pattern:
    """Rank r with rank r XOR d, for d = 1, 2, 4 …; ``part`` says how much at distance d.

    Recursive doubling and halving [TRG]; whoever has no partner in a round rests.
    """

    def sends(shape: Shape) -> Iterator[Send]:
        for distance in powers_below(shape.ranks):
            for rank in range(shape.ranks):
                if rank ^ distance < shape.ranks:
                    yield rank, rank ^ distance, part(shape, distance)

    return sends


def all_data(shape: Shape, distance: int) -> float:
    """Bytes at a distance where everything is exchanged in every round."""
    return shape.nbytes


def no_data(shape: Shape, distance: int) -> float:
    """Bytes at a distance of a barrier."""
    return 0.0


def halved(shape: Shape, distance: int) -> float:
    """Bytes at a distance of a vector that is halved in each round, nearest partners first."""
    return shape.nbytes / (2 * distance)


def doubled(shape: Shape, distance: int) -> float:
    """Bytes at a distance of blocks of a whole message each, twice as many in each round."""
    return shape.nbytes * distance


def doubled_shares(shape: Shape, distance: int) -> float:
    """Bytes at a distance of blocks that are a rank's part of one message each."""
    return share(shape) * distance


def all_but_done(shape: Shape, distance: int) -> float:
    """Bytes at a distance where all is exchanged that is not added up yet [TRG, section 4.3]."""
    return shape.nbytes - share(shape) * distance


def dissemination(part: Callable[[Shape, int], float]) -> Pattern:
    """Rank r to rank r + d for d = 1, 2, 4 … [HFM for barriers, BHKUW for alltoall]."""

    def sends(shape: Shape) -> Iterator[Send]:
        for distance in powers_below(shape.ranks):
            for rank in range(shape.ranks):
                yield rank, (rank + distance) % shape.ranks, part(shape, distance)

    return sends


def bruck_blocks(shape: Shape, distance: int) -> float:
    """Bytes of Bruck's allgather at a distance: all blocks so far, in the end what is missing."""
    return shape.nbytes * min(distance, shape.ranks - distance)


def bruck_digits(shape: Shape, distance: int) -> float:
    """Bytes of Bruck's alltoall: the blocks whose number has this binary digit [BHKUW]."""
    return shape.nbytes * sum(bool(block & distance) for block in range(shape.ranks))


def sparbit(shape: Shape) -> Iterator[Send]:
    """Rank r to r + d for d = …, 4, 2, 1, block by block; each round doubles what is known [LK]."""
    known = [shape.ranks]
    while known[-1] > 1:
        known.append(ceil(known[-1] / 2))
    for distance, (after, before) in zip(powers_below(shape.ranks), pairwise(known), strict=True):
        for rank in range(shape.ranks):
            for _ in range(after - before):
                yield rank, (rank + distance) % shape.ranks, shape.nbytes


def neighbor_exchange(shape: Shape) -> Iterator[Send]:
    """Pairs of neighbours exchange what they have, left and right by turns [CZZY]."""
    for number in range(shape.ranks // 2):
        for rank in range(shape.ranks):
            step = 1 if (rank + number) % 2 == 0 else -1
            yield rank, (rank + step) % shape.ranks, shape.nbytes * (2 if number else 1)


def swapped_digits(shape: Shape) -> Iterator[Send]:
    """Each rank's part goes to the rank of the same binary digits in reverse order."""
    digits = (shape.ranks - 1).bit_length()
    for rank in range(shape.ranks):
        target = int(format(rank, f"0{digits}b")[::-1], 2) if digits else 0
        if target != rank:
            yield rank, target, share(shape)


def on_powers_of_two(pattern: Pattern) -> Pattern:
    """A pattern that is known for powers of two of ranks; raises `NotImplementedError` else."""

    def sends(shape: Shape) -> Iterator[Send]:
        if shape.ranks != power_within(shape.ranks):
            raise NotImplementedError(f"nothing to compare with on {shape.ranks} ranks")
        yield from pattern(shape)

    return sends


def on(ranks: int, shape: Shape) -> Shape:
    """The messages of a call on other ranks."""
    return replace(shape, ranks=ranks)

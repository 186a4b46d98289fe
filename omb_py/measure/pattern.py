"""The data that messages carry: a function of rank, block, element, size and iteration.

It is a short run of small whole numbers repeated to the end of the memory, so that an array
library needs only to tile bytes and to compare with tiled bytes, on a device too. Sums over any
number of ranks stay within the element type, since Open MPI's vectorised reductions saturate
8- and 16-bit integers instead of wrapping.
"""

from __future__ import annotations

from functools import lru_cache

from omb_py.benchmarks import Content
from omb_py.datatypes import Datatype

LONGEST_PERIOD = 1009
"""Elements after which data repeats: a prime, so that no power of two is a period."""

UNTOUCHED = b"\xff"
"""Fills memory that a message should overwrite; no element of a pattern is made of it alone."""

LEAST_PERIOD_OF_SUMS = 8


def tile(content: Content, datatype: Datatype, ranks: int, size: int, iteration: int) -> bytes:
    """The bytes that, repeated, are ``content`` in iteration ``iteration`` of a message size."""
    seed = size + 13 * iteration + content.start
    if not content.added:
        seed += 31 * content.sources[0] + 7 * content.block
        return _tile(datatype, _period(datatype, 1), 1, seed)
    total = sum(weight(rank, ranks, datatype, iteration) for rank in range(ranks))
    scale = sum(weight(rank, ranks, datatype, iteration) for rank in content.sources)
    return _tile(datatype, _period(datatype, total), scale, seed)


def weight(rank: int, ranks: int, datatype: Datatype, iteration: int) -> int:
    """What a rank multiplies the common data of a reduction by.

    Weights differ from rank to rank and from iteration to iteration where their sum leaves room
    for data; with very many ranks and a narrow type some ranks contribute zeros, other ones in
    each iteration.
    """
    room = datatype.largest // LEAST_PERIOD_OF_SUMS
    if 3 * ranks <= room:
        return 1 + (rank + iteration) % 3
    every = -(-ranks // room)
    return int((rank + iteration) % every == 0)


def _period(datatype: Datatype, total: int) -> int:
    return max(1, min(LONGEST_PERIOD, (datatype.largest - 1) // max(1, total)))


def _tile(datatype: Datatype, period: int, scale: int, seed: int) -> bytes:
    start = seed % period * datatype.itemsize
    return _two_periods(datatype, period, scale)[start : start + period * datatype.itemsize]


@lru_cache(maxsize=64)
def _two_periods(datatype: Datatype, period: int, scale: int) -> bytes:
    return datatype.pack(scale * value for value in range(1, period + 1)) * 2

"""What checkpoints hold: bytes that differ from rank to rank and from round to round."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

CHUNK = 1 << 20
"""Bytes that are made at a time; a multiple of 8."""


def chunks(nbytes: int, rank: int, round_: int) -> Iterator[tuple[int, Any]]:
    """The content of a rank in a round: the place of each chunk, and its bytes as an array.

    Random, so that no filesystem can compress it or store it once for several ranks.
    """
    import numpy as np

    source = np.random.SFC64([rank, round_, nbytes])
    for start in range(0, nbytes, CHUNK):
        count = min(CHUNK, nbytes - start)
        yield start, source.random_raw(-(-count // 8)).view(np.uint8)[:count]


def fill(data: Any, rank: int, round_: int) -> None:
    """Write the content of a rank in a round into an array of bytes."""
    for start, chunk in chunks(len(data), rank, round_):
        data[start : start + len(chunk)] = chunk


def first_difference(data: Any, nbytes: int, rank: int, round_: int) -> int | None:
    """The place of the first byte that is not that rank's in that round; None where all are.

    Bytes that are missing at the end, or too many, differ.
    """
    import numpy as np

    for start, chunk in chunks(nbytes, rank, round_):
        found = data[start : start + len(chunk)]
        if len(found) < len(chunk):
            return start + len(found)
        if not np.array_equal(found, chunk):
            return start + int(np.flatnonzero(found != chunk)[0])
    return None if len(data) == nbytes else nbytes

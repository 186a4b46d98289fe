"""The messages that ranks sent in one call, compared with an algorithm's definition."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import TypeAlias

from omb_py.algorithms.patterns import CollectiveShape, Pattern, messages
from omb_py.core.text.words import count

Sent: TypeAlias = Sequence[Sequence[tuple[int, float | None]]]
"""Messages and their bytes from each rank to each other one; None for unknown bytes."""


def by_definition(
    pattern: Pattern, shape: CollectiveShape, root: int = 0
) -> list[list[tuple[int, float]]]:
    """Return the messages of each rank to each other one.

    Raises `NotImplementedError` if the pattern is not known for this number of ranks.
    """
    ranks = shape.ranks
    counts = [[0] * ranks for _ in range(ranks)]
    nbytes = [[0.0] * ranks for _ in range(ranks)]
    for source, target, length in messages(pattern, shape):
        source, target = (source + root) % ranks, (target + root) % ranks
        counts[source][target] += 1
        nbytes[source][target] += length
    return [list(zip(*rows, strict=True)) for rows in zip(counts, nbytes, strict=True)]


def difference(pattern: Pattern, shape: CollectiveShape, sent: Sent, root: int = 0) -> str | None:
    """Return the first way in which ``sent`` differs from the pattern; None if it does not.

    Messages are counted exactly, but that empty ones may be missing if there is not an element for
    each block. Blocks are whole elements, and a message holds at most one for each rank: so far may
    bytes differ. Raises `NotImplementedError` as `by_definition` does.
    """
    wanted = by_definition(pattern, shape, root)
    block = ceil(shape.elements / shape.ranks)
    has_empty_blocks = block * (shape.ranks - 1) >= shape.elements
    for source in range(shape.ranks):
        for target in range(shape.ranks):
            number, nbytes = sent[source][target]
            known, length = wanted[source][target]
            fewer = has_empty_blocks and number < known
            rounding = shape.itemsize * shape.ranks * max(1, known)
            if number != known and not fewer:
                counted = count(number, "message")
                return f"rank {source} sent {counted} to rank {target} instead of {known}"
            if nbytes is not None and abs(nbytes - length) > rounding:
                return (
                    f"rank {source} sent {nbytes:.0f} bytes to rank {target} instead of "
                    f"{length:.0f}"
                )
    return None

"""The neighbours of each rank, by native OMB's ``-N``, described without MPI."""

from __future__ import annotations

from itertools import product
from math import prod

from omb_py.core.dataclass import dataclass
from omb_py.core.datatypes import number_pairs, numbers
from omb_py.core.errors import UsageError


@dataclass(frozen=True)
class Topology:
    """A grid of some dimensions, periodic, or pairs of ranks.

    In a grid the neighbours of a rank are all ranks at most ``radius`` away in every dimension.
    ``edges`` are pairs of a source and a destination. ``text`` is the option's spelling.
    """

    text: str = "cart:1:1"
    dimensions: int = 1
    radius: int = 1
    edges: tuple[tuple[int, int], ...] = ()

    def neighbors(self, rank: int, ranks: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the ranks that ``rank`` receives from and those that it sends to, in order.

        Raises `UsageError` when the topology does not fit that many ranks.
        """
        if self.edges:
            highest = max(max(edge) for edge in self.edges)
            if highest >= ranks:
                raise UsageError(
                    f"-N {self.text} names rank {highest}; the last of {ranks} ranks is {ranks - 1}"
                )
            sources = tuple(source for source, target in self.edges if target == rank)
            return sources, tuple(target for source, target in self.edges if source == rank)
        lengths = grid(ranks, self.dimensions)
        if min(lengths) < 2 * self.radius + 1:
            shape, minimum = " x ".join(map(str, lengths)), 2 * self.radius + 1
            raise UsageError(
                f"-N {self.text}: {ranks} ranks make a grid of {shape}, and a radius of "
                f"{self.radius} needs {minimum} in each dimension: start "
                f"{minimum**self.dimensions} ranks or more"
            )
        here = coordinates(rank, lengths)
        reach = range(-self.radius, self.radius + 1)
        around = tuple(
            number_of([place + step for place, step in zip(here, steps, strict=True)], lengths)
            for steps in product(reach, repeat=self.dimensions)
            if any(steps)
        )
        return around[::-1], around


DEFAULT_TOPOLOGY = Topology()


def grid(ranks: int, dimensions: int) -> tuple[int, ...]:
    """Return lengths of product ``ranks``, as near to each other as can be, the longest first."""
    if dimensions == 1:
        return (ranks,)
    best: tuple[int, ...] = (ranks,) + (1,) * (dimensions - 1)
    for length in range(1, ranks + 1):
        if ranks % length == 0:
            lengths = tuple(sorted((length, *grid(ranks // length, dimensions - 1)), reverse=True))
            best = min(best, lengths)
    return best


def coordinates(rank: int, lengths: tuple[int, ...]) -> tuple[int, ...]:
    """Return the position of a rank in a grid whose last dimension counts fastest, as in MPI."""
    return tuple(
        rank // prod(lengths[dimension + 1 :]) % length for dimension, length in enumerate(lengths)
    )


def number_of(place: list[int], lengths: tuple[int, ...]) -> int:
    """Return the rank at a place of a periodic grid."""
    rank = 0
    for position, length in zip(place, lengths, strict=True):
        rank = rank * length + position % length
    return rank


def parse_topology(text: str) -> Topology:
    """Return the topology that ``cart:DIMENSIONS:RADIUS`` or ``graph:FILE`` names.

    A line of the file is ``SOURCE,DESTINATION``; empty lines and what follows ``#`` are skipped.
    Raises `UsageError` when the text or the file is not like that.
    """
    kind, _, rest = text.partition(":")
    if kind == "cart":
        dimensions, radius = numbers(rest, ":", f"-N {text}", "cart:DIMENSIONS:RADIUS")
        if not (1 <= dimensions <= 8 and radius >= 1):
            raise UsageError(f"-N {text}: use 1 to 8 dimensions and a radius of at least 1")
        return Topology(text, dimensions, radius)
    if kind == "graph" and rest:
        edges = number_pairs(rest, "-N graph", "SOURCE,DESTINATION")
        if not edges:
            raise UsageError(f"-N graph: {rest} has no line SOURCE,DESTINATION")
        return Topology(text, edges=tuple(dict.fromkeys(edges)))
    raise UsageError(f"-N {text}: use cart:DIMENSIONS:RADIUS or graph:FILE")

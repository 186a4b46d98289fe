"""The turns of a gate: which nodes measure what together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from omb_py.core.dataclass import dataclass
from omb_py.core.job import Job, first_ranks
from omb_py.measure.conditions import largest_cache
from omb_py.measure.pairs import tournament

SMALL, LARGE = 8, 16 << 20
"""The two message sizes by default, in bytes."""

COPIED = 512 << 20
"""Bytes that a copy has at most."""

NODE_TURNS = 3
"""Turns of each node by itself."""

NODE, PAIRS, HALVES, ALL = "node", "pairs", "halves", ""
"""What a turn divides hosts into, as the column ``split`` has it: single ones, pairs, halves, or
nothing at all."""

Nodes: TypeAlias = tuple[tuple[int, ...], ...]
"""The ranks of each node."""


@dataclass(frozen=True)
class Case:
    """A benchmark and the size of its messages."""

    benchmark: str
    size: int


def copied_size(ranks: int) -> int:
    """Return the bytes of a rank's copy that all ranks of a node together make beyond caches."""
    cache = largest_cache() or 0
    return min(COPIED, max(LARGE, 2 * cache // ranks))


@dataclass(frozen=True)
class Stage:
    """Turns of one kind: a name, its cases, and the groups of nodes of each turn."""

    split: str
    cases: tuple[Case, ...]
    turns: tuple[tuple[tuple[int, ...], ...], ...]

    @property
    def words(self) -> str:
        """The stage in words."""
        return {
            NODE: "each node by itself",
            PAIRS: "pairs of nodes",
            HALVES: "halves of all nodes",
            ALL: "all nodes together",
        }[self.split]


def halves(order: Sequence[int]) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Yield splits of nodes, in an ``order``, into halves of one size.

    Nodes that were together in all splits before are divided evenly, so that at the end two nodes
    are in different halves of one split at least: all halves of a node name it. Of an odd number of
    nodes a split leaves one out, each another one.

    >>> [*halves(range(4))]
    [((0, 2), (1, 3)), ((0, 1), (2, 3))]
    """
    groups = [[*order]]
    while max(map(len, groups)) > 1:
        sides: tuple[list[int], list[int]] = ([], [])
        divided, larger = [], 0
        for group in groups:
            parts = group[larger::2], group[1 - larger :: 2]
            larger ^= len(group) % 2
            divided += [part for part in parts if part]
            for side, part in zip(sides, parts, strict=True):
                side += part
        if len(sides[0]) != len(sides[1]):
            longer = max(sides, key=len)
            longer.pop(len(groups) % len(longer))
        yield tuple(sorted(sides[0])), tuple(sorted(sides[1]))
        groups = divided


def stages(nodes: Nodes, sizes: Sequence[int], copied: int, partners: int) -> list[Stage]:
    """Return the stages of a gate: each node by itself, pairs, halves, all."""
    number = len(nodes)
    several = max(map(len, nodes)) > 1
    network = tuple(Case("latency", size) for size in sizes)
    together = tuple(Case("allreduce", size) for size in sizes)
    local = (Case("pack", copied), *(together if several else ()))
    made = [Stage(NODE, local, (tuple((node,) for node in range(number)),) * NODE_TURNS)]
    if number > 1:
        rounds = tournament(number)
        limit = min(len(rounds), partners)
        spread = [rounds[index * len(rounds) // limit] for index in range(limit)]
        spread *= 2 if limit <= NODE_TURNS else 1  # pairs of few nodes do not show their noise
        made.append(Stage(PAIRS, network, tuple(map(tuple, spread))))
    if number >= 4:
        made.append(Stage(HALVES, together, tuple(halves(range(number)))))
    if number > 1:
        made.append(Stage(ALL, together, ((tuple(range(number)),),)))
    return made


def nodes_of(job: Job) -> Nodes:
    """Return the ranks of each node, in the order of their first ranks; collective."""
    first = first_ranks(job)
    return tuple(
        tuple(rank for rank in range(job.ranks) if first[rank] == one)
        for one in dict.fromkeys(first)
    )

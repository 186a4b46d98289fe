"""The node of each rank."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from random import Random

from omb_py.core.errors import UsageError
from omb_py.core.text.units import parse_count
from omb_py.simulation.topologies import ANY, MAX_NODES

Placement = Callable[[int, int, int], list[int]]
"""From ranks, ranks per node and the nodes of the machine to the node of each rank."""


def packed(ranks: int, per_node: int, nodes: int) -> list[int]:
    """Place neighbouring ranks on one node, and take nodes in their order."""
    return [rank // per_node for rank in range(ranks)]


def scattered(ranks: int, per_node: int, nodes: int) -> list[int]:
    """Place neighbouring ranks on different nodes: each in turn takes a rank."""
    used = ceil(ranks / per_node)
    return [rank % used for rank in range(ranks)]


def spread(ranks: int, per_node: int, nodes: int) -> list[int]:
    """Place ranks as `packed`, on nodes as far apart as the machine has room for."""
    used = ceil(ranks / per_node)
    return [node * nodes // used for node in packed(ranks, per_node, nodes)]


def random(ranks: int, per_node: int, nodes: int, seed: int = 0) -> list[int]:
    """Place ranks as `packed`, on nodes drawn by lot: the same ones for the same seed."""
    chosen = Random(seed).sample(range(nodes), ceil(ranks / per_node))
    return [chosen[node] for node in packed(ranks, per_node, nodes)]


PLACEMENTS: dict[str, Placement] = {
    "packed": packed,
    "scattered": scattered,
    "spread": spread,
    "random": random,
}


def nodes_of(word: str, ranks: int, per_node: int, nodes: int) -> tuple[int, ...]:
    """Return the node of each rank by a word of `PLACEMENTS`, or by the order of nodes to fill.

    ``random:SEED`` draws other nodes; an order is as in ``0-7:16-23``. Raises `UsageError` for
    other words, and if there are fewer nodes than needed.
    """
    used = ceil(ranks / per_node)
    if used > nodes:
        raise UsageError(
            f"{ranks} ranks, {per_node} on each node, need {used} nodes, and the network has "
            f"{nodes}: name a larger topology, or more --ranks-per-node"
        )
    place = used if nodes == ANY else nodes  # where all are alike, no node is far from others
    name, _, seed = word.partition(":")
    if name == "random" and seed:
        try:
            return tuple(random(ranks, per_node, place, parse_count(seed)))
        except ValueError as error:
            raise UsageError(f"--placement {word}: {seed!r} is no seed, such as 1") from error
    if word in PLACEMENTS:
        return tuple(PLACEMENTS[word](ranks, per_node, place))
    order = ordered(word)
    if max(order) >= nodes:
        raise UsageError(f"--placement {word}: the network has nodes 0 to {nodes - 1}")
    if len(order) < used:
        raise UsageError(f"--placement {word}: {used} nodes are needed, name more of them")
    return tuple(order[node] for node in packed(ranks, per_node, nodes))


def ordered(text: str) -> list[int]:
    """Return nodes in an order, as in ``0-7:16-23`` or ``3:1``.

    >>> ordered("4-6:0")
    [4, 5, 6, 0]
    """
    found: list[int] = []
    try:
        for part in text.split(":"):
            first, _, last = part.partition("-")
            nodes = range(parse_count(first), parse_count(last or first) + 1)
            found += nodes if len(nodes) <= MAX_NODES else ()
    except ValueError:
        found = []
    if not found or len(set(found)) < len(found):
        raise UsageError(
            f"--placement {text}: choose from {', '.join(PLACEMENTS)} and random:SEED, or name "
            "nodes once each in the order in which they are filled, as in 0-7:16-23"
        )
    return found

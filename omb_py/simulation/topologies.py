"""Connections of nodes: the topologies that ``--network`` names, one row of a table each.

`placed` puts ranks on the nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, prod

from omb_py.core.errors import UsageError
from omb_py.core.text.units import parse_count

ANY = 1 << 30
"""Nodes of a topology that has as many as are needed: they are made as ranks use them."""

MAX_NODES = 1 << 20


@dataclass(frozen=True)
class NetworkTopology:
    """A topology with its numbers.

    ``kind`` is a key of `KINDS`, ``numbers`` are its row's numbers of the text. A route between
    neighbouring nodes passes ``hops`` links.
    """

    kind: str
    nodes: int
    numbers: tuple[tuple[int, ...], ...] = ()
    hops: int = 2


def star(fields: Sequence[str]) -> NetworkTopology:
    """Parse ``star``: all nodes at one switch."""
    if fields:
        raise ValueError("it has no numbers")
    return NetworkTopology("star", ANY)


def fat_tree(fields: Sequence[str]) -> NetworkTopology:
    """Parse levels from the nodes up: children of a switch, parents, and links to each parent."""
    down, up, links = (tuple(map(positive, field.split(","))) for field in (*fields, "1", "1")[:3])
    levels = len(down)
    if len(fields) < 2:
        up = (1, *down[:-1])
    if len(fields) < 3:
        links = (1,) * levels
    if not len(up) == len(links) == levels:
        raise ValueError("each part has a number for each level")
    return NetworkTopology("fat-tree", prod(down), (down, up, links))


def dragonfly(fields: Sequence[str]) -> NetworkTopology:
    """Parse groups, chassis, routers, each with a number of links, and nodes of a router."""
    if len(fields) != 4:
        raise ValueError("it has four parts")
    parts = [tuple(map(positive, field.split(","))) for field in fields]
    parts = [part if len(part) == 2 else (*part, 1) for part in parts[:3]] + parts[3:]
    if any(len(part) != 2 for part in parts[:3]) or len(parts[3]) != 1:
        raise ValueError("a part is a number, and for all but the nodes one of links")
    if parts[0][0] > parts[2][0]:
        # SimGrid's routes leave a group by the router of the other group's number
        raise ValueError("SimGrid has no more groups than a chassis has routers")
    return NetworkTopology("dragonfly", prod(part[0] for part in parts), tuple(parts))


def torus(fields: Sequence[str]) -> NetworkTopology:
    """Parse ``torus:AxBxC``: nodes in each dimension."""
    (field,) = fields or ("",)
    sides = tuple(map(positive, field.split("x")))
    if any(side < 2 for side in sides):
        raise ValueError("each side has 2 nodes or more")
    return NetworkTopology("torus", prod(sides), (sides,), hops=1)


def positive(text: str) -> int:
    """Parse a whole number from 1 on."""
    number = parse_count(text)
    if number < 1:
        raise ValueError(f"{text} is no number from 1 on")
    return number


KINDS: dict[str, tuple[str, Callable[[Sequence[str]], NetworkTopology]]] = {
    "star": ("star", star),
    "fat-tree": ("fat-tree:DOWN[:UP[:LINKS]]", fat_tree),
    "dragonfly": ("dragonfly:GROUPS:CHASSIS:ROUTERS:NODES", dragonfly),
    "torus": ("torus:AxBxC", torus),
}
"""The form of each topology's text, and a reader of its fields."""


def parse(text: str) -> NetworkTopology:
    """Return the topology of a text.

    Raises `UsageError` for an unknown name or invalid numbers.
    """
    name, *fields = text.split(":")
    if name not in KINDS:
        forms = ", ".join(form for form, _ in KINDS.values())
        raise UsageError(f"{text!r} is no file and no topology: choose from {forms}")
    form, read = KINDS[name]
    try:
        found = read(fields)
    except ValueError as error:
        raise UsageError(f"{text!r} is not of the form {form}: {error}") from error
    if found.nodes > MAX_NODES and found.nodes != ANY:
        raise UsageError(f"{text!r} has {found.nodes} nodes, more than {MAX_NODES}")
    return found


def placed(placement: str, ranks: int, per_node: int, nodes: int) -> tuple[int, ...]:
    """Return the node of each rank: ``packed`` puts neighbouring ranks on one node, ``scattered``
    on different ones.

    Raises `UsageError` for another word, and if there are fewer nodes than needed.
    """
    used = ceil(ranks / per_node)
    if used > nodes:
        raise UsageError(
            f"{ranks} ranks, {per_node} on each node, need {used} nodes, and the network has "
            f"{nodes}: name a larger topology, or more --ranks-per-node"
        )
    if placement == "packed":
        return tuple(rank // per_node for rank in range(ranks))
    if placement == "scattered":
        return tuple(rank % used for rank in range(ranks))
    raise UsageError(f"--placement {placement}: choose from packed, scattered")

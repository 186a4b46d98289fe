"""Connections of nodes: the topologies that ``--network`` names, one row of a table each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

from omb_py.core.errors import UsageError
from omb_py.core.text.units import parse_count

ANY = 1 << 30
"""Nodes of a topology that has as many as are needed: they are made as ranks use them."""

MAX_NODES = 1 << 20


@dataclass(frozen=True)
class NetworkTopology:
    """A topology with its numbers.

    ``kind`` is a key of `KINDS`, ``numbers`` are its row's numbers of the text, ``file`` is
    SimGrid's own. A route between neighbouring nodes passes ``hops`` links.
    """

    text: str
    kind: str
    nodes: int
    numbers: tuple[tuple[int, ...], ...] = ()
    file: str = ""
    hops: int = 2


@dataclass(frozen=True)
class TopologyKind:
    """A row of the table: the form of its text, a summary, and a reader of its fields."""

    form: str
    summary: str
    read: Callable[[str, Sequence[str]], NetworkTopology]


def star(text: str, fields: Sequence[str]) -> NetworkTopology:
    """Parse ``star``: all nodes at one switch."""
    if fields:
        raise ValueError("it has no numbers")
    return NetworkTopology(text, "star", ANY)


def fat_tree(text: str, fields: Sequence[str]) -> NetworkTopology:
    """Parse levels from the nodes up: children of a switch, parents, and links to each parent."""
    down, up, links = (tuple(map(positive, field.split(","))) for field in (*fields, "1", "1")[:3])
    levels = len(down)
    if len(fields) < 2:
        up = (1, *down[:-1])
    if len(fields) < 3:
        links = (1,) * levels
    if not len(up) == len(links) == levels:
        raise ValueError("each part has a number for each level")
    return NetworkTopology(text, "fat-tree", prod(down), (down, up, links))


def dragonfly(text: str, fields: Sequence[str]) -> NetworkTopology:
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
    return NetworkTopology(text, "dragonfly", prod(part[0] for part in parts), tuple(parts))


def torus(text: str, fields: Sequence[str]) -> NetworkTopology:
    """Parse ``torus:AxBxC``: nodes in each dimension."""
    (field,) = fields or ("",)
    sides = tuple(map(positive, field.split("x")))
    if any(side < 2 for side in sides):
        raise ValueError("each side has 2 nodes or more")
    return NetworkTopology(text, "torus", prod(sides), (sides,), hops=1)


def platform(text: str, fields: Sequence[str]) -> NetworkTopology:
    """Parse ``platform:FILE.xml``: a platform file of SimGrid's."""
    file = ":".join(fields)
    if not Path(file).is_file():
        raise ValueError(f"there is no file {file!r}")
    return NetworkTopology(text, "platform", hosts_in(file), file=file)


def hosts_in(file: str) -> int:
    """Return the hosts that a platform file names, those of its clusters among them."""
    import xml.etree.ElementTree as ElementTree

    try:
        root = ElementTree.parse(file).getroot()
    except (ElementTree.ParseError, OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{file} is no XML file: {error}") from error
    if root.tag != "platform":
        raise ValueError(f"{file} is no platform file of SimGrid's: it begins with <{root.tag}>")
    hosts = sum(1 for _ in root.iter("host"))
    for cluster in root.iter("cluster"):
        for part in cluster.get("radical", "").split(","):
            first, _, last = part.partition("-")
            count = int(last or first) - int(first) + 1
            if count < 1:
                raise ValueError(f"{file} has a cluster of the hosts {part}: none match")
            hosts += count
    return hosts


def positive(text: str) -> int:
    """Parse a whole number from 1 on."""
    number = parse_count(text)
    if number < 1:
        raise ValueError(f"{text} is no number from 1 on")
    return number


KINDS = {
    "star": TopologyKind(
        "star", "One switch that is never a bottleneck; links of nodes may be.", star
    ),
    "fat-tree": TopologyKind(
        "fat-tree:DOWN[:UP[:LINKS]]",
        "Children and parents of each level, and links to a parent, as in 16,16:1,8:1,1; DOWN "
        "alone is a tree of full bisection.",
        fat_tree,
    ),
    "dragonfly": TopologyKind(
        "dragonfly:GROUPS:CHASSIS:ROUTERS:NODES",
        "Each but NODES with its number of links, as in 8,4:4,2:8,1:4.",
        dragonfly,
    ),
    "torus": TopologyKind("torus:AxBxC", "Nodes in each dimension.", torus),
    "platform": TopologyKind("platform:FILE.xml", "A platform file of SimGrid's.", platform),
}


def parse(text: str) -> NetworkTopology:
    """Return the topology of a text.

    Raises `UsageError` for an unknown name or invalid numbers.
    """
    name, *fields = text.split(":")
    if name not in KINDS:
        forms = ", ".join(kind.form for kind in KINDS.values())
        raise UsageError(f"{text!r} is no file and no topology: choose from {forms}")
    try:
        found = KINDS[name].read(text, fields)
    except ValueError as error:
        raise UsageError(f"{text!r} is not of the form {KINDS[name].form}: {error}") from error
    if found.nodes > MAX_NODES and found.nodes != ANY:
        raise UsageError(f"{text!r} has {found.nodes} nodes, more than {MAX_NODES}")
    return found

"""A network as SimGrid has it: zones, hosts and links."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from omb_py.simulation.network import Network, Path
from omb_py.simulation.topologies import NetworkTopology, parse

MICRO, MEGA = 1e-6, 1e6
SPEED = 1e9
"""Speed of hosts, which compute nothing."""


@dataclass(frozen=True)
class Platform:
    """The host of each existing node, and the costs of messages between neighbours."""

    hosts: Mapping[int, Any]
    between: Path


def build(simgrid: Any, engine: Any, network: Network, nodes: Iterable[int]) -> Platform:
    """Make the hosts of a network on an engine, of a star those of ``nodes``.

    Each node's link carries messages in both directions at once, and its memory those between its
    ranks.
    """
    topology = parse(network.topology)
    if topology.kind == "platform":
        engine.load_platform(topology.file)
        hosts = sorted(engine.get_all_hosts(), key=lambda host: natural(host.name))
        found = of_file(hosts, network.between)
    else:
        found = _Zones(simgrid, network, topology).build(sorted(set(nodes)))
    for node, factor in network.slow:
        slow(found, node, factor)
    return found


def of_file(hosts: Sequence[Any], costs: Path) -> Platform:
    """Return the platform of a file: its links are latency and bandwidth, ``costs`` the rest."""
    if len(hosts) < 2:
        return Platform(dict(enumerate(hosts)), costs)
    links, latency = hosts[0].route_to(hosts[1])
    bandwidth = min((link.bandwidth for link in links), default=costs.bandwidth_MBps * MEGA)
    between = replace(costs, latency_us=latency / MICRO, bandwidth_MBps=bandwidth / MEGA)
    return Platform(dict(enumerate(hosts)), between)


def natural(name: str) -> list[Any]:
    """Return a key that sorts node 10 after node 9."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def slow(platform: Platform, node: int, factor: float) -> None:
    """Make a node's links slower: a message takes ``factor`` times as long on them."""
    host = platform.hosts[node]
    links = {}
    for other in platform.hosts.values():
        if other is not host:
            for link in (host.route_to(other)[0][0], other.route_to(host)[0][-1]):
                links[link.name] = link
    for link in links.values():
        link.set_bandwidth(link.bandwidth / factor)
        link.set_latency(link.latency * factor)


class _Zones:
    """The hosts and links of a network, as SimGrid's zones are made."""

    def __init__(self, simgrid: Any, network: Network, topology: NetworkTopology) -> None:
        self.simgrid = simgrid
        self.network = network
        self.topology = topology
        self.hosts: dict[int, Any] = {}
        self.bandwidth = network.between.bandwidth_MBps * MEGA
        self.latency = network.between.latency_us * MICRO / topology.hops

    def new_host(self, zone: Any, coordinates: Any, number: int) -> tuple[Any, None]:
        """Add a node to a zone: return where it begins, and no gateway."""
        self.hosts[number] = zone.create_host(f"node{number}", SPEED).seal()
        return self.hosts[number].netpoint, None

    def loopback(self, zone: Any, coordinates: Any, number: int) -> Any:
        """Add a node's memory: each pair of ranks gets its bandwidth, until they need too much."""
        pair = self.network.within.bandwidth_MBps * MEGA
        whole = max(pair, self.network.memory_MBps * MEGA)
        link = zone.create_link(f"memory{number}", whole)
        link.set_latency(self.network.within.latency_us * MICRO)
        policy = self.simgrid.Link.SharingPolicy.NONLINEAR
        shared = lambda _, flows: min(whole, pair * max(1, flows))  # noqa: E731
        return link.set_sharing_policy(policy, shared).seal()

    def build(self, nodes: Sequence[int]) -> Platform:
        """Make SimGrid's zones, links and hosts for the nodes that are used."""
        zones, kind = self.simgrid.NetZone, self.topology.kind
        root = zones.create_full_zone("root")
        numbers = self.topology.numbers
        if kind == "star":
            zone = zones.create_star_zone("star")
            zone.set_parent(root)
            up = self.simgrid.LinkInRoute.UP
            for number in nodes:
                begin, _ = self.new_host(zone, (), number)
                link = zone.create_split_duplex_link(f"link{number}", self.bandwidth)
                link = self.simgrid.LinkInRoute(link.set_latency(self.latency).seal(), up)
                memory = self.simgrid.LinkInRoute(self.loopback(zone, (), number))
                zone.add_route(begin, None, None, None, [link], True)
                zone.add_route(begin, begin, None, None, [memory], False)
        else:
            callbacks = self.simgrid.ClusterCallbacks(self.new_host, self.loopback, None)
            policy = self.simgrid.Link.SharingPolicy.SPLITDUPLEX
            ends = (callbacks, self.bandwidth, self.latency, policy)
            if kind == "fat-tree":
                shape = self.simgrid.FatTreeParams(len(numbers[0]), *map(list, numbers))
                zone = zones.create_fatTree_zone(kind, root, shape, *ends)
            elif kind == "dragonfly":
                shape = self.simgrid.DragonflyParams(*numbers[:3], numbers[3][0])
                zone = zones.create_dragonfly_zone(kind, root, shape, *ends)
            else:
                zone = zones.create_torus_zone(kind, root, list(numbers[0]), *ends)
        zone.seal()
        return Platform(self.hosts, self.network.between)

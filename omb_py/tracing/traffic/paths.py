"""Which way data went: what ranks moved within and between hosts, beside what links carried."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from omb_py.tracing.counters.connections import Connections
from omb_py.tracing.counters.kernel import METER
from omb_py.tracing.counters.links import HOST, NETWORK, LinkUsage
from omb_py.tracing.counters.messages import GET, MESSAGES, PUT
from omb_py.tracing.traffic.reading import RankTraffic
from omb_py.tracing.traffic.requested import Pairs, Requested, total

LEAST = 256 << 10
"""Bytes below which other traffic of a host is no less."""

CARRIED, PART = 0.5, 0.1
"""A link carried data if it sent so much of it; one of several, if so much."""

RANKS_TCP = "TCP of the ranks"
SHARED_MEMORY = "shared memory"
NOTHING = "-"
TOO_LITTLE = "too little to tell"
NO_WIRE = "no link with counters"
NOT_READ = "wires were not read"


@dataclass(frozen=True)
class HostPath:
    """Data that ranks of a host moved ``within`` it, or to other hosts.

    ``requested`` and ``moved`` are messages and bytes, the former of the program's sends alone;
    ``moved`` is None where the library does not tell, but for bytes over TCP to other hosts: these
    the kernel counts for each rank. ``path`` says in words what carried it:
    ``host_links`` where it was any.
    """

    host: str
    ranks: tuple[int, ...]
    within: bool
    requested: tuple[int, int]
    moved: tuple[int | None, int] | None
    path: str
    links: tuple[LinkUsage, ...]


def moved(ranks: Iterable[RankTraffic]) -> Pairs | None:
    """All that the library moved between two ranks; None where some rank's counts are missing."""
    found: Pairs = {}
    for one in ranks:
        if one.why or not one.complete:
            return None
        for kind in (MESSAGES, PUT, GET):
            for peer, messages, nbytes in one.moved.get(kind, ()):
                pair = (peer, one.rank) if kind == GET else (one.rank, peer)
                before = found.get(pair, (0, 0))
                found[pair] = before[0] + messages, before[1] + nbytes
    return found


def rank_tcp(ranks: Iterable[RankTraffic]) -> Connections | None:
    """What the TCP connections of ranks carried together; None where some rank's are not known."""
    found = Connections()
    for one in ranks:
        if one.connections is None:
            return None
        found += one.connections
    return found


def host_links(ranks: Sequence[RankTraffic]) -> Iterator[tuple[str, LinkUsage]]:
    """Hosts and what their links carried, and what the ranks' own connections did of it."""
    for one in ranks:
        for link in one.links:
            yield one.host, link
        tcp = rank_tcp(other for other in ranks if other.leader == one.rank)
        if tcp is not None and one.rank == one.leader:
            events = {"bytes within the host": tcp.within, "bytes sent again": tcp.again}
            events = {name: nbytes for name, nbytes in events.items() if nbytes}
            sent = tcp.within + tcp.beyond
            yield one.host, LinkUsage(METER, RANKS_TCP, sent, tcp.received, HOST, events=events)


def host_paths(ranks: Sequence[RankTraffic], requested: Requested) -> list[HostPath]:
    """Two for each host: within it, and from it to others where there are any."""
    pairs = moved(ranks)
    if pairs is not None and len(ranks) < ranks[0].ranks:
        pairs = None
    leader = {one.rank: one.leader for one in ranks}
    found = []
    for first in sorted(set(leader.values())):
        mine = tuple(rank for rank in leader if leader[rank] == first)
        host = next((one for one in ranks if one.rank == first), None)
        name = next(one.host for one in ranks if one.leader == first)
        carried = host.links if host is not None and host.complete else None
        tcp = rank_tcp(one for one in ranks if one.leader == first)
        for within in (True, False):
            if not within and len(set(leader.values())) < 2:
                continue
            found.append(_way(name, mine, within, requested, pairs, carried, tcp))
    return found


def _way(
    name: str,
    mine: tuple[int, ...],
    within: bool,
    requested: Requested,
    pairs: Pairs | None,
    carried: Sequence[LinkUsage] | None,
    tcp: Connections | None,
) -> HostPath:
    members = set(mine)

    def chosen(all_pairs: Pairs) -> list[tuple[int, int]]:
        return [
            (source, target)
            for source, target in all_pairs
            if source in members and source != target and (target in members) == within
        ]

    messages = requested.messages()
    wanted = total(messages, chosen(messages))
    amount: tuple[int | None, int] | None
    amount = None if pairs is None else total(pairs, chosen(pairs))
    if carried is None:
        return HostPath(name, mine, within, wanted, amount, NOT_READ, ())
    if within and len(mine) < 2:
        return HostPath(name, mine, within, wanted, amount, NOTHING, ())
    if amount is not None:
        uncounted = total(requested.persistent, chosen(requested.persistent))[1]
        path, links = carriers(carried, within, amount[1] + uncounted, CARRIED, tcp)
    else:  # collectives move about what they are asked for, by whichever way
        scale = wanted[1] + sum(requested.by_rank.get(rank, 0) for rank in mine)
        path, links = carriers(carried, within, scale, PART, tcp)
        over_tcp = not within and links and all(link.meter == METER for link in links)
        if over_tcp and tcp is not None and tcp.beyond >= wanted[1]:
            amount = (None, tcp.beyond)
    return HostPath(name, mine, within, wanted, amount, path, links)


def carriers(
    carried: Sequence[LinkUsage],
    within: bool,
    nbytes: int,
    share: float,
    tcp: Connections | None = None,
) -> tuple[str, tuple[LinkUsage, ...]]:
    """What carried so many bytes, in words, and the links that did, the busiest first.

    A link did where all such together carried that ``share`` of the bytes. A network interface did
    not where ``tcp``, what the ranks' own connections sent, is less, unless it is the only one that
    can have.
    """
    if nbytes == 0:
        return NOTHING, ()
    if nbytes < LEAST:
        return TOO_LITTLE, ()
    reach = HOST if within else NETWORK
    there = [link for link in carried if link.reach == reach and link.sent is not None]
    names = {link.name for link in there}
    # where links lie over each other, the lowest ones count
    lowest = [link for link in there if not names.intersection(link.over)]
    if tcp is not None and (tcp.within if within else tcp.beyond) < PART * nbytes:
        others = [link for link in lowest if link.meter != METER]
        if within or sum(link.sent or 0 for link in others) >= share * nbytes:
            lowest = others
    busy = [link for link in lowest if (link.sent or 0) >= PART * nbytes]
    busy.sort(key=lambda link: -(link.sent or 0))
    if sum(link.sent or 0 for link in busy) < share * nbytes:
        return (SHARED_MEMORY if within else NO_WIRE), ()
    return ", ".join(link.name for link in busy), tuple(busy)

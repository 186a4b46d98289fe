"""Paths of data: requests of ranks within and between hosts, and the traffic of links.

`read_folder` reads the traffic of a run from the files of its ranks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from omb_py.core.errors import UsageError
from omb_py.core.text import files
from omb_py.tracing import counters
from omb_py.tracing.counters.connections import ConnectionCounters
from omb_py.tracing.counters.kernel import METER
from omb_py.tracing.counters.links import HOST, NETWORK, Link, LinkUsage, usage
from omb_py.tracing.records.layout import NOBODY
from omb_py.tracing.records.reading import NS, RankRecord
from omb_py.tracing.records.routines import Role, file_direction, prepares, role

Count = Annotated[int, Field(ge=0)]


class TrafficRow(BaseModel):
    """A part of a file: its values have exactly the types that are named."""

    model_config = ConfigDict(strict=True, frozen=True)


class RankTraffic(TrafficRow):
    """The contents of one rank's file.

    ``leader`` is the lowest rank on the same host; it has the ``links`` of the host.
    ``connections`` is None if the rank did not report them, as is ``storage``, the bytes that its
    process has read from storage and written to it.
    """

    version: Annotated[int, Field(ge=counters.VERSION, le=counters.VERSION)] | None = None
    rank: Count
    ranks: Count
    host: str
    leader: Count
    library: str
    complete: bool
    before: tuple[Link, ...]
    after: tuple[Link, ...]
    connections: ConnectionCounters | None = None
    storage: tuple[Count, Count] | None = None

    @property
    def links(self) -> list[LinkUsage]:
        """The traffic of the host's links."""
        after = {(link.meter, link.name): link for link in self.after}
        pairs = ((link, after.get((link.meter, link.name))) for link in self.before)
        return [usage(before, after) for before, after in pairs if after is not None]

    @model_validator(mode="after")
    def _within(self) -> RankTraffic:
        if max(self.rank, self.leader) >= self.ranks:
            raise ValueError(f"there are no more than {self.ranks} ranks")
        return self


def read_folder(folder: str | Path) -> list[RankTraffic]:
    """Return the traffic of all ranks of a run, by rank.

    Raises `UsageError` when there is none, and for files that are damaged or of several runs.
    """
    paths = sorted(Path(folder).glob("traffic-*.json"))
    if not paths:
        raise UsageError(
            f"{folder} holds no traffic: run omb-py profile --traffic, which counts it"
        )
    found = sorted((read(path) for path in paths), key=lambda one: one.rank)
    if len({one.ranks for one in found}) > 1 or len({one.rank for one in found}) < len(found):
        raise UsageError(f"{folder} holds traffic of several runs: give each a folder of its own")
    return found


def read(path: Path) -> RankTraffic:
    """Return the traffic in a file; raises `UsageError` if it is not one or cannot be read."""
    try:
        return RankTraffic.model_validate_json(files.read(path, UsageError))
    except ValidationError as error:
        if any(fault["loc"] == ("version",) for fault in error.errors()):
            raise UsageError(
                f"{path} is of another version of omb-py: read it with that one"
            ) from error
        raise UsageError(f"{path} is no traffic of omb-py profile, or damaged") from error


Pairs: TypeAlias = dict[tuple[int, int], tuple[int, int]]
"""Messages and bytes from a rank to another one, both in MPI_COMM_WORLD."""

CollectiveKey: TypeAlias = tuple[str, int, int]
"""A routine's name in records, the size of the communicator, the bin of the message size."""


@dataclass
class RequestedCollective:
    """Collective calls that are alike: how many, and the bytes of all ranks together."""

    calls: float = 0.0
    nbytes: int = 0


@dataclass
class FileUse:
    """Calls of a rank that read data of files, or write it: how many, bytes, seconds in them."""

    calls: int = 0
    nbytes: int = 0
    seconds: float = 0.0


@dataclass
class Requested:
    """``sends``: messages between two ranks.

    ``windows``: accesses of a rank to another's window. ``files``: by direction
    (`records.routines.file_direction`) and rank.
    ``by_rank`` are the bytes that a rank had in collective calls.
    """

    sends: Pairs = field(default_factory=dict)
    windows: Pairs = field(default_factory=dict)
    collectives: dict[CollectiveKey, RequestedCollective] = field(default_factory=dict)
    by_rank: dict[int, int] = field(default_factory=dict)
    files: dict[tuple[str, int], FileUse] = field(default_factory=dict)


def requested_traffic(records: Iterable[RankRecord]) -> Requested:
    """Return all that the ranks asked for."""
    found = Requested()
    for record in records:
        communicators = record.communicators
        for cell in record.cells:
            routine, peer = record.name(int(cell["routine"])), int(cell["peer"])
            calls, nbytes = int(cell["calls"]), max(0, int(cell["nbytes"]))
            if prepares(routine):
                continue  # it sends nothing until it is started
            what = role(routine)
            if what in (Role.SEND, Role.SENDRECV):
                if peer != NOBODY:
                    # records count what such a call sends and receives together
                    sent = nbytes // 2 if what is Role.SENDRECV else nbytes
                    _add(found.sends, (record.rank, peer), calls, sent)
            elif what is Role.ONE_SIDED and peer != NOBODY and nbytes:
                _add(found.windows, (record.rank, peer), calls, nbytes)
            elif (way := file_direction(routine)) is not None:
                use = found.files.setdefault((way, record.rank), FileUse())
                use.calls += calls
                use.nbytes += nbytes
                use.seconds += int(cell["ns"]) * NS
            elif what is Role.COLLECTIVE:
                communicator = communicators.get(int(cell["communicator"]))
                size = communicator.size if communicator is not None else record.ranks
                if size < 2:
                    continue
                one = found.collectives.setdefault(
                    (routine, size, int(cell["bin"])), RequestedCollective()
                )
                one.calls += calls / size
                one.nbytes += nbytes
                found.by_rank[record.rank] = found.by_rank.get(record.rank, 0) + nbytes
    return found


def total(amounts: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Return messages and bytes together."""
    found = list(amounts)
    return sum(one[0] for one in found), sum(one[1] for one in found)


def _add(pairs: Pairs, pair: tuple[int, int], messages: int, nbytes: int) -> None:
    before = pairs.get(pair, (0, 0))
    pairs[pair] = before[0] + messages, before[1] + nbytes


LEAST = 256 << 10
"""Bytes below which other traffic of a host is no less."""

CARRIED = 0.1
"""A link carried data if it sent so much of it: collectives move less, or more, than they are
asked for."""

RANKS_TCP = "TCP of the ranks"
SHARED_MEMORY = "shared memory"
NOTHING = "-"
TOO_LITTLE = "too little to tell"
NO_LINK = "no link with counters"
NOT_READ = "links were not read"


@dataclass(frozen=True)
class HostPath:
    """Data of ranks of a host that stays ``within`` it, or goes to other hosts.

    ``requested`` are messages and bytes of the program's sends; ``moved`` the bytes over TCP to
    other hosts, which the kernel counts for each rank, None if that was not the path. ``path``
    names the path in words; ``links`` are its links, if any.
    """

    host: str
    ranks: tuple[int, ...]
    within: bool
    requested: tuple[int, int]
    moved: int | None
    path: str
    links: tuple[LinkUsage, ...]


def rank_tcp(ranks: Iterable[RankTraffic]) -> ConnectionCounters | None:
    """Return the TCP traffic of ranks together; None if that of a rank is unknown."""
    found = ConnectionCounters()
    for one in ranks:
        if one.connections is None:
            return None
        found += one.connections
    return found


def host_links(ranks: Sequence[RankTraffic]) -> Iterator[tuple[str, LinkUsage]]:
    """Yield hosts with the traffic of their links, and of the ranks' own connections."""
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
    leader = {one.rank: one.leader for one in ranks}
    found = []
    for first in sorted(set(leader.values())):
        mine = [one for one in ranks if one.leader == first]
        host = next((one for one in mine if one.rank == first), None)
        carried = host.links if host is not None and host.complete else None
        for within in (True, False):
            if within or len(set(leader.values())) > 1:
                found.append(_path(mine, within, requested, carried))
    return found


def _path(
    ranks: Sequence[RankTraffic],
    within: bool,
    requested: Requested,
    carried: Sequence[LinkUsage] | None,
) -> HostPath:
    """Return the path of data of a host's ranks."""
    members = {one.rank for one in ranks}
    wanted = total(
        amount
        for (source, target), amount in requested.sends.items()
        if source in members and source != target and (target in members) == within
    )
    host = (ranks[0].host, tuple(sorted(members)), within, wanted)
    if carried is None:
        return HostPath(*host, None, NOT_READ, ())
    if within and len(members) < 2:
        return HostPath(*host, None, NOTHING, ())
    tcp = rank_tcp(ranks)
    nbytes = wanted[1] + sum(requested.by_rank.get(rank, 0) for rank in members)
    path, links = carriers(carried, within, nbytes, tcp)
    over_tcp = not within and links and all(link.meter == METER for link in links)
    moved = tcp.beyond if over_tcp and tcp is not None and tcp.beyond >= wanted[1] else None
    return HostPath(*host, moved, path, links)


def carriers(
    carried: Sequence[LinkUsage],
    within: bool,
    nbytes: int,
    tcp: ConnectionCounters | None = None,
) -> tuple[str, tuple[LinkUsage, ...]]:
    """Return in words what carried ``nbytes`` bytes, and the links that did, the busiest first.

    A kind of link did if its links together carried `CARRIED` of the bytes. A network interface did
    not if ``tcp``, the data of the ranks' own connections, is less, unless no other link can have.
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
    if tcp is not None and (tcp.within if within else tcp.beyond) < CARRIED * nbytes:
        others = [link for link in lowest if link.meter != METER]
        if within or sum(link.sent or 0 for link in others) >= CARRIED * nbytes:
            lowest = others
    busy = [link for link in lowest if (link.sent or 0) >= CARRIED * nbytes]
    busy.sort(key=lambda link: -(link.sent or 0))
    if sum(link.sent or 0 for link in busy) < CARRIED * nbytes:
        return (SHARED_MEMORY if within else NO_LINK), ()
    return ", ".join(link.name for link in busy), tuple(busy)

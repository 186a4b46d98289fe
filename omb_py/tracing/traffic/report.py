"""The traffic of a run put together, and as rows of one table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from omb_py.tracing.records import Record
from omb_py.tracing.records.routines import WRITTEN
from omb_py.tracing.traffic.breakdown import TrafficEntry, breakdown
from omb_py.tracing.traffic.paths import HostPath, host_links, host_paths, moved
from omb_py.tracing.traffic.reading import RankTraffic
from omb_py.tracing.traffic.requested import Pairs, Requested, requested_traffic

COLUMNS = (
    *("table", "host", "from", "to", "what", "communicator_size", "calls", "call_bytes"),
    *("asked_messages", "asked_bytes", "moved_messages", "moved_bytes", "between_hosts_bytes"),
    *("wire", "sent_bytes", "received_bytes", "path", "algorithm", "remark", "seconds"),
)


WITHIN, BEYOND = "within", "to other hosts"
"""Whether data stays on its host."""


@dataclass(frozen=True)
class TrafficReport:
    """All that is known of a run's traffic; ``pairs`` is None where the library does not tell."""

    ranks: Sequence[RankTraffic]
    requested: Requested
    ways: Sequence[HostPath]
    items: Sequence[TrafficEntry]
    pairs: Pairs | None
    recorded: bool


def traffic(ranks: Sequence[RankTraffic], records: Sequence[Record]) -> TrafficReport:
    """What was asked for, moved and carried, from the files of ranks and their records."""
    wanted = requested_traffic(records)
    found = host_paths(ranks, wanted)
    return TrafficReport(
        ranks, wanted, found, breakdown(ranks, wanted, found), moved(ranks), bool(records)
    )


@dataclass(frozen=True)
class Amounts:
    """Messages and bytes between two ranks: the program's, those that the library counted, and
    those of the latter that are its own."""

    program: tuple[int, int]
    moved: tuple[int, int]
    own: tuple[int, int]


def amounts(found: TrafficReport) -> dict[tuple[int, int], Amounts]:
    """What was sent between each pair of ranks."""
    known: Pairs = found.pairs or {}
    messages = found.requested.messages()
    table = {}
    for pair in sorted(known.keys() | messages.keys()):
        moved, counted = known.get(pair, (0, 0)), found.requested.sends.get(pair, (0, 0))
        own = max(0, moved[0] - counted[0]), max(0, moved[1] - counted[1])
        table[pair] = Amounts(messages.get(pair, (0, 0)), moved, own)
    return table


def rows(found: TrafficReport) -> Iterator[dict[str, Any]]:
    """All tables as rows of one, with `COLUMNS`; what is not known is left out."""
    for item in found.items:
        messages, nbytes = item.moved or (None, None)
        yield {
            "table": "items",
            "what": item.what,
            "communicator_size": item.size or None,
            "calls": whole(item.calls),
            "call_bytes": whole(item.each),
            "asked_bytes": item.nbytes,
            "moved_messages": whole(messages),
            "moved_bytes": whole(nbytes),
            "between_hosts_bytes": whole(item.between),
            "path": item.path,
            "algorithm": item.algorithm,
        }
    for way in found.ways:
        yield {
            "table": "paths",
            "host": way.host,
            "what": WITHIN if way.within else BEYOND,
            "asked_messages": way.requested[0],
            "asked_bytes": way.requested[1],
            "moved_messages": way.moved[0] if way.moved else None,
            "moved_bytes": way.moved[1] if way.moved else None,
            "sent_bytes": sum(link.sent or 0 for link in way.links) if way.links else None,
            "path": way.path,
        }
    for host, link in host_links(found.ranks):
        events = [f"{count} {name}" for name, count in link.events.items()]
        yield {
            "table": "wires",
            "host": host,
            "wire": link.name,
            "sent_bytes": link.sent,
            "received_bytes": link.received,
            "remark": "; ".join(filter(None, [*events, link.remark])),
        }
    known = {one.rank: one for one in found.ranks}
    for (direction, rank), use in sorted(found.requested.files.items()):
        storage = known[rank].storage if rank in known else None
        yield {
            "table": "files",
            "host": known[rank].host if rank in known else None,
            "from": rank,
            "what": direction,
            "calls": use.calls,
            "asked_bytes": use.nbytes,
            "moved_bytes": None if storage is None else storage[direction == WRITTEN],
            "seconds": round(use.seconds, 9),
        }
    for (source, target), amount in amounts(found).items():
        yield {
            "table": "peers",
            "from": source,
            "to": target,
            "what": _where(known, source, target),
            "asked_messages": amount.program[0],
            "asked_bytes": amount.program[1],
            "moved_messages": amount.moved[0] if found.pairs is not None else None,
            "moved_bytes": amount.moved[1] if found.pairs is not None else None,
        }


def _where(known: Mapping[int, RankTraffic], source: int, target: int) -> str | None:
    """As of paths: whether two ranks share a host; None where that is not known."""
    if source not in known or target not in known:
        return None
    return WITHIN if known[source].leader == known[target].leader else BEYOND


def whole(value: float | None) -> int | None:
    """To a whole number."""
    return None if value is None else round(value)

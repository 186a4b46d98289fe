"""The traffic of a run put together, and as rows of one table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from omb_py.core.text.tables import Sheet
from omb_py.core.text.units import amount, number, share_text
from omb_py.core.text.words import some_ranks
from omb_py.tracing.records.routines import READ, WRITTEN
from omb_py.tracing.records.run import RecordedRun
from omb_py.tracing.traffic.paths import (
    NOTHING,
    HostPath,
    Pairs,
    RankTraffic,
    Requested,
    host_links,
    host_paths,
    requested_traffic,
    total,
)

COLUMNS = (
    *("table", "host", "from", "to", "what", "communicator_size", "calls", "call_bytes"),
    *("asked_messages", "asked_bytes", "moved_bytes", "between_hosts_bytes", "link"),
    *("sent_bytes", "received_bytes", "path", "remark", "seconds"),
)

MAX_ROWS = 20
"""Rows of files and of pairs of ranks that a table shows; CSV has all."""

BETWEEN = "between_hosts_bytes"
SAID_OF_LINKS = ("sent_bytes", "received_bytes", "remark")

WITHIN, BEYOND = "within", "to other hosts"
"""Paths of data: within its host, or to other hosts."""

SENDS, WINDOWS, REST, ALL = (
    "messages of the program",
    "accesses to windows",
    "what else the library sent",
    "in all",
)


@dataclass(frozen=True)
class TrafficEntry:
    """One row: ``calls`` with ``nbytes`` of all ranks together, None without requests.

    ``each`` are the bytes of one rank in one call, as records count them. ``between`` is the number
    of bytes to other hosts, None if unknown. ``size`` is that of the communicator, 0 without one.
    """

    what: str
    size: int = 0
    calls: float | None = None
    nbytes: int | None = None
    between: float | None = None
    path: str = ""

    @property
    def each(self) -> float | None:
        """Bytes of one rank in one call."""
        if not self.calls or self.nbytes is None:
            return None
        return self.nbytes / (self.calls * (self.size or 1))


@dataclass(frozen=True)
class TrafficReport:
    """All that is known of a run's traffic; ``notes`` are those on its records."""

    ranks: Sequence[RankTraffic]
    requested: Requested
    paths: Sequence[HostPath]
    entries: Sequence[TrafficEntry]
    notes: Sequence[str]


def traffic(ranks: Sequence[RankTraffic], run: RecordedRun | None) -> TrafficReport:
    """Return requests and traffic, from the files of ranks and their records, if any."""
    wanted = requested_traffic(run.records if run else ())
    paths = host_paths(ranks, wanted)
    notes = run.notes if run else ("there are no records of what the program requested",)
    return TrafficReport(ranks, wanted, paths, list(entries(ranks, wanted, paths)), notes)


def entries(
    ranks: Sequence[RankTraffic], requested: Requested, paths: Sequence[HostPath]
) -> Iterator[TrafficEntry]:
    """Yield the rows: sends, windows, each collective, files, and other data over TCP."""
    where = {one.rank: one.leader for one in ranks}
    alone = len(set(where.values())) == 1

    def beyond(pairs: Pairs) -> int:
        apart = (
            amount
            for (source, target), amount in pairs.items()
            if where.get(source, -1) != where.get(target, -1)
        )
        return total(apart)[1]

    for what, pairs in ((SENDS, requested.sends), (WINDOWS, requested.windows)):
        if pairs:
            (calls, nbytes), between = total(pairs.values()), beyond(pairs)
            path = _path(paths, nbytes > between, between > 0)
            yield TrafficEntry(what, 0, calls, nbytes, between, path)
    by_bytes = sorted(requested.collectives.items(), key=lambda item: -item[1].nbytes)
    for (routine, size, _), wanted in by_bytes:
        path = _path(paths, True, False) if alone else ""  # nothing can have left the host
        yield TrafficEntry(routine, size, wanted.calls, wanted.nbytes, 0 if alone else None, path)
    for direction in (READ, WRITTEN):
        uses = [use for (which, _), use in requested.files.items() if which == direction]
        if calls := sum(use.calls for use in uses):
            yield TrafficEntry(f"data of files {direction}", 0, calls, sum(u.nbytes for u in uses))
    moved = [path.moved for path in paths if not path.within]
    known = [nbytes for nbytes in moved if nbytes is not None]
    if known and len(known) == len(moved):
        wanted_beyond = beyond(requested.sends) + beyond(requested.windows)
        yield TrafficEntry(REST, between=max(0, sum(known) - wanted_beyond))
        yield TrafficEntry(ALL, between=sum(known), path=_path(paths, False, True))


def _path(paths: Sequence[HostPath], within: bool, between: bool) -> str:
    """Return the paths of data on all hosts, within them or between them, or both."""
    wanted = [path for path in paths if (within if path.within else between)]
    return ", ".join(dict.fromkeys(path.path for path in wanted if path.path != NOTHING))


def rows(found: TrafficReport) -> Iterator[dict[str, Any]]:
    """Yield all tables as rows of one, with `COLUMNS` and the columns of `sheets`.

    Unknown values are left out.
    """
    for item in found.entries:
        yield {
            "table": "items",
            "what": item.what,
            "communicator_size": item.size or None,
            "calls": whole(item.calls),
            "call_bytes": whole(item.each),
            "asked_bytes": item.nbytes,
            "between_hosts_bytes": whole(item.between),
            "path": item.path,
        }
    asked = sum(path.requested[1] for path in found.paths)
    for path in found.paths:
        sent = sum(link.sent or 0 for link in path.links) if path.links else None
        yield {
            "table": "paths",
            "host": path.host,
            "what": WITHIN if path.within else BEYOND,
            "asked_messages": path.requested[0],
            "asked_bytes": path.requested[1],
            "moved_bytes": path.moved,
            "sent_bytes": sent,
            "path": path.path,
            "destination": f"{WITHIN}, {len(path.ranks)} ranks" if path.within else BEYOND,
            "share": share_text(path.requested[1] / asked) if asked else None,
            "per byte moved": f"{sent / path.moved:.3f}" if sent and path.moved else None,
        }
    for host, link in host_links(found.ranks):
        said = [f"{number(count)} {name}" for name, count in link.events.items()]
        said += [f"over {', '.join(link.over)}"] if link.over else []
        yield {
            "table": "links",
            "host": host,
            "link": link.name,
            "sent_bytes": link.sent,
            "received_bytes": link.received,
            "remark": "; ".join(filter(None, [*said, link.remark])),
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
    for (source, target), (messages, nbytes) in sorted(found.requested.sends.items()):
        there = source in known and target in known
        same = there and known[source].leader == known[target].leader
        yield {
            "table": "peers",
            "from": source,
            "to": target,
            "what": (WITHIN if same else BEYOND) if there else None,
            "asked_messages": messages,
            "asked_bytes": nbytes,
        }


def whole(value: float | None) -> int | None:
    """To a whole number."""
    return None if value is None else round(value)


@dataclass(frozen=True)
class TrafficTable:
    """A table for people: headings with the columns of rows below them, and a remark.

    ``most``: rows that it shows, those with most bytes; 0: all.
    """

    name: str
    title: str
    columns: dict[str, str]
    remark: str = ""
    most: int = 0


ITEMS = {"requested": "what", "path": "path", "ranks": "communicator_size", "calls": "calls"}
ITEMS |= {"bytes each": "call_bytes", "bytes": "asked_bytes", "to other hosts": BETWEEN}
PATHS = {"host": "host", "to": "destination", "program's messages": "asked_bytes", "share": "share"}
PATHS |= {"moved": "moved_bytes", "path": "path", "carried": "sent_bytes"}
LINKS = {"host": "host", "link": "link", "sent": "sent_bytes", "received": "received_bytes"}
FILES = {"rank": "from", "host": "host", "calls": "calls", "": "what", "bytes": "asked_bytes"}
PEERS = {"rank": "from", "to": "to", "hosts": "what", "messages": "asked_messages"}
TABLES = (
    TrafficTable(
        "items",
        "Requested",
        ITEMS,
        "Bytes are those of all ranks together, bytes each those of one rank in one call.",
    ),
    TrafficTable("paths", "Paths", PATHS | {"per byte moved": "per byte moved"}),
    TrafficTable(
        "links",
        "Links",
        LINKS | {"also": "remark"},
        "A host's links carry what others send on it at the same time, too.",
    ),
    TrafficTable(
        "files",
        "Files",
        FILES | {"seconds": "seconds", "storage": "moved_bytes"},
        "Storage is what the kernel counted for the process, whatever it read or wrote: nothing "
        "for the page cache and file systems in memory. Links carry the data of a file system on "
        "the network, too.",
        MAX_ROWS,
    ),
    TrafficTable("peers", "Peers", PEERS | {"bytes": "asked_bytes"}, most=MAX_ROWS),
)


def shown(column: str, value: Any) -> str:
    """Return a value of a row as a cell."""
    if value in (None, ""):
        return "-"
    if column.endswith("_bytes"):
        return amount(value)
    if column in ("calls", "asked_messages"):
        return number(value)
    return f"{value:.3f}" if column == "seconds" else str(value)


def sheets(found: TrafficReport) -> list[Sheet]:
    """Return the tables, without columns in which nothing is known."""
    every, made = list(rows(found)), []
    for table in TABLES:
        mine = [row for row in every if row["table"] == table.name]
        if table.name == "links":
            mine = [row for row in mine if any(row[name] for name in SAID_OF_LINKS)]
        remarks = [table.remark] if table.remark else []
        if table.most and len(mine) > table.most:
            remarks.append(f"And {len(mine) - table.most} more rows, which --format csv shows.")
            mine = sorted(mine, key=lambda row: -row["asked_bytes"])[: table.most]
        if table.name == "links" and not mine:
            remarks = ["None carried anything."]
        cells = {
            heading: [shown(name, row.get(name)) for row in mine]
            for heading, name in table.columns.items()
        }
        known = {heading: one for heading, one in cells.items() if not mine or {*one} != {"-"}}
        words = sum(heading in known for heading in list(cells)[:2])
        title = table.title
        if table.name == "items":
            title = f"{title}, {found.ranks[0].library}"
        if mine or table.name not in ("files", "peers"):
            lines = tuple(zip(*known.values(), strict=True))
            made.append(Sheet(title, tuple(known), lines, tuple(remarks), left=words))
    return made


def notes(found: TrafficReport) -> list[str]:
    """Return notes about missing and inexact traffic."""
    said = []
    first = found.ranks[0]
    missing = first.ranks - len(found.ranks)
    unfinished = [one.rank for one in found.ranks if not one.complete]
    if missing:
        said.append(f"there is no traffic of {missing} of {first.ranks} ranks")
    if unfinished:
        said.append(f"{some_ranks(unfinished)} did not come to the end: nothing was counted in all")
    return [*said, *found.notes]

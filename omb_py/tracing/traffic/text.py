"""The traffic of a run as tables: on a terminal, as Markdown, as CSV."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from omb_py.core.dataclass import replace
from omb_py.core.text.ranks import some_ranks
from omb_py.core.text.tables import Sheet
from omb_py.core.text.units import amount, number, share_text
from omb_py.tracing.records.routines import READ, WRITTEN
from omb_py.tracing.traffic.paths import FileUse, HostPath, host_links
from omb_py.tracing.traffic.reading import RankTraffic
from omb_py.tracing.traffic.report import BEYOND, WITHIN, TrafficReport

MAX_PAIRS = 20
"""Pairs of ranks, or ranks, that a table shows, those with most bytes; CSV has all."""


def sheets(found: TrafficReport) -> list[Sheet]:
    """The tables, without columns in which nothing is known."""
    made = [_items(found), _paths(found), _links(found), *_files(found), *_pairs(found)]
    return list(map(_known, made))


def _known(sheet: Sheet) -> Sheet:
    """A table without the columns in which nothing is known."""
    kept = [
        index
        for index in range(len(sheet.columns))
        if not sheet.rows or any(row[index] != "-" for row in sheet.rows)
    ]
    return replace(
        sheet,
        columns=tuple(sheet.columns[index] for index in kept),
        rows=tuple(tuple(row[index] for index in kept) for row in sheet.rows),
        left=sum(index < sheet.left for index in kept),
    )


def notes(found: TrafficReport) -> list[str]:
    """What is to be kept in mind."""
    said = []
    first = found.ranks[0]
    missing = first.ranks - len(found.ranks)
    unfinished = [one.rank for one in found.ranks if not one.complete]
    if missing:
        said.append(f"there is no traffic of {missing} of {first.ranks} ranks")
    if unfinished:
        said.append(f"{some_ranks(unfinished)} did not come to the end: nothing was counted in all")
    return [*said, *found.notes]


def _items(found: TrafficReport) -> Sheet:
    rows = tuple(
        (
            item.what,
            item.path or "-",
            str(item.size) if item.size else "-",
            number(item.calls),
            amount(item.each),
            amount(item.nbytes),
            amount(item.between),
        )
        for item in found.entries
    )
    columns = ("requested", "path", "ranks", "calls", "bytes each", "bytes", "to other hosts")
    remark = "Bytes are those of all ranks together, bytes each those of one rank in one call."
    return Sheet(f"Requested, {found.ranks[0].library}", columns, rows, (remark,), left=2)


def _paths(found: TrafficReport) -> Sheet:
    rows = []
    for path in found.paths:
        sent = sum(link.sent or 0 for link in path.links)
        rows.append(
            (
                path.host,
                f"{WITHIN}, {len(path.ranks)} ranks" if path.within else BEYOND,
                amount(path.requested[1]),
                _share(path, found.paths),
                amount(path.moved),
                path.path,
                amount(sent) if path.links else "-",
                f"{sent / path.moved:.3f}" if path.links and path.moved else "-",
            )
        )
    columns = (
        *("host", "to", "program's messages", "share", "moved", "path", "carried"),
        "per byte moved",
    )
    return Sheet("Paths", columns, tuple(rows), left=2)


def _share(path: HostPath, paths: Sequence[HostPath]) -> str:
    """The part of all bytes of the program's messages that takes this path."""
    whole = sum(one.requested[1] for one in paths)
    return share_text(path.requested[1] / whole) if whole else "-"


def _links(found: TrafficReport) -> Sheet:
    rows = []
    for host, link in host_links(found.ranks):
        if not (link.sent or link.received or link.events or link.remark):
            continue
        events = [f"{number(count)} {name}" for name, count in link.events.items()]
        said = [*events, *([f"over {', '.join(link.over)}"] if link.over else []), link.remark]
        also = "; ".join(filter(None, said))
        rows.append((host, link.name, amount(link.sent), amount(link.received), also))
    remarks = (
        "A host's links carry what others send on it at the same time, too."
        if rows
        else "None carried anything.",
    )
    columns = ("host", "link", "sent", "received", "also")
    return Sheet("Links", columns, tuple(rows), remarks, left=2)


def _files(found: TrafficReport) -> Iterator[Sheet]:
    uses, known = found.requested.files, {one.rank: one for one in found.ranks}
    whole: dict[int, int] = {}
    for (_, rank), use in uses.items():
        whole[rank] = whole.get(rank, 0) + use.nbytes
    if not whole:
        return
    shown = sorted(sorted(whole, key=lambda rank: (-whole[rank], rank))[:MAX_PAIRS])
    table = []
    for rank in shown:
        cells = [str(rank), known[rank].host if rank in known else "-"]
        storage = (known[rank].storage if rank in known else None) or (None, None)
        for direction, moved in zip((READ, WRITTEN), storage, strict=True):
            use = uses.get((direction, rank), FileUse())
            cells += [number(use.calls), amount(use.nbytes), f"{use.seconds:.3f}", amount(moved)]
        table.append(tuple(cells))
    columns = (
        *("rank", "host", "reads", "read", "seconds", "from storage"),
        *("writes", "written", "seconds", "to storage"),
    )
    remarks = [
        "Storage is what the kernel counted for the process, whatever it read or wrote: nothing "
        "for the page cache and file systems in memory. Links carry the data of a file system on "
        "the network, too."
    ]
    if len(whole) > MAX_PAIRS:
        remarks.append(f"And {len(whole) - MAX_PAIRS} more ranks, which --format csv shows.")
    yield Sheet("Files", columns, tuple(table), tuple(remarks), left=2)


def _pairs(found: TrafficReport) -> Iterator[Sheet]:
    known = {one.rank: one for one in found.ranks}
    pairs = found.requested.sends
    if not pairs:
        return
    shown = sorted(pairs, key=lambda pair: (-pairs[pair][1], pair))
    rows = tuple(
        (
            f"{source} → {target}",
            _hosts(known, source, target),
            number(pairs[source, target][0]),
            amount(pairs[source, target][1]),
        )
        for source, target in shown[:MAX_PAIRS]
    )
    more = len(shown) - MAX_PAIRS
    remarks = (f"And {more} more pairs of ranks, which --format csv shows.",) if more > 0 else ()
    yield Sheet("Peers", ("ranks", "hosts", "messages", "bytes"), rows, remarks, left=2)


def _hosts(known: Mapping[int, RankTraffic], source: int, target: int) -> str:
    """The host of two ranks, or both where they differ."""
    if source not in known or target not in known:
        return "-"
    first, second = known[source], known[target]
    return first.host if first.leader == second.leader else f"{first.host} → {second.host}"

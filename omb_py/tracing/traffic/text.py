"""The traffic of a run as tables: on a terminal, as Markdown, as CSV."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from omb_py.core.dataclass import replace
from omb_py.core.text.ranks import some_ranks
from omb_py.core.text.tables import Sheet
from omb_py.core.text.units import amount, number, share_text
from omb_py.tracing.records.routines import READ, WRITTEN
from omb_py.tracing.traffic.breakdown import NOT_REPORTED
from omb_py.tracing.traffic.paths import HostPath, host_links
from omb_py.tracing.traffic.reading import RankTraffic
from omb_py.tracing.traffic.report import (
    BEYOND,
    WITHIN,
    TrafficReport,
    amounts,
)
from omb_py.tracing.traffic.requested import FileUse

UNKNOWN = ("-", NOT_REPORTED)

MAX_PAIRS = 20
"""Pairs of ranks, or ranks, that a table shows, those with most bytes; CSV has all."""


def sheets(found: TrafficReport) -> list[Sheet]:
    """The tables; where the library tells nothing they have no columns for it."""
    made = [_items(found), _ways(found), _links(found), *_files(found), *_pairs(found)]
    return made if found.pairs is not None else list(map(_known, made))


def _known(sheet: Sheet) -> Sheet:
    """A table without the columns in which nothing is known."""
    kept = [
        index
        for index in range(len(sheet.columns))
        if not sheet.rows or any(row[index] not in UNKNOWN for row in sheet.rows)
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
        said.append(f"there is no traffic of {missing} of {first.ranks} ranks.")
    if unfinished:
        said.append(
            f"{some_ranks(unfinished)} did not come to the end: nothing was counted in all."
        )
    reasons = dict.fromkeys(one.why for one in found.ranks if one.why)
    said += [f"what the library moved: {reason}." for reason in reasons]
    if found.requested.persistent and found.pairs is not None:
        said.append(f"{first.vendor} does not count the messages of persistent requests.")
    if not found.recorded:
        said.append("there are no records of what the program requested.")
    return said


def _items(found: TrafficReport) -> Sheet:
    rows = tuple(
        (
            item.what,
            item.algorithm or "-",
            item.path or "-",
            str(item.size) if item.size else "-",
            number(item.calls),
            amount(item.each),
            amount(item.nbytes),
            number(item.moved[0] if item.moved else None),
            amount(item.moved[1] if item.moved else None),
            amount(item.between),
        )
        for item in found.items
    )
    columns = (
        *("requested", "algorithm", "path", "ranks", "calls", "bytes each", "bytes"),
        *("messages moved", "bytes moved", "to other hosts"),
    )
    remark = "Bytes are those of all ranks together, bytes each those of one rank in one call."
    if found.pairs is not None:
        remark += (
            " Of each kind of collective call a few were looked at, the others are taken to have "
            "sent the same."
        )
    return Sheet(f"Requested and moved, {found.ranks[0].library}", columns, rows, (remark,), left=3)


def _ways(found: TrafficReport) -> Sheet:
    rows = []
    for way in found.ways:
        sent = sum(link.sent or 0 for link in way.links)
        scale = way.moved[1] if way.moved else 0
        rows.append(
            (
                way.host,
                f"{WITHIN}, {len(way.ranks)} ranks" if way.within else BEYOND,
                amount(way.requested[1]),
                _share(way, found.ways),
                amount(way.moved[1] if way.moved else None),
                way.path,
                amount(sent) if way.links else "-",
                f"{sent / scale:.3f}" if way.links and scale else "-",
            )
        )
    columns = (
        *("host", "way", "program's messages", "share", "moved", "path", "carried"),
        "per byte moved",
    )
    return Sheet("Paths", columns, tuple(rows), left=2)


def _share(way: HostPath, ways: Sequence[HostPath]) -> str:
    """The part of all bytes of the program's messages that takes this way."""
    whole = sum(one.requested[1] for one in ways)
    return share_text(way.requested[1] / whole) if whole else "-"


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
        for way, moved in zip((READ, WRITTEN), storage, strict=True):
            use = uses.get((way, rank), FileUse())
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
    pairs = amounts(found)
    if not pairs:
        return
    shown = sorted(
        pairs, key=lambda pair: (-max(pairs[pair].moved[1], pairs[pair].program[1]), pair)
    )
    told = found.pairs is not None
    rows = tuple(
        (
            f"{source} → {target}",
            _hosts(known, source, target),
            number(one.program[0]),
            amount(one.program[1]),
            number(one.moved[0] if told else None),
            amount(one.moved[1] if told else None),
            number(one.own[0] if told else None),
            amount(one.own[1] if told else None),
        )
        for source, target in shown[:MAX_PAIRS]
        for one in [pairs[source, target]]
    )
    columns = (
        *("ranks", "hosts", "program's messages", "bytes", "messages moved", "bytes moved"),
        *("of them the library's own", "bytes of these"),
    )
    more = len(shown) - MAX_PAIRS
    remarks = (f"And {more} more pairs of ranks, which --format csv shows.",) if more > 0 else ()
    yield Sheet("Peers", columns, rows, remarks, left=2)


def _hosts(known: Mapping[int, RankTraffic], source: int, target: int) -> str:
    """The host of two ranks, or both where they differ."""
    if source not in known or target not in known:
        return "-"
    first, second = known[source], known[target]
    return first.host if first.leader == second.leader else f"{first.host} → {second.host}"

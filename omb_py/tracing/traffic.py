"""The traffic of a run: what the program requested of MPI, and what links of its hosts counted.

`read_folder` reads the files of its ranks, `sheets` and `rows` show all that is known of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from omb_py.core.errors import UsageError
from omb_py.core.text import files
from omb_py.core.text.tables import Sheet
from omb_py.core.text.units import amount, number
from omb_py.core.text.words import some_ranks
from omb_py.tracing.counters import VERSION, Link, usage
from omb_py.tracing.records.layout import NOBODY
from omb_py.tracing.records.reading import RankRecord
from omb_py.tracing.records.routines import (
    Role,
    begins_collective,
    prepares,
    role,
    sent_bytes,
)
from omb_py.tracing.records.run import RecordedRun

Count = Annotated[int, Field(ge=0)]


class RankTraffic(BaseModel):
    """The contents of one rank's file, whose values have exactly the types that are named.

    ``leader`` is the lowest rank on the same host; it has the ``links`` of the host.
    """

    model_config = ConfigDict(strict=True, frozen=True)

    version: Annotated[int, Field(ge=VERSION, le=VERSION)] | None = None
    rank: Count
    ranks: Count
    host: str
    leader: Count
    library: str
    complete: bool
    before: tuple[Link, ...]
    after: tuple[Link, ...]

    @property
    def links(self) -> list[Link]:
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


@dataclass
class Requested:
    """Calls that are alike, of all ranks: how many, and their bytes.

    ``between`` is the number of bytes to other hosts, None if unknown.
    """

    calls: float = 0.0
    nbytes: int = 0
    between: int | None = 0


Kind: TypeAlias = tuple[str, int, int]
"""What was requested, the size of the communicator, the bin of the message size; 0 if that does not
matter."""

SENDS, WINDOWS = ("messages of the program", 0, 0), ("accesses to windows", 0, 0)
KINDS = {Role.SEND: SENDS, Role.SENDRECV: SENDS, Role.ONE_SIDED: WINDOWS}


@dataclass(frozen=True)
class Traffic:
    """All that is known of a run's traffic.

    ``requested`` has sends, accesses to windows, then collective calls, those with most bytes
    first. ``notes`` are those on its records.
    """

    ranks: Sequence[RankTraffic]
    requested: dict[Kind, Requested]
    notes: Sequence[str]


def traffic(ranks: Sequence[RankTraffic], run: RecordedRun | None) -> Traffic:
    """Return requests and traffic, from the files of ranks and their records, if any."""
    notes = run.notes if run else ("there are no records of what the program requested",)
    leaders = {one.rank: one.leader for one in ranks}
    return Traffic(ranks, requested_traffic(run.records if run else (), leaders), notes)


def requested_traffic(
    records: Iterable[RankRecord], leaders: dict[int, int]
) -> dict[Kind, Requested]:
    """Return all that the ranks asked for; ranks with the same leader share a host."""
    found: dict[Kind, Requested] = {}
    for record in records:
        for kind, calls, nbytes, between in asked_by(record, leaders):
            one = found.setdefault(kind, Requested())
            one.calls += calls
            one.nbytes += nbytes
            if one.between is not None:
                one.between = None if between is None else one.between + between
    collectives = sorted(found.keys() - {SENDS, WINDOWS}, key=lambda kind: -found[kind].nbytes)
    return {kind: found[kind] for kind in (SENDS, WINDOWS, *collectives) if kind in found}


def asked_by(
    record: RankRecord, leaders: dict[int, int]
) -> Iterator[tuple[Kind, float, int, int | None]]:
    """Yield what a rank asked for: its kind, calls, bytes, and bytes to other hosts if known.

    A collective call of n ranks is 1 / n of a call on each. Left out are calls that send nothing,
    or not until they are started.
    """
    communicators, alone = record.communicators, len(set(leaders.values())) == 1
    for cell in record.cells:
        routine, calls = record.name(int(cell["routine"])), int(cell["calls"])
        nbytes, peer = int(sent_bytes(routine, max(0, int(cell["nbytes"])))), int(cell["peer"])
        kind = KINDS.get(role(routine))
        if begins_collective(routine):
            communicator = communicators.get(int(cell["communicator"]))
            size = communicator.size if communicator is not None else record.ranks
            if size > 1:  # the library chooses who sends to whom
                place = routine, size, int(cell["bin"])
                yield place, calls / size, nbytes, 0 if alone else None
        elif kind and not prepares(routine) and peer != NOBODY and (nbytes or kind == SENDS):
            here = leaders.get(record.rank, -1) == leaders.get(peer, -1)
            yield kind, calls, nbytes, 0 if here else nbytes


COLUMNS = (
    *("table", "host", "what", "communicator_size", "calls", "call_bytes", "asked_bytes"),
    *("between_hosts_bytes", "link", "sent_bytes", "received_bytes", "remark"),
)


def rows(found: Traffic) -> list[dict[str, Any]]:
    """Return both tables as rows of one, with `COLUMNS`; unknown values are None or left out.

    ``call_bytes`` are those of one rank in one call.
    """
    return [*_requested(found), *_links(found)]


def _requested(found: Traffic) -> Iterator[dict[str, Any]]:
    for (what, size, _), one in found.requested.items():
        yield {
            "table": "items",
            "what": what,
            "communicator_size": size or None,
            "calls": round(one.calls),
            "call_bytes": round(one.nbytes / (one.calls * (size or 1))) if one.calls else None,
            "asked_bytes": one.nbytes,
            "between_hosts_bytes": one.between,
        }


def _links(found: Traffic) -> Iterator[dict[str, Any]]:
    for rank in found.ranks:
        for link in rank.links:
            said = [f"{number(count)} {name}" for name, count in link.events.items()]
            said += [f"over {', '.join(link.over)}"] if link.over else []
            yield {
                "table": "links",
                "host": rank.host,
                "link": link.name,
                "sent_bytes": link.sent,
                "received_bytes": link.received,
                "remark": "; ".join(filter(None, [*said, link.remark])),
            }


REQUESTED = {
    "requested": "what",
    "ranks": "communicator_size",
    "calls": "calls",
    "bytes each": "call_bytes",
    "bytes": "asked_bytes",
    "to other hosts": "between_hosts_bytes",
}
LINKS = {
    "host": "host",
    "link": "link",
    "sent": "sent_bytes",
    "received": "received_bytes",
    "also": "remark",
}
"""Headings of the tables, with the columns of rows below them."""


def sheets(found: Traffic) -> list[Sheet]:
    """Return the tables, without columns in which nothing is known."""
    busy = [
        row for row in _links(found) if row["sent_bytes"] or row["received_bytes"] or row["remark"]
    ]
    return [
        _sheet(
            f"Requested, {found.ranks[0].library}",
            REQUESTED,
            list(_requested(found)),
            "Bytes are those of all ranks together, bytes each those of one rank in one call.",
        ),
        _sheet(
            "Links",
            LINKS,
            busy,
            "A host's links carry what others send on it at the same time, too."
            if busy
            else "None carried anything.",
            2,
        ),
    ]


def _sheet(
    title: str, columns: dict[str, str], rows: list[dict[str, Any]], remark: str, left: int = 1
) -> Sheet:
    cells = {head: [_shown(name, row[name]) for row in rows] for head, name in columns.items()}
    known = {head: one for head, one in cells.items() if not rows or {*one} != {"-"}}
    lines = tuple(zip(*known.values(), strict=True))
    return Sheet(title, tuple(known), lines, (remark,), left)


def _shown(column: str, value: Any) -> str:
    """Return a value of a row as a cell."""
    if value in (None, ""):
        return "-"
    if column.endswith("_bytes"):
        return amount(value)
    return number(value) if column == "calls" else str(value)


def notes(found: Traffic) -> list[str]:
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

"""The traffic of a run, read from the files of its ranks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from omb_py.core.errors import UsageError
from omb_py.core.text import files
from omb_py.tracing import counters
from omb_py.tracing.counters.connections import Connections
from omb_py.tracing.counters.links import Link, LinkUsage, usage
from omb_py.tracing.counters.matching import Call
from omb_py.tracing.records.layout import NOBODY

Count = Annotated[int, Field(ge=0)]
Sent = tuple[tuple[Count, Count, Count], ...]
"""Rows of a peer's rank in MPI_COMM_WORLD, messages and bytes."""


class Row(BaseModel):
    """A part of a file: its values have exactly the types that are named."""

    model_config = ConfigDict(strict=True, frozen=True)


class ProbedCall(Row):
    """One rank's part in a collective call that was sampled, the ``number``-th of its kind."""

    number: Count
    root: int
    sent: Sent


class CallKind(Row):
    """One rank's calls of a routine with one size on a communicator; ``looks`` were sampled."""

    routine: str
    members: tuple[int, ...]
    instance: Count
    nbytes: int
    calls: Count
    looks: tuple[ProbedCall, ...]


class RankTraffic(Row):
    """What one rank's file says. ``moved`` is empty and ``why`` says why where nobody counted.

    ``leader`` is the lowest rank on the same host; it has the ``links`` of the host.
    ``connections`` is None where the rank did not report them, as is ``storage``, the bytes that
    its process has read from storage and written to it.
    """

    version: Annotated[int, Field(ge=counters.VERSION, le=counters.VERSION)] | None = None
    rank: Count
    ranks: Count
    host: str
    leader: Count
    library: str
    vendor: str
    complete: bool
    why: str
    moved: dict[str, Sent]
    before: tuple[Link, ...]
    after: tuple[Link, ...]
    collectives: tuple[CallKind, ...]
    connections: Connections | None = None
    storage: tuple[Count, Count] | None = None

    @property
    def links(self) -> list[LinkUsage]:
        """What the links of the host carried."""
        after = {(link.meter, link.name): link for link in self.after}
        pairs = ((link, after.get((link.meter, link.name))) for link in self.before)
        return [usage(before, after) for before, after in pairs if after is not None]

    @model_validator(mode="after")
    def _within(self) -> RankTraffic:
        looks = (look.sent for kind in self.collectives for look in kind.looks)
        peers = (peer for rows in (*self.moved.values(), *looks) for peer, *_ in rows)
        if max((self.rank, self.leader, *peers)) >= self.ranks:
            raise ValueError(f"there are no more than {self.ranks} ranks")
        return self


def read_folder(folder: str | Path) -> list[RankTraffic]:
    """The traffic of all ranks of a run, by rank.

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
    """The traffic in a file; raises `UsageError` where it is none or cannot be read."""
    try:
        return RankTraffic.model_validate_json(files.read(path, UsageError))
    except ValidationError as error:
        if any(fault["loc"] == ("version",) for fault in error.errors()):
            raise UsageError(
                f"{path} is of another version of omb-py: read it with that one"
            ) from error
        raise UsageError(f"{path} is no traffic of omb-py profile, or damaged") from error


def calls(ranks: list[RankTraffic]) -> Iterator[tuple[Call, tuple[int, ...]]]:
    """The collective calls that all their ranks sampled, with these ranks in MPI_COMM_WORLD."""
    looks: dict[tuple[Any, ...], dict[int, tuple[int, ProbedCall]]] = defaultdict(dict)
    for one in ranks:
        for kind in one.collectives:
            for look in kind.looks:
                key = (kind.routine, kind.members, kind.instance, look.number)
                looks[key][one.rank] = (kind.nbytes, look)
    for (routine, members, _, _), parts in looks.items():
        if len(parts) < len(members) or any(member not in parts for member in members):
            continue
        place = {member: number for number, member in enumerate(members)}
        sent = {
            (place[rank], place.get(peer, NOBODY)): (messages, nbytes)
            for rank, (_, look) in parts.items()
            for peer, messages, nbytes in look.sent
        }
        nbytes = max(size for size, _ in parts.values())
        root = max(look.root for _, look in parts.values())
        yield Call(routine, len(members), nbytes, sent, root), members

"""What a program asked for, from the records of its ranks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from omb_py.tracing.records.layout import NOBODY
from omb_py.tracing.records.reading import NS, RankRecord
from omb_py.tracing.records.routines import (
    Role,
    file_direction,
    prepares,
    role,
)

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
    """All that the ranks asked for."""
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
    """Messages and bytes together."""
    found = list(amounts)
    return sum(one[0] for one in found), sum(one[1] for one in found)


def _add(pairs: Pairs, pair: tuple[int, int], messages: int, nbytes: int) -> None:
    before = pairs.get(pair, (0, 0))
    pairs[pair] = before[0] + messages, before[1] + nbytes

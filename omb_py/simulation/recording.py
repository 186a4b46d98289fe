"""A simulated run as records, so that ``omb-py timeline``, ``profile`` and others can read it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from omb_py.simulation.engine import Event, Outcome
from omb_py.tracing.recorder.record_file import C, RecordFile
from omb_py.tracing.records import Communicator, Kind, layout

START = 1_000_000_000
"""When a simulated run begins, in ns of its ranks' clocks."""

NS = layout.NS_PER_SECOND

MESSAGES = ("MPI_Send", "MPI_Isend", "MPI_Recv", "MPI_Irecv")
"""Routines of messages."""


def write(outcome: Outcome, nodes: Sequence[int], folder: str, name: str) -> None:
    """Write the record of each rank into a folder.

    ``nodes`` has the node of each rank, ``name`` is what the program is called. Raises `OmbError`
    where a record cannot be written or is there already.
    """
    ranks = len(outcome.ends)
    by_rank: list[list[Event]] = [[] for _ in range(ranks)]
    for event in outcome.events:
        by_rank[event.rank].append(event)
    for rank, events in enumerate(by_rank):
        about = {"program": name, "simulated": "SimGrid"}
        path = layout.path_in(folder, rank)
        record = RecordFile(path, rank, ranks, C, max(1, len(events)), about)
        fill(record, sorted(events, key=lambda one: (one.began, one.ended)), ranks)
        end = START + round(max((one.ended for one in events), default=0.0) * NS)
        comparison = {"first_at": START, "first_offset": 0.0, "first_error": 0.0}
        times = {"began": START, "ended": end, "updated": end}
        for field, value in (times | comparison | {"host": f"node{nodes[rank]}"}).items():
            record.set(field, value)
        record.close()


def fill(record: RecordFile, events: Iterable[Event], ranks: int) -> None:
    """Write the events of a rank, and what they are in all."""
    world = layout.communicator_line(Communicator(layout.WORLD, ranks, "MPI_COMM_WORLD"))
    communicator = record.name(world)
    cells: dict[tuple[int, ...], list[int]] = {}
    for one in events:
        is_call = one.name in MESSAGES or one.name == "MPI_Waitall"
        kind = one.kind if is_call else Kind.SPAN
        number, nbytes = record.name(one.name), round(one.nbytes)
        began, ended = START + round(one.began * NS), START + round(one.ended * NS)
        of = communicator if is_call else 0
        known = nbytes if one.name in MESSAGES else layout.UNKNOWN_BYTES
        what = (kind, number, of, one.peer, one.tag, 0, began, ended, known, 0, one.sequence)
        record.event(*what)
        if kind is Kind.CALL:
            where = (number, of, one.peer, layout.size_bin(known), 0, 0)
            calls = cells.setdefault(where, [0, 0, 0, ended - began, 0])
            calls[0] += 1
            calls[1] += nbytes
            calls[2] += ended - began
            calls[3] = min(calls[3], ended - began)
            calls[4] = max(calls[4], ended - began)
    record.write_cells(((*where, *calls) for where, calls in cells.items()), 0)

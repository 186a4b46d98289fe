"""A run's folder made by hand: two hosts of two ranks each, whose traffic is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from omb_py.tracing import counters
from omb_py.tracing.records.layout import EventKind
from tests.tracing.made_records import MadeRecord

MIB = 1 << 20
RANKS = 4
HEADERS = 1.05


def wire(name: str, sent: int, received: int) -> dict[str, Any]:
    """A wire as it stands in a file."""
    return {
        "meter": "network",
        "name": name,
        "sent": sent,
        "received": received,
        "over": [],
        "events": {},
        "remark": "",
    }


def content(rank: int) -> dict[str, Any]:
    """What rank's file holds; ranks 0 and 2 lead hosts."""
    leader = rank // 2 * 2
    start = [wire("eth0", 1000, 1000), wire("lo", 500, 500)]
    return {
        "version": counters.VERSION,
        "rank": rank,
        "ranks": RANKS,
        "host": f"node{leader // 2}",
        "leader": leader,
        "library": "Open MPI 5.0.11",
        "complete": True,
        "before": start if rank == leader else [],
        "after": start if rank == leader else [],
    }


def write(folder: Path, contents: list[dict[str, Any]]) -> Path:
    """Write the files of ranks."""
    folder.mkdir(exist_ok=True)
    for one in contents:
        Path(counters.path_in(str(folder), one["rank"])).write_text(json.dumps(one))
    return folder


def doubling_and_a_send(folder: Path) -> Path:
    """Ten allreduces of 1 MiB by recursive doubling, and 3 MiB in 3 messages from rank 0 to 2.

    Neighbours in the first round share a host; the second round is between hosts, over eth0.
    """
    contents = []
    for rank in range(RANKS):
        extra = 3 if rank == 0 else 0
        one = content(rank)
        if one["leader"] == rank:
            carried = round((23 if rank == 0 else 20) * MIB * HEADERS)
            one["after"] = [wire("eth0", 1000 + carried, 1000), wire("lo", 500, 500)]
        contents.append(one)
        record = MadeRecord(folder, rank, RANKS, host=one["host"])
        for number in range(10):
            began = number * 10
            record.call("MPI_Allreduce", began, began + 5, nbytes=MIB, sequence=number + 1)
        for number in range(extra):
            record.call("MPI_Send", 100 + number, 101 + number, peer=2, nbytes=MIB)
        if rank == 2:
            record.call("MPI_Recv", 100, 103, kind=EventKind.CALL, peer=0, nbytes=3 * MIB)
        record.finish(1000)
    return write(folder, contents)

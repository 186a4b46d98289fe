"""Bytes that programs send between hosts, beside those that their network cards carried."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import OMB_PY, rows_in_text, run, succeeded
from tests.hosts.jobs import job
from tests.hosts.virtual_hosts import Hosts

MIB = 1 << 20
SENDS, NBYTES, VECTOR = 8, 4 * MIB, 8 * MIB
HEADERS, FRAME = 0.05, 1514
"""Of a frame of so many bytes headers are less than a twentieth."""

PROGRAM = f"""
from mpi4py import MPI
import numpy as np
world = MPI.COMM_WORLD
data = np.ones({NBYTES}, "b")
half = world.size // 2
for _ in range({SENDS}):
    if world.rank < half:
        world.Send(data, world.rank + half)
    else:
        world.Recv(data, world.rank - half)
if world.rank == 0:
    world.Send(data, 1)
elif world.rank == 1:
    world.Recv(data, 0)
if world.size > 2:
    world.Allreduce(np.ones({VECTOR} // 8), np.empty({VECTOR} // 8))
"""

Rows = list[dict[str, str]]


def traffic(hosts: Hosts, ranks: int, per_host: int, folder: Path, **variables: Any) -> Rows:
    """The tables of the program on so many ranks of each host."""
    (folder / "program.py").write_text(PROGRAM)
    words = ("profile", "--traffic", "--folder", str(folder / "run"), str(folder / "program.py"))
    succeeded(job(hosts, ranks, per_host, *words, folder=folder, **variables))
    shown = ("traffic", str(folder / "run"), "--format", "csv")
    return rows_in_text(succeeded(run([OMB_PY, *shown], {}, folder, 60)).out)


def sent_by_card(rows: Rows, host: str) -> int:
    """Bytes that a host's card sent."""
    (card,) = [row for row in rows if (row["host"], row["link"]) == (host, "eth0")]
    return int(card["sent_bytes"])


def most_for(rows: Rows, host: str, payload: int) -> float:
    """The most bytes that a card sends of so many: with headers, and what was sent again."""
    (tcp,) = [row for row in rows if (row["host"], row["link"]) == (host, "TCP")]
    again = re.search(r"(\d+) segments sent again", tcp["remark"])
    return payload * (1 + HEADERS) + FRAME * (int(again[1]) if again else 0)


def of_sends(rows: Rows) -> dict[str, str]:
    """The row of the program's messages."""
    (sends,) = [row for row in rows if row["what"] == "messages of the program"]
    return sends


@pytest.mark.long
def test_what_is_sent_to_another_host_goes_over_its_card(near: Hosts, tmp_path: Path) -> None:
    """One rank on each of two hosts: everything goes over the network."""
    rows = traffic(near, 2, 1, tmp_path)
    payload = (SENDS + 1) * NBYTES
    assert of_sends(rows)["asked_bytes"] == of_sends(rows)["between_hosts_bytes"] == str(payload)
    assert payload <= sent_by_card(rows, "node1") <= most_for(rows, "node1", payload)
    (received,) = [
        int(row["received_bytes"])
        for row in rows
        if row["table"] == "links" and (row["host"], row["link"]) == ("node2", "eth0")
    ]
    assert received >= payload


@pytest.mark.long
def test_what_stays_on_a_host_goes_over_no_wire(near: Hosts, tmp_path: Path) -> None:
    """Two ranks on each of two hosts; each host needs the other's vector, too."""
    rows = traffic(near, 4, 2, tmp_path)
    sends = of_sends(rows)
    between = 2 * SENDS * NBYTES
    assert (sends["asked_bytes"], sends["between_hosts_bytes"]) == (
        str(between + NBYTES),
        str(between),
    )
    assert between + VECTOR <= sent_by_card(rows, "node1")
    assert VECTOR <= sent_by_card(rows, "node2") < between

"""Bytes that programs send between hosts, beside those that their network cards carried."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import OMB_PY, run, succeeded
from tests.hosts.jobs import job
from tests.hosts.virtual_hosts import Hosts

MIB = 1 << 20
SENDS, NBYTES = 8, 4 * MIB
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
    world.Allreduce(np.ones({MIB}), np.empty({MIB}))
"""

Rows = list[dict[str, str]]


def traffic(hosts: Hosts, ranks: int, per_host: int, folder: Path, **variables: Any) -> Rows:
    """The tables of the program on so many ranks of each host."""
    (folder / "program.py").write_text(PROGRAM)
    words = ("profile", "--traffic", "--folder", str(folder / "run"), str(folder / "program.py"))
    succeeded(job(hosts, ranks, per_host, *words, folder=folder, **variables))
    shown = run([OMB_PY, "traffic", str(folder / "run"), "--format", "csv"], {}, folder, 60)
    assert shown.code == 0, shown.err
    return list(csv.DictReader(io.StringIO(shown.out)))


def ways(rows: Rows) -> dict[tuple[str, str], dict[str, str]]:
    """The paths by their host and what they lead to."""
    return {(row["host"], row["what"]): row for row in rows if row["table"] == "paths"}


def assert_carried(rows: Rows, host: str, payload: int) -> None:
    """A host's card sent so many bytes and their headers, some of them again, and no more."""
    sent = int(ways(rows)[host, "to other hosts"]["sent_bytes"])
    (tcp,) = [row for row in rows if (row["host"], row["link"]) == (host, "TCP")]
    again = re.search(r"(\d+) segments sent again", tcp["remark"])
    most = payload * (1 + HEADERS) + FRAME * (int(again[1]) if again else 0)
    assert payload <= sent <= most


@pytest.mark.long
def test_what_is_sent_to_another_host_goes_over_its_card(near: Hosts, tmp_path: Path) -> None:
    """One rank on each of two hosts: everything goes over the network."""
    rows = traffic(near, 2, 1, tmp_path)
    found = ways(rows)
    out = found["node1", "to other hosts"]
    assert out["path"] == "eth0"
    assert out["asked_bytes"] == str((SENDS + 1) * NBYTES)
    assert_carried(rows, "node1", (SENDS + 1) * NBYTES)
    received = [
        int(row["received_bytes"])
        for row in rows
        if row["table"] == "links" and (row["host"], row["link"]) == ("node2", "eth0")
    ]
    assert received[0] >= (SENDS + 1) * NBYTES


@pytest.mark.long
def test_what_stays_on_a_host_goes_over_no_wire(near: Hosts, tmp_path: Path) -> None:
    """Two ranks on each of two hosts."""
    found = ways(traffic(near, 4, 2, tmp_path))
    assert found["node1", "within"]["path"] == "shared memory"
    assert found["node1", "within"]["asked_bytes"] == str(NBYTES)
    out = found["node1", "to other hosts"]
    assert (out["path"], out["asked_bytes"]) == ("eth0", str(2 * SENDS * NBYTES))
    assert int(out["sent_bytes"]) >= 2 * SENDS * NBYTES


@pytest.mark.long
def test_what_ranks_sent_over_tcp_is_what_cards_carried(near: Hosts, tmp_path: Path) -> None:
    """With collectives, by the kernel's count: no byte moved twice, none unseen."""
    rows = traffic(near, 4, 2, tmp_path)
    found = ways(rows)
    for host, sends in (("node1", 2 * SENDS * NBYTES), ("node2", 0)):
        moved = int(found[host, "to other hosts"]["moved_bytes"])
        assert sends + 8 * MIB <= moved  # each host needs the other's vector
        assert_carried(rows, host, moved)
    (together,) = [row for row in rows if row["what"] == "in all"]
    (rest,) = [row for row in rows if row["what"] == "what else the library sent"]
    between = int(together["between_hosts_bytes"])
    assert between - int(rest["between_hosts_bytes"]) == 2 * SENDS * NBYTES

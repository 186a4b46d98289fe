"""`omb-py run` over virtual hosts: the pair of the first and the last rank is on two of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import rows_of, succeeded
from tests.hosts.jobs import job
from tests.hosts.virtual_hosts import Hosts

QUICK = ("--sizes", "8", "-i", "3", "-x", "1", "-c")


@pytest.mark.long
@pytest.mark.every_library
@pytest.mark.parametrize(
    ("pair", "part", "hosts"), [("far", "0+5", "node1:1 node3:1"), ("near", "0-1", "node1:2")]
)
def test_a_part_names_its_hosts_and_rank_0_writes_its_rows(
    near: Hosts, tmp_path: Path, pair: str, part: str, hosts: str
) -> None:
    results = tmp_path / "s.csv"
    words = ("run", "latency", "allreduce", "--pair", pair, *QUICK, "-o", str(results))
    succeeded(job(near, 6, 2, *words, folder=tmp_path))
    rows = [(row["benchmark"], row["ranks"], row["group"]) for row in rows_of(results)]
    assert rows == [("latency", "2", part), ("allreduce", "6", "")]
    assert f"# hosts: {hosts}\n" in results.read_text()
    entries = json.loads((tmp_path / "s.summary.json").read_text())["entries"]
    assert [one["outcome"] for one in entries] == ["measured", "measured"]

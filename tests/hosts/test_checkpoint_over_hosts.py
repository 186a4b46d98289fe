"""Checkpoints over several hosts: ranks restart from what another host wrote."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import rows_of
from tests.hosts.jobs import job
from tests.hosts.virtual_hosts import Hosts

METHODS = ("shared", "collective", "numpy", "gather", "async")


def test_no_rank_reads_what_its_own_host_wrote(near: Hosts, tmp_path: Path) -> None:
    done = job(
        *(near, 4, 2, "checkpoint", "--method", ",".join(METHODS), "--size", "100001"),
        *("--rounds", "1", "--compute-time", "1", "--output", "rows.csv"),
        folder=tmp_path,
    )
    assert (done.code, done.sentences) == (0, []), done.err
    assert "4 ranks on 2 nodes" in done.out
    assert "ranks read rank + 2's data; 0 of 4 on the node that wrote it" in done.out
    rows = rows_of(tmp_path / "rows.csv")
    assert {(row["binding"], row["validation"]) for row in rows} == {(m, "Pass") for m in METHODS}
    assert "# hosts: node1:2 node2:2" in (tmp_path / "rows.csv").read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]

"""Checkpoints over several hosts: ranks restart from what another host wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from omb_py.options.table import METHODS
from tests.conftest import rows_of
from tests.hosts.jobs import job
from tests.hosts.virtual_hosts import Hosts


@pytest.mark.product(strength=0)
@pytest.mark.parametrize("method", METHODS)
def test_ranks_check_what_another_host_wrote(near: Hosts, tmp_path: Path, method: str) -> None:
    words = ("checkpoint_read", "--sizes", "100001", "-i", "1", "-u", "1", "-c")
    more = ("--method", method, "--file", str(tmp_path / "data"), "--output", "rows.csv")
    done = job(near, 4, 2, *words, *more, folder=tmp_path)
    assert (done.code, done.sentences) == (0, []), done.err
    assert [row["validation"] for row in rows_of(tmp_path / "rows.csv")] == ["Pass"]
    assert "# hosts: node1:2 node2:2" in (tmp_path / "rows.csv").read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]

"""Groups of ranks over virtual hosts: one for each host, and a failure on another host."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import rows_of
from tests.helpers.refusals import missing
from tests.hosts.jobs import job
from tests.hosts.virtual_hosts import Hosts

QUICK = ("--sizes", "8", "-i", "3", "-x", "1", "-c")


@pytest.mark.any_library
def test_each_host_is_a_group(near: Hosts, tmp_path: Path) -> None:
    output = ("--output", str(tmp_path / "g.csv"))
    done = job(near, 6, 2, "allreduce", "--split", "node", *QUICK, *output, folder=tmp_path)
    assert done.code == 0, done.err
    assert {row["group"] for row in rows_of(tmp_path / "g.csv")} == {"0-1", "2-3", "4-5"}
    assert "# groups: 0-1 on node1, 2-3 on node2, 4-5 on node3" in (tmp_path / "g.csv").read_text()
    assert "# Group 4-5: node3" in done.out


@pytest.mark.long
@pytest.mark.any_library
def test_wrong_data_on_another_host_ends_the_job_with_all_rows(near: Hosts, tmp_path: Path) -> None:
    words = ("allreduce", "--split", "0-2,3-5", "--binding", "corrupting", *QUICK)
    done = job(near, 6, 2, *words, "--format", "csv", folder=tmp_path, OMB_TEST_RANK="1")
    assert done.code == 1
    assert not missing("wrong data allreduce 8 bytes group 0-2", done.sentences[0])
    assert done.out.count(",Fail,") == 2

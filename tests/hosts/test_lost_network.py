"""A host that the network no longer reaches does not keep a job with ``--timeout`` from ending."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.conftest import ENVIRONMENT, OMB_PY, own_temporary_folder, rows_of
from tests.helpers.waiting import wait_for
from tests.hosts import network
from tests.hosts.jobs import launcher
from tests.hosts.virtual_hosts import virtual_hosts

pytestmark = pytest.mark.usefixtures("mpi", "can_make_hosts", "long_time")

WORDS = "latency --sizes 1,8 -i 1000000000 --max-time 2 --timeout 5 --output rows.csv".split()


def test_lost_network_ends_the_job_and_its_processes(tmp_path: Path) -> None:
    with virtual_hosts(2) as hosts, own_temporary_folder() as own:
        first, second = hosts.hosts
        command = first.inside([*launcher(2, 1, ("PYTHONPATH",)), OMB_PY, *WORDS], tmp_path)
        environment = own | ENVIRONMENT | hosts.environment
        output = tmp_path / "rows.csv"
        with (tmp_path / "said").open("wb") as said:
            process = subprocess.Popen(command, env=environment, stdout=said, stderr=said)
        try:
            wait_for(lambda: output.exists() and rows_of(output))
            network.in_network(second.process, f"ip link set {network.CARD} down")
            assert process.wait(60) != 0
        finally:
            process.kill()
            process.wait()
        wait_for(lambda: not first.running(), seconds=10)
        network.in_network(second.process, f"ip link set {network.CARD} up")
        wait_for(lambda: not second.running())
    ours = [line for line in (tmp_path / "said").read_text().splitlines() if "omb-py: " in line]
    assert len(ours) == 1, ours
    assert "no progress for 5 s while measuring latency" in ours[0]
    assert [row["bytes"] for row in rows_of(output)] == ["1"]

"""Messages that are not MPI's, between hosts: ranks started by mpiexec, and by torchrun."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.helpers import torchrun
from tests.hosts.jobs import job
from tests.hosts.virtual_hosts import Hosts

BETWEEN_HOSTS = ("tcp", "asyncio", "grpc")
QUICK = ("-c", "-i", "10", "-x", "1", "-m", "8:16")


@pytest.mark.parametrize("binding", BETWEEN_HOSTS)
def test_mpi_starts_ranks_that_send_without_it(near: Hosts, tmp_path: Path, binding: str) -> None:
    done = job(near, 2, 1, "latency", "--binding", binding, *QUICK, folder=tmp_path)
    assert (done.code, done.out.count("Pass")) == (0, 2), done.err


@pytest.mark.long
@torchrun.needs_torchrun
@pytest.mark.parametrize("binding", ["tcp", "torch"])
def test_torchrun_connects_ranks_over_hosts(near: Hosts, tmp_path: Path, binding: str) -> None:
    place = ("--master_addr", "node1", "--master_port", str(torchrun.free_port()), "--nnodes", "2")
    agents = []
    for number, host in enumerate(near.hosts[:2]):
        words = ("latency", "--binding", binding, *QUICK)
        rendezvous = (*place, "--node_rank", str(number))
        line = torchrun.command(*words, ranks=1, rendezvous=rendezvous)
        agents.append(
            subprocess.Popen(
                host.inside(line, tmp_path),
                env=torchrun.environment(tmp_path),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    printed = [agent.communicate(timeout=400) for agent in agents]
    assert [agent.returncode for agent in agents] == [0, 0], printed
    assert "".join(out for out, _ in printed).count("Pass") == 2, printed

"""Messages that are not MPI's, between hosts: ranks started by mpiexec, and by the environment."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.conftest import OMB_PY
from tests.helpers.without_mpi import ended, free_port
from tests.hosts.jobs import job
from tests.hosts.virtual_hosts import Hosts

BETWEEN_HOSTS = ("tcp", "asyncio", "grpc")
QUICK = ("-c", "-i", "10", "-x", "1", "-m", "8:16")


def without_mpi(hosts: Hosts, *words: str, folder: Path) -> tuple[list[int], str, str]:
    """Exit codes, output and errors of a rank on each of two hosts, which node1 brings together."""
    given = {"WORLD_SIZE": "2", "MASTER_ADDR": "node1", "MASTER_PORT": str(free_port())}
    ranks = [
        subprocess.Popen(
            host.inside([OMB_PY, *words], folder),
            env=os.environ | given | {"RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank, host in enumerate(hosts.hosts[:2])
    ]
    return ended(ranks)


@pytest.mark.parametrize("binding", BETWEEN_HOSTS)
def test_mpi_starts_ranks_that_send_without_it(near: Hosts, tmp_path: Path, binding: str) -> None:
    done = job(near, 2, 1, "latency", "--binding", binding, *QUICK, folder=tmp_path)
    assert (done.code, done.out.count("Pass")) == (0, 2), done.err


@pytest.mark.parametrize("binding", BETWEEN_HOSTS)
def test_ranks_without_mpi_find_each_other(near: Hosts, tmp_path: Path, binding: str) -> None:
    codes, out, error = without_mpi(near, "latency", "--binding", binding, *QUICK, folder=tmp_path)
    assert (codes, out.count("Pass")) == ([0, 0], 2), error


def test_what_connects_processes_of_one_host_says_so(near: Hosts, tmp_path: Path) -> None:
    codes, _, error = without_mpi(near, "latency", "--binding", "unix", *QUICK, folder=tmp_path)
    assert 0 not in codes
    assert error.count("connects processes of one host, and this job has several") == 1

"""``slurm`` is a real Slurm of two nodes, n1 and n2, for each test to submit jobs to."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import BIN, ENVIRONMENT
from tests.schedulers import slurm_cluster
from tests.schedulers.batch import Slurm, cancel_all_from

# To Open MPI the nodes are two computers, which share neither memory nor, as it thinks, cores.
BETWEEN_NODES = {
    "OMPI_MCA_btl": "self,sm,tcp",
    "OMPI_MCA_btl_tcp_if_include": "lo",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}


@pytest.fixture(scope="session")
def two_nodes() -> Iterator[Slurm]:
    """The running cluster that SLURM_CONF names, else one of this session's own."""
    if missing := slurm_cluster.missing_programs():
        pytest.skip(f"no Slurm here: install slurm-wlm, slurm-wlm-torque and munge for {missing}")
    running = slurm_cluster.environment_of(Path(os.environ.get("SLURM_CONF", "/nowhere")))
    if slurm_cluster.is_test_cluster(running):
        yield with_the_suite(running)
        return
    with (
        tempfile.TemporaryDirectory(prefix="slurm-") as folder,
        slurm_cluster.cluster(Path(folder) / "cluster") as environment,
    ):
        yield with_the_suite(environment)


def with_the_suite(environment: dict[str, str]) -> Slurm:
    """Slurm, with an environment in which its jobs find the suite."""
    path = f"{BIN}:{environment['PATH']}"
    return Slurm(environment | ENVIRONMENT | BETWEEN_NODES | {"PATH": path})


@pytest.fixture
def slurm(two_nodes: Slurm, tmp_path: Path) -> Iterator[Slurm]:
    """The cluster; what jobs a test leaves are cancelled."""
    yield two_nodes
    cancel_all_from(two_nodes, tmp_path)

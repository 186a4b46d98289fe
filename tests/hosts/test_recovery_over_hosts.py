"""A node fails with all its ranks, and those of the others go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import ENVIRONMENT, OMB_PY, Finished, rows_of, run
from tests.hosts.jobs import OPEN_MPI, launcher
from tests.hosts.virtual_hosts import Hosts
from tests.mpi.fixtures import START

FOR_SEVERAL_NODES = ("--mca", "coll", "^han")

pytestmark = pytest.mark.skipif(not OPEN_MPI, reason="ULFM is Open MPI's")


def outliving(hosts: Hosts, folder: Path, *arguments: str) -> Finished:
    """Run a command on two ranks of each of three hosts; all but hanging at the end must go well.

    MPI_Finalize may hang after a failure, which is no error.
    """
    mpiexec, *words = launcher(6, 2, ("PYTHONPATH",))
    command = [mpiexec, *START, *FOR_SEVERAL_NODES, *words, OMB_PY, *arguments]
    environment = ENVIRONMENT | hosts.environment | {"OMPI_MCA_btl": "self,sm,tcp"}
    job = run(hosts.first.inside(command, folder), environment, folder, 60)
    assert (job.code, [one for one in job.sentences if "MPI_Finalize" not in one]) == (0, [])
    return job


def test_a_node_fails(near: Hosts, tmp_path: Path) -> None:
    words = ("--victims", "node", "--operation", "allreduce", "--timeout", "20")
    outliving(near, tmp_path, "ft_detect", *words, "--output", "rows.csv")
    (row,) = rows_of(tmp_path / "rows.csv")
    assert (row["part"], row["ranks"], row["failed"]) == ("allreduce", "6", "2")

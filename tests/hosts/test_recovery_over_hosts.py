"""A node fails with all its ranks, and those of the others go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import ENVIRONMENT, OMB_PY, rows_of, run
from tests.hosts.jobs import OPEN_MPI, launcher
from tests.hosts.virtual_hosts import Hosts
from tests.mpi.fixtures import START, assert_goes_well

FOR_SEVERAL_NODES = ("--mca", "coll", "^han")

if not OPEN_MPI:  # no test is skipped, which --require hosts would fail
    pytest.skip("ULFM is Open MPI's", allow_module_level=True)


@pytest.mark.long
def test_a_node_fails(near: Hosts, tmp_path: Path) -> None:
    mpiexec, *words = launcher(6, 2, ("PYTHONPATH",))
    command = [mpiexec, *START, *FOR_SEVERAL_NODES, *words, OMB_PY, "ft_detect"]
    command += ["--victims", "node", "--operation", "allreduce", "--timeout", "20"]
    command += ["--output", "rows.csv"]
    environment = ENVIRONMENT | near.environment | {"OMPI_MCA_btl": "self,sm,tcp"}
    assert_goes_well(run(near.first.inside(command, tmp_path), environment, tmp_path, 60))
    (row,) = rows_of(tmp_path / "rows.csv")
    assert (row["part"], row["ranks"], row["failed"]) == ("allreduce", "6", "2")

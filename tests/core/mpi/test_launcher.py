"""Facts that launchers put into the environment of ranks."""

from __future__ import annotations

import os
from unittest import mock

import pytest

from omb_py.core.mpi import launcher

PER_NODE = "SLURM_STEP_TASKS_PER_NODE"


@pytest.mark.parametrize(
    ("variables", "ranks"),
    [
        ({"MPI_LOCALNRANKS": "4"}, 4),
        ({"SLURM_NODEID": "1", PER_NODE: "4(x2),3"}, 4),
        ({"SLURM_NODEID": "2", PER_NODE: "4(x2),3"}, 3),
        ({"SLURM_NODEID": "0", PER_NODE: "1(x2)", "MPI_LOCALNRANKS": "8"}, 8),
        ({"SLURM_NODEID": "3", PER_NODE: "4(x2),3"}, None),
        ({PER_NODE: "4"}, None),
        ({}, None),
    ],
)
def test_local_ranks_are_those_of_this_node(variables: dict[str, str], ranks: int | None) -> None:
    with mock.patch.dict(os.environ, variables, clear=True):
        assert launcher.local_ranks() == ranks

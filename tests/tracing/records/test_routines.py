"""What routines do, by their names in records."""

from __future__ import annotations

import pytest

from omb_py.tracing.records.routines import Dependence, Role, base, dependence, nonblocking, role


@pytest.mark.parametrize(
    ("routine", "name", "what", "begins"),
    [
        ("MPI_Send", "send", Role.SEND, False),
        ("MPI_Isend", "send", Role.SEND, True),
        ("MPI_Ssend_init", "ssend", Role.SEND, True),
        ("MPI_Send (started)", "send", Role.SEND, True),
        ("MPI_Imrecv", "mrecv", Role.RECEIVE, True),
        ("MPI_Sendrecv_replace", "sendrecv_replace", Role.SENDRECV, False),
        ("MPI_Iallreduce", "allreduce", Role.COLLECTIVE, True),
        ("MPI_Allreduce_init", "allreduce", Role.COLLECTIVE, True),
        ("MPI_Ineighbor_alltoallw", "neighbor_alltoallw", Role.COLLECTIVE, True),
        ("MPI_Waitall", "waitall", Role.COMPLETION, False),
        ("MPI_Improbe", "mprobe", Role.PROBE, True),
        ("MPI_Rput", "rput", Role.ONE_SIDED, True),
        ("MPI_Win_fence", "win_fence", Role.ONE_SIDED, False),
        ("MPI_File_iwrite_at", "file_iwrite_at", Role.FILE, False),
        ("MPI_Comm_idup", "comm_idup", Role.MANAGEMENT, False),
        ("MPI_Startall", "startall", Role.MANAGEMENT, False),
    ],
)
def test_name_tells_the_role(routine: str, name: str, what: Role, begins: bool) -> None:
    assert (base(routine), role(routine), nonblocking(routine)) == (name, what, begins)


def test_a_collective_says_whom_its_ranks_wait_for() -> None:
    assert dependence("MPI_Ibcast") is Dependence.ROOT
    assert dependence("MPI_Gatherv") is Dependence.AT_ROOT
    assert dependence("MPI_Send") is None


def test_routines_that_move_no_data_say_whom_ranks_wait_for() -> None:
    assert dependence("MPI_Comm_split") is Dependence.ALL
    assert dependence("MPI_Win_fence") is Dependence.ALL
    assert dependence("MPI_Intercomm_merge") is Dependence.GROUPS
    assert dependence("MPI_Win_wait") is Dependence.OTHERS
    assert dependence("MPI_Comm_idup") is None

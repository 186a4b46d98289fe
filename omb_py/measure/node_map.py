"""Which rank is on which node: as it is, or as ``--node-map`` says."""

from __future__ import annotations

from array import array

from omb_py.errors import UsageError
from omb_py.job import Job


def node_of_each_rank(wish: tuple[int, ...] | int | None, job: Job) -> tuple[int, ...]:
    """The node of each rank, numbered in the order of their first ranks; collective.

    Raises `UsageError` when there are not several nodes with the same number of ranks.
    """
    if wish is None:
        nodes = _found(job)
        said = f"this job's {job.ranks} ranks"
    else:
        nodes = tuple(rank // wish for rank in range(job.ranks)) if isinstance(wish, int) else wish
        said = f"--node-map's {len(nodes)} ranks"
        if len(nodes) != job.ranks:
            raise UsageError(f"--node-map names {len(nodes)} ranks, and this job has {job.ranks}")
    names = list(dict.fromkeys(nodes))
    if len(names) < 2 or len({nodes.count(name) for name in names}) > 1:
        raise UsageError(
            f"{said} are on {len(names)} node{'s' * (len(names) != 1)}, and several with the same "
            "number of ranks are needed: start it so, or name them with --node-map"
        )
    return tuple(names.index(node) for node in nodes)


def _found(job: Job) -> tuple[int, ...]:
    """The first rank of each rank's node."""
    node = job.comm.Split_type(job.MPI.COMM_TYPE_SHARED)
    first = array("q", [job.rank])
    integer = job.MPI.INT64_T
    node.Bcast([first, 1, integer], 0)
    node.Free()
    firsts = array("q", bytes(8 * job.ranks))
    job.comm.Allgather([first, 1, integer], [firsts, 1, integer])
    return tuple(firsts)

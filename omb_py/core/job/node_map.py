"""The node of each rank: the real one, or the one that ``--node-map`` names."""

from __future__ import annotations

from omb_py.core.errors import UsageError
from omb_py.core.job import Job


def node_of_each_rank(
    wish: tuple[int, ...] | int | None, job: Job, alike: bool = True
) -> tuple[int, ...]:
    """Return the node of each rank, numbered in the order of their first ranks; collective.

    Raises `UsageError` unless there are several nodes, with the same number of ranks if they have
    to be ``alike``.
    """
    if wish is None:
        nodes = first_ranks(job)
        said = f"this job's {job.ranks} ranks"
    else:
        nodes = tuple(rank // wish for rank in range(job.ranks)) if isinstance(wish, int) else wish
        said = f"--node-map's {len(nodes)} ranks"
        if len(nodes) != job.ranks:
            raise UsageError(f"--node-map names {len(nodes)} ranks, and this job has {job.ranks}")
    names = list(dict.fromkeys(nodes))
    if len(names) < 2 or (alike and len({nodes.count(name) for name in names}) > 1):
        wanted = "several with the same number of ranks" if alike else "several"
        raise UsageError(
            f"{said} are on {len(names)} node{'s' * (len(names) != 1)}, and {wanted} are needed: "
            "start it so, or name them with --node-map"
        )
    return tuple(names.index(node) for node in nodes)


def first_ranks(job: Job) -> tuple[int, ...]:
    """Return the first rank on each rank's node; collective."""
    host = job.on_host()
    first = host.bcast(str(job.rank).encode())
    host.free()
    return tuple(map(int, job.allgather(first)))

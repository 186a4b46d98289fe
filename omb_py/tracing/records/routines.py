"""Roles of MPI's routines in communication: for profiles, and for waiting ranks.

A row for each routine that moves data or waits, by its name in C without ``MPI_`` and in lower
case; non-blocking (``i…``) and persistent (``…_init``) forms go by the row of the blocking one.
Everything else manages objects.
"""

from __future__ import annotations

from enum import Enum
from functools import cache

STOPPED = "MPI_Pcontrol"
"""The time from ``MPI_Pcontrol(0)`` to ``MPI_Pcontrol(1)``, in which nothing was recorded."""

STARTED = " (started)"
"""The suffix of the operation that a persistent request begins at each start, which takes no time
of its own: ``MPI_Send (started)``."""


class Role(Enum):
    """The role of a routine."""

    SEND = "send"
    RECEIVE = "receive"
    SENDRECV = "sendrecv"
    COLLECTIVE = "collective"
    COMPLETION = "completion"
    PROBE = "probe"
    ONE_SIDED = "one-sided"
    FILE = "file"
    MANAGEMENT = "management"


class Dependence(Enum):
    """The ranks that a rank has to wait for in a call, on any network.

    ALL: all ranks of the communicator. ROOT: every rank waits for the root. AT_ROOT: only the root
    waits, for every rank. LOWER: a rank waits for all lower ones. NEIGHBOURS: those of a topology.
    GROUPS: all ranks of the communicator, and those of a second group. OTHERS: ranks that a record
    does not name.
    """

    ALL = "all"
    ROOT = "root"
    AT_ROOT = "at root"
    LOWER = "lower"
    NEIGHBOURS = "neighbours"
    GROUPS = "groups"
    OTHERS = "others"


COLLECTIVES = {
    "bcast": Dependence.ROOT,
    "barrier": Dependence.ALL,
    "reduce": Dependence.AT_ROOT,
    "allreduce": Dependence.ALL,
    "scan": Dependence.LOWER,
    "exscan": Dependence.LOWER,
    "reduce_scatter": Dependence.ALL,
    "reduce_scatter_block": Dependence.ALL,
    "gather": Dependence.AT_ROOT,
    "gatherv": Dependence.AT_ROOT,
    "scatter": Dependence.ROOT,
    "scatterv": Dependence.ROOT,
    "allgather": Dependence.ALL,
    "allgatherv": Dependence.ALL,
    "alltoall": Dependence.ALL,
    "alltoallv": Dependence.ALL,
    "alltoallw": Dependence.ALL,
    "neighbor_allgather": Dependence.NEIGHBOURS,
    "neighbor_allgatherv": Dependence.NEIGHBOURS,
    "neighbor_alltoall": Dependence.NEIGHBOURS,
    "neighbor_alltoallv": Dependence.NEIGHBOURS,
    "neighbor_alltoallw": Dependence.NEIGHBOURS,
}
"""In the order of mpitrace's tables."""

SYNCHRONIZING = {
    **dict.fromkeys(
        "finalize comm_dup comm_dup_with_info comm_split comm_split_type comm_create cart_create "
        "cart_sub graph_create dist_graph_create dist_graph_create_adjacent win_create "
        "win_allocate win_allocate_shared win_create_dynamic win_fence win_free file_open "
        "file_close".split(),
        Dependence.ALL,
    ),
    **dict.fromkeys(("intercomm_create", "intercomm_merge"), Dependence.GROUPS),
    **dict.fromkeys(
        "win_start win_complete win_wait win_lock parrived comm_create_group comm_spawn "
        "comm_accept comm_connect comm_disconnect".split(),
        Dependence.OTHERS,
    ),
}
"""Routines that are not collective communication and in which ranks wait for each other."""

ROLES = {
    **dict.fromkeys(COLLECTIVES, Role.COLLECTIVE),
    **dict.fromkeys(("send", "ssend", "rsend", "bsend", "psend"), Role.SEND),
    **dict.fromkeys(("recv", "mrecv", "precv"), Role.RECEIVE),
    **dict.fromkeys(("sendrecv", "sendrecv_replace"), Role.SENDRECV),
    **dict.fromkeys(
        "wait waitall waitany waitsome test testall testany testsome parrived buffer_detach "
        "buffer_flush comm_detach_buffer comm_flush_buffer session_detach_buffer "
        "session_flush_buffer".split(),
        Role.COMPLETION,
    ),
    **dict.fromkeys(("mprobe", "probe"), Role.PROBE),
    **dict.fromkeys(
        "accumulate compare_and_swap fetch_and_op get get_accumulate put raccumulate rget "
        "rget_accumulate rput".split(),
        Role.ONE_SIDED,
    ),
}
"""In the order of a profile, which is mpitrace's."""


def base(routine: str) -> str:
    """``allreduce`` of ``MPI_Iallreduce`` or ``MPI_Allreduce_init``."""
    name = routine.removesuffix(STARTED).removeprefix("MPI_").lower()
    name = name.removesuffix("_c").removesuffix("_init")
    return name[1:] if name not in ROLES and name[:1] == "i" and name[1:] in ROLES else name


def nonblocking(routine: str) -> bool:
    """Return whether a routine only begins an operation that another one completes."""
    name = routine.removeprefix("MPI_").lower().removesuffix("_c")
    if name.endswith(("_init", STARTED)):
        return True
    if name in ("rput", "rget", "raccumulate", "rget_accumulate"):
        return True
    return name not in ROLES and name[:1] == "i" and name[1:] in ROLES


def role(routine: str) -> Role:
    """Return the role of a routine, by its name in a record."""
    name = base(routine)
    if name.startswith("file_"):
        return Role.FILE
    return Role.ONE_SIDED if name.startswith("win_") else ROLES.get(name, Role.MANAGEMENT)


@cache
def sends_data(routine: str) -> bool:
    """Return whether a routine's calls send data of the caller to their peer."""
    if role(routine) is Role.ONE_SIDED:
        return base(routine) in ("put", "rput", "accumulate", "raccumulate")
    return role(routine) in (Role.SEND, Role.SENDRECV) and not prepares(routine)


def sent_bytes(routine: str, nbytes: float) -> float:
    """Return what calls send of their bytes: those of MPI_Sendrecv count what it receives, too."""
    return nbytes / 2 if role(routine) is Role.SENDRECV else nbytes


READ, WRITTEN = "read", "written"
"""Directions of a file call's data."""


def file_direction(routine: str) -> str | None:
    """`READ` or `WRITTEN` for calls that move a file's data; None for all others."""
    name = base(routine).removeprefix("file_i").removeprefix("file_")
    if role(routine) is not Role.FILE or not name.startswith(("read", "write")):
        return None
    return READ if name.startswith("read") else WRITTEN


def file_call_completes(routine: str) -> bool:
    """Return whether a file call returns after its data has moved. The time of other calls
    (non-blocking ones, the first half of split ones) is not that of the data."""
    name = base(routine)
    return not name.startswith("file_i") and not name.endswith("_begin")


def prepares(routine: str) -> bool:
    """Return whether a routine only makes a persistent request, of a message or a collective
    call."""
    return routine.removesuffix("_c").endswith("_init")


def begins_collective(routine: str) -> bool:
    """Return whether each call begins a collective operation, in the communicator's order."""
    return role(routine) is Role.COLLECTIVE and not prepares(routine)


def dependence(routine: str) -> Dependence | None:
    """Whom ranks wait for in a call of several, None for other routines."""
    name = base(routine)
    return COLLECTIVES.get(name) or SYNCHRONIZING.get(name)

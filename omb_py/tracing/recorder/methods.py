"""The methods of mpi4py that are observed, and the names of their parameters.

Every row is a method's name and its parameters in mpi4py's order, from which the routine follows.
A ``!`` after the name tells a class or static method. Methods that only ask (Get_rank, Get_name)
are not there: they cost less than being observed.
"""

from __future__ import annotations

from omb_py.tracing.records.routines import PICKLED

SENDS = "Send Bsend Ssend Rsend Isend Ibsend Issend Irsend"
TWO = "sendbuf recvbuf"
COLLECTIVES = {
    "allgather": TWO,
    "allgatherv": TWO,
    "allreduce": f"{TWO} op",
    "alltoall": TWO,
    "alltoallv": TWO,
    "alltoallw": TWO,
    "barrier": "",
    "bcast": "buf root",
    "exscan": f"{TWO} op",
    "gather": f"{TWO} root",
    "gatherv": f"{TWO} root",
    "neighbor_allgather": TWO,
    "neighbor_allgatherv": TWO,
    "neighbor_alltoall": TWO,
    "neighbor_alltoallv": TWO,
    "neighbor_alltoallw": TWO,
    "reduce": f"{TWO} op root",
    "reduce_scatter": f"{TWO} recvcounts op",
    "reduce_scatter_block": f"{TWO} op",
    "scan": f"{TWO} op",
    "scatter": f"{TWO} root",
    "scatterv": f"{TWO} root",
}
SENDRECV = "sendbuf dest sendtag recvbuf source recvtag"
REPLACE = "buf dest sendtag source recvtag"

COMMUNICATOR = {
    **dict.fromkeys(SENDS.split(), "buf dest tag"),
    **dict.fromkeys("Send_init Bsend_init Ssend_init Rsend_init".split(), "buf dest tag"),
    "Recv": "buf source tag status",
    "Irecv": "buf source tag",
    "Recv_init": "buf source tag",
    "Psend_init": "buf partitions dest tag info",
    "Precv_init": "buf partitions source tag info",
    "Sendrecv": f"{SENDRECV} status",
    "Sendrecv_replace": f"{REPLACE} status",
    "Isendrecv": SENDRECV,
    "Isendrecv_replace": REPLACE,
    **dict.fromkeys("Probe Iprobe Mprobe Improbe".split(), "source tag status"),
    **{name.capitalize(): parameters for name, parameters in COLLECTIVES.items()},
    **{f"I{name}": parameters for name, parameters in COLLECTIVES.items()},
    **{f"{name.capitalize()}_init": f"{p} info".strip() for name, p in COLLECTIVES.items()},
}
"""Of communicators, whatever class has them: calls with buffers."""

OBJECTS = {
    **dict.fromkeys("send bsend ssend isend ibsend issend".split(), "obj dest tag"),
    "recv": "buf source tag status",
    "irecv": "buf source tag",
    "sendrecv": "sendobj dest sendtag recvbuf source recvtag status",
    **dict.fromkeys("probe iprobe mprobe improbe".split(), "source tag status"),
    "barrier": "",
    "bcast": "obj root",
    "gather": "sendobj root",
    "scatter": "sendobj root",
    "reduce": "sendobj op root",
    **dict.fromkeys("allreduce scan exscan".split(), "sendobj op"),
    **dict.fromkeys("allgather alltoall neighbor_allgather neighbor_alltoall".split(), "sendobj"),
}
"""Of communicators: calls with objects, which mpi4py pickles."""

MAKING = dict.fromkeys(
    (
        "Clone Dup Dup_with_info Idup Idup_with_info Create Split Split_type Shrink Ishrink "
        "Create_group Create_cart Create_graph Create_dist_graph_adjacent Create_dist_graph "
        "Create_intercomm Spawn Spawn_multiple Accept Connect Merge Sub Free Disconnect Agree "
        "Iagree Create_from_group! Create_from_groups! Get_parent! Join!"
    ).split(),
    "",
)
"""Of communicators: calls that make or free them."""

REQUEST = {
    **dict.fromkeys("Wait Test wait test".split(), "status"),
    **dict.fromkeys("Waitany! Testany! waitany! testany!".split(), "requests status"),
    **dict.fromkeys(
        "Waitall! Testall! Waitsome! Testsome! waitall! testall! waitsome! testsome!".split(),
        "requests statuses",
    ),
    "Free": "",
}
PERSISTENT = {"Start": "", "Startall!": "requests", "Parrived": "partition"}
MESSAGE = {
    **dict.fromkeys("Probe! Iprobe! probe! iprobe!".split(), "comm source tag status"),
    "Recv": "buf status",
    "Irecv": "buf",
    "recv": "status",
    "irecv": "",
}

WINDOW = {
    "Create!": "memory disp_unit info comm",
    "Allocate!": "size disp_unit info comm",
    "Allocate_shared!": "size disp_unit info comm",
    "Create_dynamic!": "info comm",
    "Free": "",
    **dict.fromkeys("Put Get Rput Rget".split(), "origin target_rank target"),
    **dict.fromkeys("Accumulate Raccumulate".split(), "origin target_rank target op"),
    **dict.fromkeys(
        "Get_accumulate Rget_accumulate".split(), "origin result target_rank target op"
    ),
    "Fetch_and_op": "origin result target_rank target_disp op",
    "Compare_and_swap": "origin compare result target_rank target_disp",
    "Fence": "assertion",
    **dict.fromkeys("Start Post".split(), "group assertion"),
    **dict.fromkeys("Complete Wait Test Unlock_all Flush_all Flush_local_all Sync".split(), ""),
    "Lock": "target_rank lock_type assertion",
    "Lock_all": "assertion",
    **dict.fromkeys("Unlock Flush Flush_local".split(), "target_rank"),
}
"""Of windows; the rank of Lock, Unlock and Flush, which mpi4py calls ``rank``, is a target, too."""

FILE = {
    "Open!": "comm filename amode info",
    "Close": "",
    "Delete!": "filename info",
    "Set_size": "size",
    "Get_size": "",
    "Preallocate": "size",
    "Set_atomicity": "flag",
    **dict.fromkeys(("Seek", "Seek_shared"), "offset whence"),
    "Set_view": "disp etype filetype datarep info",
    "Sync": "",
    **{
        f"{way}{where}": f"{'offset ' if 'at' in where else ''}buf status"
        for way in ("Read", "Write")
        for where in ("_at", "_at_all", "", "_all", "_shared", "_ordered")
    },
    **{
        f"I{way}{where}": f"{'offset ' if 'at' in where else ''}buf"
        for way in ("read", "write")
        for where in ("_at", "_at_all", "", "_all", "_shared")
    },
    **{
        f"{way}{where}_begin": f"{'offset ' if 'at' in where else ''}buf"
        for way in ("Read", "Write")
        for where in ("_at_all", "_all", "_ordered")
    },
    **{
        f"{way}{where}_end": "buf status"
        for way in ("Read", "Write")
        for where in ("_at_all", "_all", "_ordered")
    },
}

PREFIXES = {"Win": "Win_", "File": "File_"}
SPECIAL = {
    "Clone": "Comm_dup",
    "Sub": "Cart_sub",
    "Create_cart": "Cart_create",
    "Create_graph": "Graph_create",
    "Create_dist_graph": "Dist_graph_create",
    "Create_dist_graph_adjacent": "Dist_graph_create_adjacent",
    "Create_intercomm": "Intercomm_create",
    "Create_from_groups": "Intercomm_create_from_groups",
    "Merge": "Intercomm_merge",
}
"""Routines that make communicators and are called otherwise than Comm_ and the method."""


def routine_of(kind: str, method: str) -> str:
    """MPI's name of the routine behind a method of a class (``Win``, ``File`` or another)."""
    method = method.removesuffix("!")
    if kind in PREFIXES:
        plain = method in WINDOW and method.endswith(
            ("put", "get", "accumulate", "Put", "Get", "Accumulate", "_and_op", "_and_swap")
        )
        return f"MPI_{method}" if plain else f"MPI_{PREFIXES[kind]}{method.lower()}"
    if kind == "Message":
        name = {"recv": "Mrecv", "irecv": "Imrecv", "probe": "Mprobe", "iprobe": "Improbe"}
        made = name[method.lower()]
    elif kind.endswith("equest") and method == "Free":
        made = "Request_free"
    elif f"{method}!" in MAKING or method in MAKING:
        made = SPECIAL.get(method, f"Comm_{method.lower()}")
    else:
        made = method[0].upper() + method[1:].lower()
    pickled = method in OBJECTS or (kind == "Message" and method in ("recv", "irecv"))
    pickled = pickled and method not in ("barrier", "probe", "iprobe", "mprobe", "improbe")
    return f"MPI_{made}{PICKLED if pickled else ''}"

"""MPI's C functions, one row each: the kinds of their parameters, in order.

A binding uses only this table for a function. A letter stands for a kind:

    b  buffer                        c  communicator
    n  count (int, or MPI_Count)     w  window
    t  datatype                      f  file
    N  counts of all ranks           g  group
    D  displacements of all ranks    I  info, always the null one
    A  the same, always MPI_Aint     o  operation
    T  datatypes of all ranks        i  int: peer and tag, root, assertion
    R  counts that ranks receive     r  requests or other objects, by address
    B  buffer, of which only         s  statuses, by address
    z  the bytes are told (int)      l  number of requests (int)
    d  displacement in a window      H  object, by value
    O  offset in a file              P  an int that starts as 0, by address
    q  count of one partition        F  a flag, by address
    k  length of the next array      a  array of ints
    u  no weights

A count, datatype or array belongs to the buffer before it; after a displacement, to the last
buffer. In a large-count function, whose name ends in ``_c``, ``n`` and ``z`` are MPI_Count, ``N``
an array of those and ``D`` one of MPI_Aint.
"""

from __future__ import annotations

from omb_py.core.errors import UnsupportedError

COLLECTIVES = {
    "allgather": "bntbntc",
    "allgatherv": "bntbNDtc",
    "allreduce": "bbntoc",
    "alltoall": "bntbntc",
    "alltoallv": "bNDtbNDtc",
    "alltoallw": "bNDTbNDTc",
    "barrier": "c",
    "bcast": "bntic",
    "exscan": "bbntoc",
    "gather": "bntbntic",
    "gatherv": "bntbNDtic",
    "neighbor_allgather": "bntbntc",
    "neighbor_allgatherv": "bntbNDtc",
    "neighbor_alltoall": "bntbntc",
    "neighbor_alltoallv": "bNDtbNDtc",
    "neighbor_alltoallw": "bNATbNATc",
    "reduce": "bbntoic",
    "reduce_scatter": "bbRtoc",
    "reduce_scatter_block": "bbntoc",
    "scan": "bbntoc",
    "scatter": "bntbntic",
    "scatterv": "bNDtbntic",
}
SENDS = {"send": "bntiic", "bsend": "bntiic", "rsend": "bntiic", "ssend": "bntiic"}

PROTOTYPES = {
    **COLLECTIVES,
    **{f"i{name}": f"{kinds}r" for name, kinds in COLLECTIVES.items()},
    **{f"{name}_init": f"{kinds}Ir" for name, kinds in COLLECTIVES.items()},
    **SENDS,
    **{f"i{name}": f"{kinds}r" for name, kinds in SENDS.items()},
    **{f"{name}_init": f"{kinds}r" for name, kinds in SENDS.items()},
    "accumulate": "bntidntow",
    "comm_disconnect": "r",
    "comm_dup": "cr",
    "comm_free": "r",
    "comm_split": "ciir",
    "compare_and_swap": "bbbtidw",
    "fetch_and_op": "bbtidow",
    "dist_graph_create_adjacent": "ckaukauIir",
    "file_read_at": "fObnts",
    "file_read_at_all": "fObnts",
    "file_sync": "f",
    "file_write_at": "fObnts",
    "file_write_at_all": "fObnts",
    "get": "bntidntw",
    "get_accumulate": "bntbntidntow",
    "irecv": "bntiicr",
    "mprobe": "iicrs",
    "mrecv": "bntrs",
    "pack": "bntBzPc",
    "pready": "iH",
    "precv_init": "biqtiicIr",
    "probe": "iics",
    "psend_init": "biqtiicIr",
    "put": "bntidntw",
    "recv": "bntiics",
    "recv_init": "bntiicr",
    "reduce_local": "bbnto",
    "request_free": "r",
    "rget": "bntidntwr",
    "rput": "bntidntwr",
    "sendrecv": "bntiibntiics",
    "start": "r",
    "startall": "lr",
    "test": "rFs",
    "unpack": "BzPbntc",
    "wait": "rs",
    "waitall": "lrs",
    "win_complete": "w",
    "win_fence": "iw",
    "win_flush": "iw",
    "win_flush_local": "iw",
    "win_lock": "iiiw",
    "win_lock_all": "iw",
    "win_post": "giw",
    "win_start": "giw",
    "win_unlock": "iw",
    "win_unlock_all": "w",
    "win_wait": "w",
}

MOST_ARGUMENTS = 12
"""Arguments that a row of `loop.c` has place for."""


def no_row(function: str, binding: str) -> UnsupportedError:
    """Return the error for a function that `PROTOTYPES` has no row of."""
    instead = "use --binding buffer, or " if binding == "native" else ""
    return UnsupportedError(
        f"binding {binding} has no {function}, whose row in omb_py/bindings/compiled/prototypes.py "
        f"is missing: {instead}add the row"
    )

"""MPI's C functions, one row each: the kinds of their parameters, in order.

This table is all that binding native knows of a function. A letter stands for a kind:

    b  buffer                        c  communicator
    n  count (int, or MPI_Count)     o  operation
    t  datatype                      i  int: peer and tag, or root
    N  counts of all ranks           r  requests, by address
    D  displacements of all ranks    s  statuses, by address
    T  datatypes of all ranks        l  number of requests (int)

A count, datatype or array belongs to the buffer before it. In a large-count function, whose name
ends in ``_c``, ``n`` is MPI_Count, ``N`` an array of those and ``D`` one of MPI_Aint.
"""

from __future__ import annotations

PROTOTYPES = {
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
    "irecv": "bntiicr",
    "isend": "bntiicr",
    "recv": "bntiics",
    "reduce": "bbntoic",
    "reduce_scatter": "bbNtoc",
    "reduce_scatter_block": "bbntoc",
    "scan": "bbntoc",
    "scatter": "bntbntic",
    "scatterv": "bNDtbntic",
    "send": "bntiic",
    "waitall": "lrs",
}

LOCAL_SHAPES = {"p", "ppp"}
"""Shapes of what is no MPI call: a wait for a device, a copy from or to it."""

WORDS = 16
ROW_BYTES = 8 * WORDS
OPERANDS = 2
TIMES = 14
STRIDE = 15
"""A row: number of its shape, address, up to 12 arguments from word `OPERANDS` on, how many times
to make the call, and the bytes by which its request moves from one time to the next."""

HANDLE_BYTES = (4, 8)
"""MPI's handles are ints (MPICH and its relatives) or pointers (Open MPI, the standard ABI)."""


def shape(kinds: str, handle_bytes: int, large: bool) -> str:
    """The machine types of a prototype's parameters.

    ``i`` has 32 bits, ``q`` 64; ``p`` is a pointer, and ``r`` one that moves from time to time.
    """
    handle = "i" if handle_bytes == 4 else "p"
    types = {"n": "q" if large else "i", "i": "i", "l": "i", "r": "r"}
    types |= dict.fromkeys("toc", handle)
    return "".join(types.get(kind, "p") for kind in kinds)


def all_shapes() -> tuple[str, ...]:
    """Every shape that a call can have, with any MPI library: what the compiled loop can call."""
    found = {
        shape(kinds, handle_bytes, large)
        for kinds in PROTOTYPES.values()
        for handle_bytes in HANDLE_BYTES
        for large in (False, True)
    }
    return tuple(sorted(found | LOCAL_SHAPES))


SHAPES = {kinds: number for number, kinds in enumerate(all_shapes())}
"""The number by which a row names its shape."""

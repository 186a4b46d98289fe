"""A coroutine awaits a message that is too long for its memory."""

import asyncio

from mpi4py import MPI

from omb_py.bindings.coroutine import completed


async def receive() -> None:
    """Receive 8 bytes into 4, from this process."""
    comm = MPI.COMM_SELF
    sent = comm.Isend(bytearray(8), 0)
    try:
        await completed([comm.Irecv(bytearray(4), 0), sent])
    except MPI.Exception:
        print("refused")


asyncio.run(receive())

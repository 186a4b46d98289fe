"""A coroutine awaits a message that is too long for its memory, in the progress mode named."""

import asyncio
import sys

from mpi4py import MPI

from omb_py.bindings.coroutine import MODES


async def receive() -> None:
    """Receive 8 bytes into 4, from this process."""
    progress, comm = MODES[sys.argv[1]](), MPI.COMM_SELF
    sent = comm.Isend(bytearray(8), 0)
    try:
        await progress.wait([comm.Irecv(bytearray(4), 0), sent])
    except MPI.Exception:
        print("refused")
    progress.close()


asyncio.run(receive())

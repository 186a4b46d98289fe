"""Measures through each binding named, twice, and then what it cannot do; prints what is left open.

``torch`` is measured while the program has a process group of its own, in another order of ranks.
"""

import gc
import os
import sys
from contextlib import suppress
from socket import create_server

from mpi4py import MPI

import omb_py

comm = MPI.COMM_WORLD


def sockets() -> int:
    """Sockets that this process has open; torch closes those of a group that nothing refers to."""
    gc.collect()
    links = (f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd"))
    found = 0
    for link in links:
        with suppress(OSError):
            found += os.readlink(link).startswith("socket:")
    return found


for binding in sys.argv[1:]:
    if binding == "torch":
        import torch
        import torch.distributed as dist

        with create_server(("127.0.0.1", 0)) as listener:
            port = comm.bcast(listener.getsockname()[1])
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        dist.init_process_group("gloo", rank=comm.size - 1 - comm.rank, world_size=comm.size)
        dist.all_reduce(torch.ones(1))  # which connects
    before = sockets()
    for _ in range(2):
        measured = omb_py.run("bcast", binding=binding, sizes="8", iterations=5, validation=True)
    with suppress(omb_py.OmbError):
        omb_py.run("scan", binding=binding, sizes="8", iterations=5)
    if binding == "torch":
        total = torch.ones(1)
        dist.all_reduce(total)
        assert total.item() == comm.size
    left = comm.allreduce(sockets() - before)
    if measured is not None:
        print(binding, [row["validation"] for row in measured.rows], left, flush=True)

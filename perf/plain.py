"""The latency of mpi4py as most people start it: thread level multiple, every call spelled out."""

from __future__ import annotations

import sys

import numpy as np
from mpi4py import MPI

size, iterations = int(sys.argv[1]), int(sys.argv[2])
comm = MPI.COMM_WORLD
outgoing = np.full(size, 1, np.uint8)
incoming = np.full(size, 2, np.uint8)
samples = []
comm.Barrier()
for _ in range(100 + iterations):
    start = MPI.Wtime()
    if comm.rank == 0:
        comm.Send([outgoing, size, MPI.CHAR], 1, 100)
        comm.Recv([incoming, size, MPI.CHAR], 1, 100)
    else:
        comm.Recv([incoming, size, MPI.CHAR], 0, 100)
        comm.Send([outgoing, size, MPI.CHAR], 0, 100)
    samples.append((MPI.Wtime() - start) * 0.5e6)
if comm.rank == 0:
    timed = samples[100:]
    print(sum(timed) / iterations, sorted(timed)[iterations // 2])

"""How many of 20 allreduces MPICH refuses when a fall-back is an error."""

from __future__ import annotations

from array import array

from omb_py.core import mpi
from omb_py.core.mpi.tool_interface import ControlVariable

MPI = mpi.load()
fallback = ControlVariable("MPIR_CVAR_COLLECTIVE_FALLBACK")
mpi.initialize("single")
world = MPI.COMM_WORLD
data, result = array("i", bytes(400)), array("i", bytes(400))
refused = 0
fallback.write(0)
for _ in range(20):
    try:
        world.Allreduce([data, MPI.INT], [result, MPI.INT])
    except MPI.Exception:
        refused += 1
fallback.write(2)
if world.rank == 0:
    print(f"refused {refused}")
MPI.Finalize()

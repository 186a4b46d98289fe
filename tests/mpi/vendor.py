"""The MPI that the tests run on, not initialised, and whose it is."""

from omb_py.core import mpi

MPI = mpi.load()
VENDOR: str = MPI.get_vendor()[0]

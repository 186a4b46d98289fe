"""Whose MPI the tests run on."""

from omb_py.core import mpi

VENDOR: str = mpi.load().get_vendor()[0]

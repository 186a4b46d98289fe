"""Whose MPI the tests run on."""

from omb_py import mpi

VENDOR: str = mpi.load().get_vendor()[0]

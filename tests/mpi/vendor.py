"""The MPI that the tests run on, not initialised, and whose it is."""

import pytest

from omb_py.core import mpi

MPI = mpi.load()
VENDOR: str = MPI.get_vendor()[0]

on_open_mpi = pytest.mark.skipif(VENDOR != "Open MPI", reason="ULFM is Open MPI's")

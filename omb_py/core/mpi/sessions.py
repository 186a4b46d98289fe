"""What MPI libraries cannot do where a session takes the place of MPI_Init."""

from __future__ import annotations

from collections.abc import Iterable

from omb_py.core.errors import UnsupportedError

LACKS = {
    "MPICH": frozenset({"comm_spawn", "file_open"}),
    "Open MPI": frozenset({"psend_init", "precv_init"}),
}
"""Functions that crash or fail in a session, by library: seen with MPICH 5.0.2, Open MPI 5.0.11."""


def check(functions: Iterable[str]) -> None:
    """Raise `UnsupportedError` when the library cannot do one of these in the session there is."""
    from mpi4py import MPI

    vendor = MPI.get_vendor()[0]
    lacking = next((name for name in functions if name in LACKS.get(vendor, ())), None)
    if lacking is not None and not MPI.Is_initialized():
        raise UnsupportedError(
            f"{vendor} cannot do MPI_{lacking.capitalize()} in a session: leave out -I"
        )

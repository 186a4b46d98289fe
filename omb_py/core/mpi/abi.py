"""The binary interface (ABI) by which mpi4py calls MPI: the MPI standard's, or the library's own.

A library of MPI 5 can come with both: MPICH 5 as ``libmpi_abi`` and ``libmpi``. They differ in
handles, constants, statuses and what they export, and an mpi4py is built for one of them.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from importlib.util import find_spec

NEEDED = b"\0libmpi_abi."
"""Start of the library's name in the string table of a file that is linked with it."""

BUILD = (
    "MPI4PY_BUILD_MPIABI=1 MPICC=mpicc_abi "
    "pip install --force-reinstall --no-cache-dir --no-binary mpi4py mpi4py"
)
"""Command that builds an mpi4py for the standard's ABI; pip keeps a build for any ABI."""


class Symbol(ctypes.Structure):
    """The structure ``Dl_info`` that dladdr(3) fills in."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


def is_standard() -> bool:
    """Return whether the mpi4py of this process is built for the standard's ABI.

    ``mpi4py.MPI`` need not have been imported; false if it cannot be imported.
    """
    try:
        spec = find_spec("mpi4py.MPI")
    except (ImportError, RuntimeError, ValueError):
        return False
    return spec is not None and spec.origin is not None and is_linked(spec.origin)


def is_linked(path: str) -> bool:
    """Return whether a shared object is linked with ``libmpi_abi``; raises `OSError`."""
    with (
        open(path, "rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        return content.find(NEEDED) >= 0


def mismatch() -> str | None:
    """Return why mpi4py has no module for the library's ABI, and the fix; None if it has one.

    Raises `RuntimeError` if mpi4py finds no library.
    """
    import mpi4py

    if find_spec("mpi4py.MPI") is not None:
        return None
    modules = [name.split(".") for name in os.listdir(os.path.dirname(mpi4py.__file__))]
    variants = " and ".join(sorted(n[1] for n in modules if n[0] == "MPI" and n[-1] == "so"))
    return (
        f"mpi4py {mpi4py.__version__} is built for the ABIs {variants}, not for that of this MPI "
        "library: name another one in MPI4PY_LIBMPI (libmpi, not libmpi_abi), or build mpi4py for "
        f"the standard's ABI with '{BUILD}'"
    )


def described() -> str:
    """Return the ABI of the library that mpi4py has loaded: ``standard 1.0`` or ``own``."""
    from mpi4py import MPI

    if not hasattr(MPI, "Get_abi_version"):  # mpi4py 4.0
        return "own"
    major, minor = MPI.Get_abi_version()
    return f"standard {major}.{minor}" if major > 0 else "own"


def library_path() -> str:
    """Return the file that holds the MPI functions mpi4py is linked with."""
    from mpi4py import MPI

    found = Symbol()
    function = ctypes.CDLL(MPI.__file__).MPI_Get_library_version
    ctypes.CDLL(None).dladdr(ctypes.cast(function, ctypes.c_void_p), ctypes.byref(found))
    return os.path.realpath(os.fsdecode(found.file or b""))

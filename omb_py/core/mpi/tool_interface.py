"""MPI's tool interface (MPI_T), called in the MPI library that mpi4py loaded.

mpi4py has no functions for it. Control variables of the library (settings) are read and written by
their name while a job runs, and before MPI_Init too.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from typing import Any

from omb_py.core.errors import OmbError

THREAD_SINGLE = 0


class ControlVariable:
    """A setting of the library: a whole number, or a text."""

    def __init__(self, name: str) -> None:
        """Find it by its name.

        Raises `OmbError` if the library has no variable of this name, or no MPI_T.
        """
        index = ctypes.c_int()
        opened()
        try:
            call("cvar_get_index", name.encode(), ctypes.byref(index))
        except OmbError as error:
            raise OmbError(
                f"the MPI library has no variable {name}: the component that it belongs to is not "
                "there, or was turned off"
            ) from error
        self._handle = ctypes.c_void_p()
        self._count = ctypes.c_int()
        call(
            "cvar_handle_alloc", index, None, ctypes.byref(self._handle), ctypes.byref(self._count)
        )

    def read(self) -> int:
        value = ctypes.c_int()
        call("cvar_read", self._handle, ctypes.byref(value))
        return value.value

    def read_text(self) -> str:
        """Return a setting that is a text."""
        value = ctypes.create_string_buffer(self._count.value + 1)
        call("cvar_read", self._handle, value)
        return os.fsdecode(value.value)

    def write(self, value: int) -> None:
        """Set it, from the next MPI call on that looks at it."""
        call("cvar_write", self._handle, ctypes.byref(ctypes.c_int(value)))


@cache
def opened() -> None:
    """Open MPI_T, to the end of the process; raise `OmbError` if the library has none."""
    call("init_thread", THREAD_SINGLE, ctypes.byref(ctypes.c_int()))


def call(name: str, *arguments: Any) -> None:
    """Call a function of MPI_T by its name without the prefix; raise `OmbError` if it fails."""
    from mpi4py import MPI

    # the library that mpi4py's module depends on: found through the module
    function = getattr(ctypes.CDLL(MPI.__file__), f"MPI_T_{name}", None)
    if function is None:
        raise OmbError(f"this MPI library lacks MPI_T_{name} of MPI 3: use one that has it")
    code = function(*arguments)
    if code:
        raise OmbError(f"MPI_T_{name} failed with code {code}")

"""MPI's tool interface (MPI_T), called in the MPI library that mpi4py loaded.

mpi4py has no functions for it. Control variables of the library (settings) are read and written by
their name while a job runs.
"""

from __future__ import annotations

import ctypes
from typing import Any

from omb_py.core.errors import OmbError

THREAD_SINGLE = 0


class ToolInterface:
    """MPI_T, open until `close`; several may be open, before MPI_Init too."""

    def __init__(self) -> None:
        """Find MPI_T in the MPI library; raise `OmbError` if the library has none."""
        from mpi4py import MPI

        # the library that mpi4py's module depends on: found through the module
        self._library = ctypes.CDLL(MPI.__file__)
        self._call("init_thread", THREAD_SINGLE, ctypes.byref(ctypes.c_int()))

    def close(self) -> None:
        self._call("finalize")

    def control(self, name: str) -> ControlVariable:
        """Return the control variable called ``name``, a whole number.

        Raises `OmbError` if the library has no variable of this name.
        """
        return ControlVariable(self._call, name)

    def _call(self, name: str, *arguments: Any) -> None:
        try:
            function = getattr(self._library, f"MPI_T_{name}")
        except AttributeError:
            raise OmbError(
                f"this MPI library lacks MPI_T_{name} of MPI 3: use one that has it"
            ) from None
        code = function(*arguments)
        if code:
            raise OmbError(f"MPI_T_{name} failed with code {code}")


class ControlVariable:
    """A setting of the library that is a whole number."""

    def __init__(self, call: Any, name: str) -> None:
        self._call = call
        index = ctypes.c_int()
        try:
            call("cvar_get_index", name.encode(), ctypes.byref(index))
        except OmbError as error:
            raise OmbError(
                f"the MPI library has no variable {name}: the component that it belongs to is not "
                "there, or was turned off"
            ) from error
        self._handle = ctypes.c_void_p()
        call(
            "cvar_handle_alloc",
            index,
            None,
            ctypes.byref(self._handle),
            ctypes.byref(ctypes.c_int()),
        )

    def read(self) -> int:
        value = ctypes.c_int()
        self._call("cvar_read", self._handle, ctypes.byref(value))
        return value.value

    def write(self, value: int) -> None:
        """Set it, from the next MPI call on that looks at it."""
        self._call("cvar_write", self._handle, ctypes.byref(ctypes.c_int(value)))

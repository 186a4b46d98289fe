"""MPI's tool interface (MPI_T), called in the MPI library that mpi4py loaded.

mpi4py has no functions for it. Variables of the library are read and written while a job runs:
control variables (settings) by their name, performance variables (counters) of a communicator.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from omb_py.core.errors import OmbError

if TYPE_CHECKING:
    from mpi4py import MPI

THREAD_SINGLE = 0
PERFORMANCE_CLASSES = range(16)
"""MPI numbers the classes of performance variables, and no two libraries alike."""


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

    def counter(self, name: str, comm: MPI.Intracomm) -> Counter:
        """Return the performance variable ``name`` of a communicator: a number for each rank.

        Raises `OmbError` if the library has no variable of this name.
        """
        return Counter(self._call, name, comm)

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


class Counter:
    """Numbers that the library counts, one for each rank of a communicator."""

    def __init__(self, call: Any, name: str, comm: MPI.Intracomm) -> None:
        from mpi4py import MPI

        self._call = call
        index, count = ctypes.c_int(), ctypes.c_int()
        for number in PERFORMANCE_CLASSES:
            try:
                call("pvar_get_index", name.encode(), number, ctypes.byref(index))
                break
            except OmbError:
                continue
        else:
            raise OmbError(f"this MPI library has no counter {name}")
        self._session, self._handle = ctypes.c_void_p(), ctypes.c_void_p()
        call("pvar_session_create", ctypes.byref(self._session))
        # a pointer to the handle, as MPI_T wants the object that a variable is bound to
        place = ctypes.c_void_p(MPI._addressof(comm))
        call(
            "pvar_handle_alloc",
            self._session,
            index,
            place,
            ctypes.byref(self._handle),
            ctypes.byref(count),
        )
        self._values = (ctypes.c_size_t * count.value)()
        call("pvar_start", self._session, self._handle)

    def read(self) -> list[int]:
        """Return the counts so far, rank by rank."""
        self._call("pvar_read", self._session, self._handle, self._values)
        return list(self._values)

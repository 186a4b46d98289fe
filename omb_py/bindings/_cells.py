"""What calls of mpi4py leave for later calls: the Python side of `Cell`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from mpi4py import MPI

from omb_py.core.calls import Call, Cell

METHODS: dict[str, Callable[..., Any]] = {
    "comm_disconnect": MPI.Comm.Disconnect,
    "comm_free": MPI.Comm.Free,
    "mrecv": MPI.Message.Recv,
    "pready": MPI.Prequest.Pready,
    "request_free": MPI.Request.Free,
    "start": MPI.Prequest.Start,
    "startall": MPI.Prequest.Startall,
    "test": MPI.Request.Test,
    "wait": MPI.Request.Wait,
    "waitall": MPI.Request.Waitall,
}
"""Functions of an object that a call has made, by mpi4py's methods."""

OF_ALL = ("startall", "waitall")
"""Those that take all objects of a cell."""


class Cells:
    """The objects in all cells of a binding."""

    def __init__(self) -> None:
        self._found: dict[Cell, list[Any]] = {}

    def clear(self) -> None:
        """Forget them."""
        self._found.clear()

    def keep(self, call: Call, bound: Callable[[], Any]) -> Callable[[], Any]:
        """A bound call whose result goes to its cell."""
        assert call.cell is not None
        return partial(_keep, bound, self.held(call.cell), call.index)

    def use(
        self, call: Call, arguments: Sequence[Any], method: Callable[..., Any] | None = None
    ) -> Callable[[], Any]:
        """A bound call of a method of what the cell holds, now or when it is called."""
        assert call.cell is not None
        objects, method = self.held(call.cell), method or METHODS[call.function]
        if call.function in OF_ALL:
            return partial(method, objects)
        if isinstance(objects[call.index], MPI.Prequest):
            return partial(getattr(objects[call.index], method.__name__), *arguments)
        return partial(_use, method, objects, call.index, arguments)

    def held(self, cell: Cell) -> list[Any]:
        """The objects of a cell, None where there is none yet."""
        return self._found.setdefault(cell, [None] * cell.count)


def _keep(bound: Callable[[], Any], objects: list[Any], index: int) -> None:
    objects[index] = bound()


def _use(
    method: Callable[..., Any], objects: list[Any], index: int, arguments: Sequence[Any]
) -> Any:
    return method(objects[index], *arguments)

"""MPI's datatypes for messages: basic ones, and derived ones for layouts with gaps; constants."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from mpi4py import MPI

from omb_py.core.calls import Message
from omb_py.core.dataclass import dataclass
from omb_py.core.datatypes import Datatype, Layout
from omb_py.core.errors import UnsupportedError

LARGEST_INT = 2**31 - 1


@dataclass(frozen=True)
class Blocks:
    """The operands that describe a message to MPI: a count and a displacement for each block.

    Counts are in elements of ``datatype``, which has gaps if the layout does; so are displacements,
    but in bytes if blocks have types of their own (form ``w``).
    """

    datatype: MPI.Datatype
    counts: list[int]
    displacements: list[int]

    @property
    def count(self) -> int:
        """The count of each block if all have the same; 0 if there is no block."""
        return self.counts[0] if self.counts else 0


class Datatypes:
    """Makes each derived datatype once, and frees them together."""

    def __init__(self) -> None:
        self._derived: dict[tuple[Datatype, Layout, int], MPI.Datatype] = {}

    def blocks(self, message: Message) -> Blocks:
        """Return the counts, displacements and types that describe a message to MPI."""
        datatype, unit = self._of(message)
        step = unit * message.datatype.itemsize if message.form == "w" else 1
        return Blocks(
            datatype,
            [count // unit for count in message.counts],
            [start // unit * step for start in message.displacements],
        )

    def _of(self, message: Message) -> tuple[MPI.Datatype, int]:
        """Return MPI's datatype for a message, and the number of elements that it covers."""
        basic = _basic(message.datatype)
        elements = message.counts[0] if message.counts else 0
        if message.layout.contiguous or not elements:
            return basic, 1
        key = (message.datatype, message.layout, elements)
        if key not in self._derived:
            self._derived[key] = _derive(basic, message.layout, elements, message.datatype.itemsize)
        return self._derived[key], elements

    def free(self) -> None:
        for datatype in self._derived.values():
            datatype.Free()
        self._derived.clear()


def _basic(datatype: Datatype) -> MPI.Datatype:
    """Return MPI's own datatype; raise `UnsupportedError` if the library or mpi4py has none."""
    for name in datatype.mpi_names:
        basic: MPI.Datatype = getattr(MPI, name, MPI.DATATYPE_NULL)
        if basic != MPI.DATATYPE_NULL:
            return basic
    raise UnsupportedError(
        f"this MPI library or mpi4py has no elements of {datatype.name}: use mpi4py 4.1 or "
        "later with a library that has them, or other elements"
    )


def _derive(basic: MPI.Datatype, layout: Layout, elements: int, itemsize: int) -> MPI.Datatype:
    """Return a committed datatype for one block, as long as the block so that blocks can follow."""
    pieces = layout.pieces(elements)
    if layout.stride:
        shaped = basic.Create_vector(len(pieces), layout.length, layout.stride)
    else:
        shaped = basic.Create_indexed([p[1] for p in pieces], [p[0] for p in pieces])
    resized = shaped.Create_resized(0, elements * itemsize)
    shaped.Free()
    return resized.Commit()


def check_sum(datatype: Datatype, algorithms: Sequence[str] = ()) -> None:
    """Raise `UnsupportedError` for elements that the MPI library can move, but not add.

    ``algorithms`` are own ones that can.
    """
    lacking = getattr(MPI, datatype.mpi, MPI.DATATYPE_NULL) == MPI.DATATYPE_NULL
    if datatype.moved_as and lacking:
        instead = f", or add --p2p-algorithm {algorithms[0]}" if algorithms else ""
        raise UnsupportedError(
            f"this MPI library has no MPI_{datatype.mpi}, so that it cannot add {datatype.name}: "
            f"choose another -T{instead}"
        )


def check_count(binding: str, elements: int) -> None:
    """Raise `UnsupportedError` for more elements than an int counts, if MPI's counts are ints.

    The functions with large counts, whose names end in ``_c``, came with MPI 4.
    """
    if elements > LARGEST_INT and not hasattr(ctypes.CDLL(MPI.__file__), "MPI_Send_c"):
        raise UnsupportedError(
            f"binding {binding} cannot send {elements} elements at once: this MPI library has no "
            "MPI_Send_c, which counts more than an int; use larger elements (-T), or --binding pkl5"
        )


def constant(value: Any) -> Any:
    """Return a further argument: itself, or the constant of MPI that a text names."""
    return getattr(MPI, value) if isinstance(value, str) else value

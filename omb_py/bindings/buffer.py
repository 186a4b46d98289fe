"""mpi4py's upper-case methods, which hand a buffer's address to MPI."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from mpi4py import MPI

from omb_py.bindings import Binding, BoundCall
from omb_py.calls import IN_PLACE, Call, Message, Operand
from omb_py.datatypes import Datatype
from omb_py.layout import Layout


class BufferBinding(Binding):
    """``comm.Send([array, count, MPI.BYTE], peer, tag)``, the specification made once."""

    name = "buffer"

    def __init__(self, comm: MPI.Intracomm) -> None:
        super().__init__(comm)
        self._derived: dict[tuple[Datatype, Layout, int], MPI.Datatype] = {}

    def bind_call(self, call: Call) -> BoundCall:
        arguments: list[Any] = [self._specification(operand) for operand in call.operands]
        if call.peer is not None:
            arguments += [call.peer, call.tag]
        if call.counts is not None:
            arguments.append(call.counts)
        if call.op is not None:
            arguments.append(getattr(MPI, call.op.upper()))
        if call.root is not None:
            arguments.append(call.root)
        return partial(self.method(call.function.capitalize()), *arguments)

    def wait_all(self, requests: Sequence[MPI.Request]) -> None:
        MPI.Request.Waitall(requests)

    def _specification(self, operand: Operand) -> Any:
        """mpi4py's buffer specification: what a user would write, by the message's form."""
        if operand is IN_PLACE:
            return MPI.IN_PLACE
        if not isinstance(operand, Message):
            return None
        datatype, unit = self._datatype(operand)
        counts = [count // unit for count in operand.counts]
        displacements = [start // unit for start in operand.displacements]
        if operand.form == "w":
            size = unit * operand.datatype.itemsize
            bytes_from_start = [start * size for start in displacements]
            return [operand.memory.array, (counts, bytes_from_start), [datatype] * len(counts)]
        if operand.form == "v":
            return [operand.memory.array, (counts, displacements), datatype]
        return [operand.memory.array, counts[0], datatype]

    def _datatype(self, message: Message) -> tuple[MPI.Datatype, int]:
        """MPI's datatype for a message, and how many elements one of it covers."""
        basic: MPI.Datatype = getattr(MPI, message.datatype.mpi)
        elements = message.counts[0]
        if message.layout.contiguous or not elements:
            return basic, 1
        key = (message.datatype, message.layout, elements)
        if key not in self._derived:
            self._derived[key] = _derive(basic, message.layout, elements, message.datatype.itemsize)
        return self._derived[key], elements


def _derive(basic: MPI.Datatype, layout: Layout, elements: int, itemsize: int) -> MPI.Datatype:
    """A committed datatype for one block, as long as the block so that blocks can follow."""
    pieces = layout.pieces(elements)
    if layout.stride:
        shaped = basic.Create_vector(len(pieces), layout.length, layout.stride)
    else:
        shaped = basic.Create_indexed([p[1] for p in pieces], [p[0] for p in pieces])
    resized = shaped.Create_resized(0, elements * itemsize)
    shaped.Free()
    return resized.Commit()


BINDING = BufferBinding

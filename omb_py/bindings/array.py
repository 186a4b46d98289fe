"""mpi4py's upper-case methods given arrays alone, as most programs are written."""

from __future__ import annotations

from typing import Any

from mpi4py import MPI

from omb_py.bindings.buffer import BufferBinding
from omb_py.calls import IN_PLACE, Call, Message, Operand
from omb_py.errors import UnsupportedError


class ArrayBinding(BufferBinding):
    """``comm.Send(array, peer, tag)``: mpi4py finds out count and type in every call."""

    name = "array"

    def arguments(self, call: Call) -> list[Any]:
        messages = [operand for operand in call.operands if isinstance(operand, Message)]
        if not all(message.layout.contiguous for message in messages):
            raise UnsupportedError("binding array sends whole arrays: leave out -D")
        if call.op is not None and not all(message.memory.adds for message in messages):
            raise UnsupportedError(
                "binding array cannot reduce these objects, whose elements are bytes to mpi4py: "
                "use --buffer numpy"
            )
        return super().arguments(call)

    def specification(self, operand: Operand) -> Any:
        if operand is IN_PLACE:
            return MPI.IN_PLACE
        if not isinstance(operand, Message):
            return None
        if operand.form == "w":
            raise UnsupportedError(
                "binding array has no alltoallw, which needs a type for each rank: use "
                "--binding buffer"
            )
        if operand.form == "v":
            return [operand.memory.array, operand.counts]
        return operand.memory.array


BINDING = ArrayBinding

"""mpi4py's upper-case methods given only arrays, as most programs are written."""

from __future__ import annotations

from typing import Any

from omb_py.bindings.buffer import BufferBinding
from omb_py.core.calls import Call, Message
from omb_py.core.errors import UnsupportedError


class ArrayBinding(BufferBinding):
    """``comm.Send(array, peer, tag)``: mpi4py finds out count and type in every call."""

    name = "array"

    def arguments(self, call: Call) -> list[Any]:
        if not all(message.layout.contiguous for message in call.messages):
            raise UnsupportedError("binding array sends whole arrays: leave out -D")
        if call.op is not None and not all(message.memory.typed for message in call.messages):
            raise UnsupportedError(
                "binding array cannot reduce elements that mpi4py sees as bytes: use --buffer "
                "numpy, or --binding buffer"
            )
        return super().arguments(call)

    def describe_message(self, message: Message, sent: bool = False) -> Any:
        if message.form == "w":
            raise UnsupportedError(
                "binding array has no alltoallw, which needs a type for each rank: use "
                "--binding buffer"
            )
        array = message.memory.sent if sent else message.memory.array
        if array is not message.memory.array and memoryview(array).format[:1] == "=":
            raise UnsupportedError(
                "mpi4py finds no MPI type for the elements of JAX's arrays, which have to be given "
                "with it: use --binding buffer, or --buffer numpy"
            )
        if message.form == "v":
            return [array, list(message.counts)]  # a tuple has displacements, too
        return array

    def partitioned(self, message: Message, partitions: int, sent: bool) -> Any:
        return self.describe_message(message, sent)

    def target(self, call: Call, origin: Message) -> Any:
        return call.at


BINDING = ArrayBinding

"""mpi4py's upper-case methods, which hand a buffer's address to MPI."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import repeat
from typing import Any

from mpi4py import MPI

from omb_py.bindings import BoundCall, MethodBinding
from omb_py.bindings._datatypes import Datatypes
from omb_py.calls import IN_PLACE, Call, Message, Operand
from omb_py.options import Options


class BufferBinding(MethodBinding):
    """``comm.Send([array, count, MPI.BYTE], peer, tag)``, the specification made once."""

    name = "buffer"

    def __init__(self, comm: MPI.Intracomm, options: Options) -> None:
        super().__init__(comm, options)
        self._datatypes = Datatypes()

    def bind_call(self, call: Call) -> BoundCall:
        return partial(self.method(call.function.capitalize()), *self.arguments(call))

    def start(self, calls: Sequence[Call]) -> Callable[[], list[Any]]:
        if any(call is not calls[0] for call in calls):
            return super().start(calls)
        method = self.method(calls[0].function.capitalize())
        return partial(_repeat, method, self.arguments(calls[0]), len(calls))

    def wait_all(self, requests: Sequence[MPI.Request]) -> None:
        MPI.Request.Waitall(requests)

    def release(self) -> None:
        self._datatypes.free()

    def arguments(self, call: Call) -> list[Any]:
        """What the communicator's method for ``call`` is to be given."""
        arguments: list[Any] = [self.specification(operand) for operand in call.operands]
        if call.peer is not None:
            arguments += [call.peer, call.tag]
        if call.counts is not None:
            arguments.append(call.counts)
        if call.op is not None:
            arguments.append(getattr(MPI, call.op.upper()))
        if call.root is not None:
            arguments.append(call.root)
        return arguments

    def specification(self, operand: Operand) -> Any:
        """mpi4py's buffer specification of an operand: what a user would write."""
        if operand is IN_PLACE:
            return MPI.IN_PLACE
        if not isinstance(operand, Message):
            return None
        return self.describe_message(operand)

    def describe_message(self, message: Message) -> Any:
        """The specification of a message, by its form."""
        blocks = self._datatypes.blocks(message)
        array, datatype = message.memory.array, blocks.datatype
        if message.form == "w":
            types = [datatype] * len(blocks.counts)
            return [array, (blocks.counts, blocks.displacements), types]
        if message.form == "v":
            return [array, (blocks.counts, blocks.displacements), datatype]
        return [array, blocks.counts[0], datatype]


def _repeat(method: Callable[..., Any], arguments: list[Any], times: int) -> list[Any]:
    """Call ``method`` so many times, with no bytecode between two calls."""
    return list(map(method, *[repeat(argument, times) for argument in arguments]))


BINDING = BufferBinding

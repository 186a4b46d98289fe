"""mpi4py's upper-case methods, which hand a buffer's address to MPI."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import repeat
from typing import Any

from mpi4py import MPI

from omb_py.bindings import BoundCall, MethodBinding
from omb_py.bindings.compiled.datatypes import Datatypes, check_count, check_sum, constant
from omb_py.bindings.compiled.prototypes import PROTOTYPES, no_row
from omb_py.core.calls import IN_PLACE, Call, Message, Operand
from omb_py.core.datatypes import BRAIN, Datatype, narrow, widen
from omb_py.core.options import Options

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
"""Those that take all objects of a slot."""


def _use(
    method: Callable[..., Any], objects: list[Any], index: int, arguments: Sequence[Any]
) -> Any:
    return method(objects[index], *arguments)


PREFIXES = ("win_", "file_", "comm_")
"""Prefixes of functions that are methods of a window, a file or a communicator."""

MAKERS = {
    "comm_spawn": "Spawn",
    "dist_graph_create_adjacent": "Create_dist_graph_adjacent",
}
"""Functions that make a communicator, by methods whose arguments are not C's."""

SPAWNED = "from mpi4py import MPI; MPI.Comm.Get_parent().Disconnect()"
"""The program of a spawned process."""

REORDERED = {"win_lock": (1, 0, 2)}
"""Functions whose methods take the further arguments in another order than C."""


class BufferBinding(MethodBinding):
    """``comm.Send([array, count, MPI.BYTE], peer, tag)``, the specification made once."""

    name = "buffer"
    instead = "native"
    own_sums = frozenset({BRAIN})

    def __init__(self, comm: MPI.Intracomm, options: Options) -> None:
        super().__init__(comm, options)
        self._datatypes = Datatypes()

    def bind_call(self, call: Call) -> BoundCall:
        if call.slot is not None and call.function in METHODS:
            return self.use(call, self.arguments(call))
        if call.function in ("pack", "unpack"):
            return self._bind_packing(call)
        if call.function == "reduce_local" and call.messages[0].datatype.code == BRAIN:
            return partial(add_brain, *(one.memory.ndarray("uint16") for one in call.messages))
        if call.function == "reduce_local":
            *messages, operation = self.arguments(call)
            return partial(operation.Reduce_local, *messages)
        if call.function in MAKERS:
            maker = partial(self.method(MAKERS[call.function]), *self._given_to_maker(call))
            return self.kept(call, maker)
        name = call.function
        for prefix in PREFIXES:
            name = name.removeprefix(prefix)
        bound = partial(self.method(name.capitalize(), call.on), *self.arguments(call))
        return self.kept(call, bound)

    def use(
        self, call: Call, arguments: Sequence[Any], method: Callable[..., Any] | None = None
    ) -> BoundCall:
        """Return a bound call of a method of what the slot holds, now or when it is called."""
        objects, method = self.held(call), method or METHODS[call.function]
        if call.function in OF_ALL:
            return partial(method, objects)
        if isinstance(objects[call.index], MPI.Prequest):
            return partial(getattr(objects[call.index], method.__name__), *arguments)
        return partial(_use, method, objects, call.index, arguments)

    def start(self, calls: Sequence[Call]) -> Callable[[], list[Any]]:
        if any(call is not calls[0] for call in calls):
            return super().start(calls)
        method = self.method(calls[0].function.capitalize(), calls[0].on)
        return partial(_repeat, method, self.arguments(calls[0]), len(calls))

    def wait_all(self, requests: Sequence[MPI.Request]) -> None:
        MPI.Request.Waitall(requests)

    def check_sum(self, datatype: Datatype, algorithms: Sequence[str] = ()) -> None:
        if not (self.options.own_algorithm and datatype.code in self.own_sums):
            check_sum(datatype, algorithms)

    def release(self) -> None:
        super().release()
        self._datatypes.free()

    def arguments(self, call: Call) -> list[Any]:
        """Return the arguments of the method for ``call``: as in C, but each side in one piece."""
        order = REORDERED.get(call.function)
        if order is None:
            return list(self._arguments(call))
        return [constant(call.values[place]) for place in order]

    def _arguments(self, call: Call) -> Iterator[Any]:
        kinds = PROTOTYPES.get(call.function, "")
        if not kinds and (call.operands or call.values or call.peer is not None):
            raise no_row(call.function, self.name)
        operands, further = iter(call.operands), iter(call.further)
        written = call.written(self.comm.rank) if call.operands else None
        last: Operand = None
        for kind in kinds:
            if kind in "bB":
                last = next(operands)
                if "q" in kinds and isinstance(last, Message):
                    yield self.partitioned(last, call.values[0], last is not written)
                else:
                    yield self.specification(last, last is not written)
            elif kind in "ig":
                yield constant(next(further))
            elif kind == "R":
                yield call.counts
            elif kind == "o":
                assert call.op is not None
                yield getattr(MPI, call.op.upper())
            elif kind == "O":
                yield call.at
            elif kind == "d":
                assert isinstance(last, Message)
                yield self.target(call, last) if "dn" in kinds else call.at

    def specification(self, operand: Operand, sent: bool) -> Any:
        """Return mpi4py's buffer specification of an operand, as a user would write it.

        ``sent`` is true if MPI only reads it.
        """
        if operand is IN_PLACE:
            return MPI.IN_PLACE
        if not isinstance(operand, Message):
            return None
        return self.describe_message(operand, sent)

    def describe_message(self, message: Message, sent: bool = False) -> Any:
        """Return the specification of a message, by its form."""
        check_count(self.name, message.elements)
        blocks = self._datatypes.blocks(message)
        array = message.memory.sent if sent else message.memory.array
        datatype = blocks.datatype
        if message.form == "w":
            types = [datatype] * len(blocks.counts)
            return [array, (blocks.counts, blocks.displacements), types]
        if message.form == "v":
            return [array, (blocks.counts, blocks.displacements), datatype]
        return [array, blocks.count, datatype]

    def target(self, call: Call, origin: Message) -> Any:
        """Return the place of a one-sided call in the target's window."""
        _, count, datatype = self.describe_message(origin)
        return [call.at, count, datatype]

    def partitioned(self, message: Message, partitions: int, sent: bool) -> Any:
        """Return the specification of a message in equal parts, which has the count of one."""
        array, count, datatype = self.describe_message(message, sent)
        return [array, count // partitions, datatype]

    def _given_to_maker(self, call: Call) -> tuple[Any, ...]:
        """Return the arguments of mpi4py's method that makes a communicator (`MAKERS`)."""
        if call.function == "comm_spawn":
            return sys.executable, ["-c", SPAWNED], call.values[0]
        return call.values[:2]

    def _bind_packing(self, call: Call) -> BoundCall:
        """Bind MPI_Pack or MPI_Unpack, which are methods of the datatype."""
        first, second = call.messages
        arrays = first.memory.array, second.memory.array
        if call.function == "pack":
            return partial(self._datatypes.blocks(first).datatype.Pack, *arrays, 0, self.comm)
        datatype = self._datatypes.blocks(second).datatype
        return partial(datatype.Unpack, arrays[0], 0, arrays[1], self.comm)


def add_brain(addend: Any, total: Any) -> None:
    """Add bfloat16 elements."""
    total[...] = narrow(widen(addend) + widen(total))


def _repeat(method: Callable[..., Any], arguments: list[Any], times: int) -> list[Any]:
    """Call ``method`` as many ``times``, with no bytecode between two calls."""
    return list(map(method, *[repeat(argument, times) for argument in arguments]))


BINDING = BufferBinding

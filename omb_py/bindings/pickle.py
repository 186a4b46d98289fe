"""mpi4py's lower-case methods, which pickle any Python object."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from operator import methodcaller
from typing import Any

from mpi4py import MPI

from omb_py.bindings import BoundCall, MethodBinding, calls_of
from omb_py.bindings.buffer import BufferBinding
from omb_py.bindings.compiled.datatypes import check_count
from omb_py.core.calls import IN_PLACE, Call, Message, Operand, Slot, Step
from omb_py.core.errors import UnsupportedError
from omb_py.core.options import Options

PICKLE_OVERHEAD = 4096
"""Bytes by which the pickle of an array may exceed its data."""

RECEIVES = ("recv", "irecv")
WAITS = ("wait", "waitall")
TAKES_LIST = ("scatter", "alltoall", "neighbor_alltoall")
RETURNS_LIST = ("gather", "allgather", "alltoall", "neighbor_allgather", "neighbor_alltoall")


class PickleBinding(MethodBinding):
    """``comm.send(array, peer, tag)``: objects go in, new objects come out."""

    name = "pickle"
    passes_addresses = False
    serializer = MPI.pickle
    in_band = True
    """Whether a message's bytes are one message of MPI."""

    def __init__(self, comm: MPI.Intracomm, options: Options) -> None:
        super().__init__(comm, options)
        self._plain = BufferBinding(comm, options)
        self._awaited: dict[Slot, dict[int, Message]] = {}
        self._protocol = self.serializer.PROTOCOL
        if options.pickle_protocol is not None:
            self.serializer.PROTOCOL = options.pickle_protocol

    def describe(self) -> dict[str, str]:
        return {"pickle_protocol": str(self.serializer.PROTOCOL)}

    def bind_call(self, call: Call) -> BoundCall:
        messages = self._check(call)
        if call.function == "mrecv":
            return self._plain.use(call, (), methodcaller("recv"))
        if call.slot in self._awaited and call.function in WAITS:
            requests = self._plain.held(call)
            if call.function == "waitall":
                return partial(self.wait_all, requests)
            return lambda: requests[call.index].wait()
        if not call.operands and call.function not in ("barrier", "mprobe"):
            return self._plain.bind_call(call)
        method = self.method(call.function, call.on)
        if call.function in RECEIVES:
            buffer = None
            if call.function == "irecv":
                buffer = bytearray(messages[0].memory.nbytes + PICKLE_OVERHEAD)
            receive = partial(method, buffer, call.peer, call.tag)
            if call.slot is None:
                return receive
            self._awaited.setdefault(call.slot, {})[call.index] = messages[0]
            return self._plain.kept(call, receive)
        as_list = call.function in TAKES_LIST
        arguments: list[Any] = [self._payload(one, as_list) for one in call.operands[:1]]
        if call.function == "sendrecv":
            destination, sent, source, received = call.values
            return partial(method, *arguments, destination, sent, None, source, received)
        if call.peer is not None:
            arguments += [call.peer, call.tag]
        if call.op is not None:
            arguments.append(getattr(MPI, call.op.upper()))
        if call.root is not None:
            arguments.append(call.root)
        return self._plain.kept(call, partial(method, *arguments))

    def release(self) -> None:
        super().release()
        self._plain.release()

    def close(self) -> None:
        super().close()
        self.serializer.PROTOCOL = self._protocol  # mpi4py has one for the whole program

    def wait_all(self, requests: Sequence[MPI.Request]) -> list[Any]:
        return MPI.Request.waitall(requests) or []

    def deliver(self, step: Step, result: Any) -> None:
        calls = calls_of(step)
        if not calls:
            return
        if isinstance(step, Call) and step.slot in self._awaited:
            self._deliver_awaited(step, result)
            return
        results = [result]
        if not isinstance(step, Call):
            results = [item for group in result for item in group]
        for call, value in zip(calls, results, strict=True):
            message = call.operands[-1] if call.operands else None
            if not isinstance(message, Message) or value is None or call.function.endswith("send"):
                continue
            arrived = value if call.function in RETURNS_LIST else [value]
            for block, data in zip(message.blocks(), arrived, strict=True):
                block.write(data)

    def _deliver_awaited(self, call: Call, result: Any) -> None:
        """Put what a wait for receives of a slot returned into memory."""
        assert call.slot is not None
        for index, message in self._awaited[call.slot].items():
            if call.function == "waitall":
                message.memory.write(result[index])
            elif call.function == "wait" and index == call.index:
                message.memory.write(result)

    def _check(self, call: Call) -> tuple[Message, ...]:
        """Return the call's messages; raises `UnsupportedError` if objects cannot do it."""
        messages = call.messages
        if call.function.endswith(("v", "w")) and not call.function.endswith("recv"):
            plain = call.function[:-1]
            raise UnsupportedError(
                f"binding {self.name} has no {call.function}: mpi4py's {plain} takes objects "
                f"of any size; measure {plain}, or use --binding buffer"
            )
        if call.function.startswith("reduce_scatter"):
            raise UnsupportedError(
                f"binding {self.name} has no {call.function}: mpi4py reduces objects only with "
                "reduce, allreduce, scan and exscan; use --binding buffer"
            )
        if IN_PLACE in call.operands:
            raise UnsupportedError(f"binding {self.name} has no in-place form: leave out -l")
        if not all(message.layout.contiguous for message in messages):
            raise UnsupportedError(f"binding {self.name} sends whole objects: leave out -D")
        if call.peer is None and not MPI.Is_initialized():
            raise UnsupportedError(
                f"binding {self.name} has no collectives in a session, where mpi4py lacks the "
                "MPI_COMM_SELF that they need: leave out -I"
            )
        if call.op is not None and not all(message.memory.adds for message in messages):
            raise UnsupportedError(
                f"binding {self.name} cannot reduce these objects, since + joins instead of "
                "adding: use --buffer numpy"
            )
        return messages

    def _payload(self, operand: Operand, as_list: bool) -> Any:
        """Return the object that a message sends, or one for each block."""
        if not isinstance(operand, Message):
            return None
        if self.in_band:
            check_count(self.name, operand.memory.nbytes)
        if as_list:
            return [block.payload() for block in operand.blocks()]
        return operand.memory.payload()


BINDING = PickleBinding

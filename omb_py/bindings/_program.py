"""Calls as rows of numbers: what binding native's compiled loop reads."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from omb_py.bindings._datatypes import Datatypes
from omb_py.bindings._prototypes import PROTOTYPES, SHAPES, TIMES, shape
from omb_py.buffers import Local
from omb_py.calls import IN_PLACE, Call, Message, Operand, Step
from omb_py.errors import UnsupportedError

if TYPE_CHECKING:
    from omb_py.clock import CommonStart

LARGEST_INT = 2**31 - 1


class Program:
    """C calls, written as rows of 64-bit words that the compiled loop reads."""

    def __init__(self, comm: MPI.Intracomm, library: Library, datatypes: Datatypes) -> None:
        self._comm = MPI._handleof(comm)
        self._library = library
        self._datatypes = datatypes
        self._kept: list[Any] = []
        self.words: list[int] = []
        self.names: list[str] = []
        self.clock = library.address("clock_gettime")
        self.sched_yield = library.address("sched_yield")

    @property
    def end(self) -> int:
        """The number that the next row will have."""
        return len(self.names)

    def add(self, step: Step) -> None:
        """The calls of ``step``, then those that wait for the requests of a window."""
        if isinstance(step, Local):
            self._row(step.name, step.function, "p" * len(step.arguments), list(step.arguments))
            return
        if isinstance(step, Call):
            self._call(step, requests=0)
            return
        waits = []
        for group in step.groups:
            handle = self._library.handle
            requests = self._keep(ctypes.create_string_buffer(len(group) * handle))
            posted = 0
            for call, same in groupby(group):
                times = len(list(same))
                self._call(call, requests + posted * handle, times)
                posted += times
            waits.append((len(group), requests))
        for count, requests in reversed(waits):
            statuses = self._keep(ctypes.create_string_buffer(count * MPI._sizeof(MPI.Status)))
            self._function("waitall", [count, requests, statuses], large=False)

    def announce(self, start: CommonStart) -> None:
        """The broadcast of a common start; the loop fills in where its time is."""
        double = MPI._handleof(MPI.DOUBLE)
        self._function("bcast", [address_of(start.cells), 1, double, 0, self._comm], large=False)

    def _call(self, call: Call, requests: int, times: int = 1) -> None:
        kinds = PROTOTYPES.get(call.function)
        if kinds is None:
            raise UnsupportedError(
                f"binding native has no {call.function}: add its prototype to "
                "bindings/_prototypes.py, or use --binding buffer"
            )
        large = any(
            max(message.counts[-1] + message.displacements[-1], *message.counts) > LARGEST_INT
            for message in call.messages
        )
        arguments = list(self._arguments(call, kinds, requests, large))
        self._function(call.function, arguments, large, times)

    def _arguments(self, call: Call, kinds: str, requests: int, large: bool) -> Iterator[int]:
        operands = iter(call.operands)
        integers = iter([call.root] if call.peer is None else [call.peer, call.tag])
        message: Message | None = None
        for kind in kinds:
            if kind == "b":
                operand = next(operands)
                message = self._described_by(call, operand)
                yield self._buffer(operand)
            elif kind in "ntNDT":
                yield self._side(kind, message, call.counts, large)
            elif kind == "i":
                value = next(integers)
                assert value is not None
                yield value
            elif kind == "o":
                assert call.op is not None
                yield MPI._handleof(getattr(MPI, call.op.upper()))
            elif kind == "c":
                yield self._comm
            elif kind == "r":
                yield requests
            else:
                yield self._keep(ctypes.create_string_buffer(MPI._sizeof(MPI.Status)))

    def _described_by(self, call: Call, operand: Operand) -> Message | None:
        """The message whose count and datatype stand after an operand.

        A reduction has them once, for both operands, one of which a rank may lack.
        """
        if isinstance(operand, Message) or call.op is None:
            return operand if isinstance(operand, Message) else None
        return next(iter(call.messages), None)

    def _buffer(self, operand: Operand) -> int:
        if operand is IN_PLACE:
            return int(MPI.IN_PLACE)
        if not isinstance(operand, Message):
            return 0
        memory = MPI.buffer.frombuffer(operand.memory.array)
        self._kept.append(memory)
        return memory.address

    def _side(
        self, kind: str, message: Message | None, counts: tuple[int, ...] | None, large: bool
    ) -> int:
        """A count, a datatype or an array of them; nothing where a rank has no part."""
        if message is None:
            return MPI._handleof(MPI.BYTE) if kind == "t" else 0
        blocks = self._datatypes.blocks(message)
        handle = MPI._handleof(blocks.datatype)
        if kind == "t":
            return handle
        if kind == "T":
            code = "i" if self._library.handle == 4 else "q"
            types = [_signed(handle, self._library.handle)] * len(blocks.counts)
            return self._array(code, types)
        if kind == "n":
            return blocks.counts[0]
        code = "q" if large else "i"
        if kind == "N":
            return self._array(code, list(counts or blocks.counts))
        return self._array(code, blocks.displacements)

    def _array(self, code: str, values: list[int]) -> int:
        kept = array(code, values)
        self._kept.append(kept)
        return address_of(kept)

    def _keep(self, memory: Any) -> int:
        self._kept.append(memory)
        return ctypes.addressof(memory)

    def _function(self, function: str, arguments: list[int], large: bool, times: int = 1) -> None:
        name = f"MPI_{function.capitalize()}{'_c' if large else ''}"
        kinds = shape(PROTOTYPES[function], self._library.handle, large)
        self._row(name, self._library.address(name), kinds, arguments, times)

    def _row(
        self, name: str, address: int, kinds: str, arguments: list[int], times: int = 1
    ) -> None:
        words = [SHAPES[kinds], address, *(_signed(word) for word in arguments)]
        words += [0] * (TIMES - len(words))
        self.words += [*words, times, self._library.handle]
        self.names.append(name)


class Library:
    """The MPI library of this process: addresses of its functions, and how wide its handles are."""

    def __init__(self) -> None:
        # In the order in which mpi4py's own references were resolved, so that a profiling library
        # that stands before MPI sees these calls too.
        self._scopes = (ctypes.CDLL(None), ctypes.CDLL(MPI.__file__))
        self.handle = MPI._sizeof(MPI.Comm)

    def address(self, name: str) -> int:
        """The address of a C function; raises `UnsupportedError` where the library lacks it."""
        for scope in self._scopes:
            if hasattr(scope, name):
                return ctypes.cast(getattr(scope, name), ctypes.c_void_p).value or 0
        raise UnsupportedError(f"binding native cannot do it: this MPI library has no {name}")


def address_of(values: array[Any]) -> int:
    """Where the elements of an array are."""
    return values.buffer_info()[0]


def _signed(word: int, size: int = 8) -> int:
    """The same bits as a signed number of ``size`` bytes."""
    bits = 8 * size
    half: int = 1 << (bits - 1)
    return (word + half) % (2 * half) - half

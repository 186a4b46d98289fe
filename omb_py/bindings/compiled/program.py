"""Calls as rows of numbers, which binding native's compiled loop (`loop.c`) reads."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from mpi4py import MPI

from omb_py.bindings.compiled.datatypes import LARGEST_INT, Datatypes, check_count, constant
from omb_py.bindings.compiled.loop import address_in_loop
from omb_py.bindings.compiled.prototypes import MOST_ARGUMENTS, PROTOTYPES, no_row
from omb_py.core.calls import IN_PLACE, Call, Message, Operand, Slot, Step
from omb_py.core.errors import UnsupportedError
from omb_py.core.memory import Local


class CallProgram:
    """C calls, written as rows of 64-bit words that the compiled loop reads."""

    def __init__(
        self,
        comm: MPI.Intracomm,
        library: MpiLibrary,
        datatypes: Datatypes,
        slots: dict[Slot, Any],
    ) -> None:
        self._comm = MPI._handleof(comm)
        self._library = library
        self._datatypes = datatypes
        self._slots = slots
        self._kept: list[Any] = []
        self.words: list[int] = []
        self.names: list[str] = []

    @property
    def end(self) -> int:
        """The number that the next row will have."""
        return len(self.names)

    def add(self, step: Step) -> None:
        """Add the calls of ``step``, then those that wait for the requests of a window."""
        if isinstance(step, Local):
            if not step.function:
                raise UnsupportedError(
                    f"binding native calls functions of C, and {step.name} is done by Python: use "
                    "--binding buffer"
                )
            self._row(step.name, step.function, step.arguments)
            return
        if isinstance(step, Call):
            self._call(step, self._place(step))
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

    def add_all(self, steps: Iterable[Step]) -> None:
        for step in steps:
            self.add(step)

    def announce(self, place: int) -> None:
        """Add the broadcast of the time at this address, at which all ranks start."""
        double = MPI._handleof(MPI.DOUBLE)
        self._function("bcast", [place, 1, double, 0, self._comm], large=False)

    def _call(self, call: Call, requests: int, times: int = 1) -> None:
        kinds = PROTOTYPES.get(call.function)
        if kinds is None:
            raise no_row(call.function, "native")
        most = max((message.elements for message in call.messages), default=0)
        check_count("native", most)
        large = most > LARGEST_INT
        arguments = list(self._arguments(call, kinds, requests, large))
        self._function(call.function, arguments, large, times)

    def _arguments(self, call: Call, kinds: str, requests: int, large: bool) -> Iterator[int]:
        operands, further = iter(call.operands), iter(call.further)
        message: Message | None = None
        array_of_ints: tuple[int, ...] = ()
        for kind in kinds:
            if kind in "bB":
                operand = next(operands)
                message = self._described_by(call, operand)
                yield self._buffer(operand)
            elif kind in "ntNDATRzq":
                yield self._side(kind, message, call, large)
            elif kind in "ig":
                value = constant(next(further))
                yield value if kind == "i" else MPI._handleof(value)
            elif kind == "o":
                assert call.op is not None
                yield MPI._handleof(getattr(MPI, call.op.upper()))
            elif kind in "cwf":
                yield self._comm if call.on is None else MPI._handleof(call.on)
            elif kind in "dO":
                assert call.at is not None
                yield call.at
            elif kind == "l":
                assert call.slot is not None
                yield call.slot.count
            elif kind == "k":
                array_of_ints = next(further)
                yield len(array_of_ints)
            elif kind == "a":
                yield self._array("i", list(array_of_ints))
            elif kind == "u":
                yield int(MPI.UNWEIGHTED)
            elif kind == "I":
                yield MPI._handleof(MPI.INFO_NULL)
            elif kind == "r":
                yield requests
            elif kind == "H":
                code = {4: ctypes.c_int32, 8: ctypes.c_int64}[self._library.handle]
                yield code.from_address(requests).value
            elif kind == "P":
                position = self._keep(ctypes.create_string_buffer(8))
                self._row("reset", address_in_loop("omb_py_reset"), [position])
                yield position
            elif kind == "F":
                yield self._keep(ctypes.create_string_buffer(8))
            else:
                count = call.slot.count if call.slot else 1
                yield self._keep(ctypes.create_string_buffer(count * MPI._sizeof(MPI.Status)))

    def _place(self, call: Call) -> int:
        """Return the address of the object of a slot that a call makes or takes; 0 for none."""
        if call.slot is None:
            return 0
        size = call.slot.count * self._library.handle
        found = self._slots.setdefault(call.slot, ctypes.create_string_buffer(size))
        return ctypes.addressof(found) + call.index * self._library.handle

    def _described_by(self, call: Call, operand: Operand) -> Message | None:
        """Return the message whose count and datatype stand after an operand.

        A reduction has them once for both operands, and a rank may lack one operand.
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

    def _side(self, kind: str, message: Message | None, call: Call, large: bool) -> int:
        """Return a count, a datatype or an array of them; an empty list if a rank has no part."""
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
            return blocks.count
        if kind == "q":
            return blocks.count // int(call.values[0])
        if kind == "z":
            return message.memory.nbytes
        code = "q" if large or kind == "A" else "i"
        if kind == "R":
            return self._array(code, list(call.counts or ()))
        return self._array(code, blocks.counts if kind == "N" else blocks.displacements)

    def _array(self, code: str, values: list[int]) -> int:
        kept = array(code, values or [0])  # of no elements it has no address, which MPI refuses
        self._kept.append(kept)
        return address_of(kept)

    def _keep(self, memory: Any) -> int:
        self._kept.append(memory)
        return ctypes.addressof(memory)

    def _function(self, function: str, arguments: list[int], large: bool, times: int = 1) -> None:
        name = f"MPI_{function.capitalize()}{'_c' if large else ''}"
        moved = max(0, PROTOTYPES[function].find("r"))
        self._row(name, self._library.address(name), arguments, times, moved)

    def _row(
        self, name: str, address: int, arguments: Sequence[int], times: int = 1, moved: int = 0
    ) -> None:
        """Add a row of `loop.c`, whose argument ``moved`` is the address of a request."""
        words = [_signed(word) for word in arguments]
        unused = [0] * (MOST_ARGUMENTS - len(words))
        self.words += [len(words), address, *words, *unused, times, moved, self._library.handle]
        self.names.append(name)


class MpiLibrary:
    """The MPI library of this process: addresses of its functions, and how wide its handles are."""

    def __init__(self) -> None:
        # In the order in which mpi4py's own references were resolved, so that a profiling library
        # that stands before MPI sees these calls too.
        self._scopes = (ctypes.CDLL(None), ctypes.CDLL(MPI.__file__))
        self.handle = MPI._sizeof(MPI.Comm)

    def address(self, name: str) -> int:
        """Return the address of a C function; raises `UnsupportedError` if the library lacks it."""
        for scope in self._scopes:
            if hasattr(scope, name):
                return ctypes.cast(getattr(scope, name), ctypes.c_void_p).value or 0
        raise UnsupportedError(f"binding native cannot do it: this MPI library has no {name}")


def address_of(values: array[Any]) -> int:
    """Return the address of the elements of an array."""
    return values.buffer_info()[0]


def _signed(word: int, size: int = 8) -> int:
    """Return these bits as a signed number of ``size`` bytes."""
    bits = 8 * size
    half: int = 1 << (bits - 1)
    return (word + half) % (2 * half) - half

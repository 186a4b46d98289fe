"""The C functions of the MPI library that mpi4py loaded, called from a loop in machine code.

What a C program would do, in the same process and the same seconds as the other bindings, without
a compiler on the machine.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from omb_py.bindings import Binding, BoundCall
from omb_py.bindings._datatypes import Datatypes
from omb_py.bindings._machine_code import load, shared_code
from omb_py.bindings._program import Library, Program, address_of
from omb_py.bindings._prototypes import OPERANDS, WORDS
from omb_py.calls import Call, Step
from omb_py.errors import OmbError
from omb_py.loop import Loop, Pace
from omb_py.options import Options

if TYPE_CHECKING:
    from omb_py.clock import CommonStart

CODE_BITS = 32
"""A failure's low bits are the error code, the others the row's number."""

RUN = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 10)


class NativeBinding(Binding):
    """``MPI_Send(address, count, MPI_BYTE, peer, tag, comm)``, in C's types."""

    name = "native"

    def __init__(self, comm: MPI.Intracomm, options: Options) -> None:
        super().__init__(comm, options)
        self._engine, address = load(shared_code(comm))
        self._run = RUN(address)
        self._library = Library()
        self._datatypes = Datatypes()

    def bind(self, step: Step) -> BoundCall:
        return partial(self.loop([[step]], Pace()).run, 0, array("d", [0.0]))

    def loop(self, exchanges: Sequence[Sequence[Step]], pace: Pace) -> Loop:
        program = Program(self.comm, self._library, self._datatypes)
        bounds = [len(exchanges), -1, -1]
        if pace.barrier:
            bounds[1] = program.end
            program.add(Call("barrier"))
        if pace.start is not None:
            bounds[2] = program.end
            program.announce(pace.start)
        for steps in exchanges:
            bounds.append(program.end)
            for step in steps:
                program.add(step)
        bounds.append(program.end)
        return NativeLoop(self._run, program, bounds, pace.start)

    def release(self) -> None:
        self._datatypes.free()


class NativeLoop(Loop):
    """A program and the compiled loop that runs it."""

    def __init__(
        self, run: Any, program: Program, bounds: list[int], start: CommonStart | None
    ) -> None:
        self._run = run
        self._program = program
        self._rows = array("q", program.words)
        self._bounds = array("q", bounds)
        self._start = start

    def run(self, first: int, seconds: array[float]) -> None:
        start = self._start
        known = lateness = array("d")
        if start is not None:
            offset = start.offset
            known = array("d", [0.0, start.leads, start.slack, offset.seconds, offset.drift])
            known.append(offset.reference)
            self._rows[self._bounds[2] * WORDS + OPERANDS] = address_of(known)
            lateness = array("d", bytes(8 * len(seconds)))
        failed = self._run(
            address_of(self._rows),
            address_of(self._rows),
            address_of(self._bounds),
            first % self._bounds[0],
            len(seconds),
            self._program.clock,
            self._program.sched_yield,
            address_of(known),
            address_of(lateness),
            address_of(seconds),
        )
        if failed:
            row, code = failed >> CODE_BITS, failed & ((1 << CODE_BITS) - 1)
            name = self._program.names[row]
            why = MPI.Get_error_string(code) if name.startswith("MPI_") else f"error {code}"
            raise OmbError(f"{name} failed: {why}")
        if start is not None:
            start.lateness.extend(lateness)


BINDING = NativeBinding

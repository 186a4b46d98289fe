"""The C functions of the MPI library that mpi4py loaded, called from a loop in C.

What a C program would do, in the same process and the same seconds as the other bindings.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from mpi4py import MPI

from omb_py.bindings import Binding, BoundCall
from omb_py.bindings.compiled.datatypes import Datatypes, check_sum
from omb_py.bindings.compiled.loop import compiled
from omb_py.bindings.compiled.program import CallProgram, MpiLibrary, address_of
from omb_py.core.calls import Call, Iteration, Step
from omb_py.core.calls.loop import Loop, Pace
from omb_py.core.datatypes import Datatype
from omb_py.core.errors import OmbError
from omb_py.core.mpi.clock import SPIN_SECONDS
from omb_py.core.options import Options

if TYPE_CHECKING:
    from omb_py.core.mpi.clock import CommonStart

CODE_BITS = 32
"""A failure's low bits are the error code, which MPI has above 0, the others the row's number."""

KNOWN = 7
"""Numbers of `loop.c`'s struct start."""


class NativeBinding(Binding):
    """``MPI_Send(address, count, MPI_BYTE, peer, tag, comm)``, in C's types."""

    name = "native"

    def __init__(self, comm: MPI.Intracomm, options: Options) -> None:
        super().__init__(comm, options)
        self._library = MpiLibrary()
        self._datatypes = Datatypes()

    @staticmethod
    def check() -> None:
        compiled()

    def bind(self, step: Step) -> BoundCall:
        return partial(self._loop([Iteration((step,))], Pace()).run, 0, array("d", [0.0]))

    def loop(self, iterations: Sequence[Iteration], pace: Pace) -> Loop:
        iterations = [self.arranged(iteration) for iteration in iterations]
        for iteration in iterations:
            self.set_up(iteration)
        return self._loop(iterations, pace)

    def check_sum(self, datatype: Datatype, algorithms: Sequence[str] = ()) -> None:
        check_sum(datatype)

    def release(self) -> None:
        super().release()
        self._datatypes.free()

    def _loop(self, iterations: Sequence[Iteration], pace: Pace) -> NativeLoop:
        """Return the loop of iterations that are set up."""
        program = CallProgram(self.comm, self._library, self._datatypes, self.slots)
        bounds = [len(iterations)]
        known = array("d", bytes(8 * KNOWN))
        for iteration in iterations:
            bounds.append(program.end)
            program.add_all(iteration.before)
            bounds.append(program.end)
            if pace.start is not None:
                program.announce(address_of(known))
            bounds.append(program.end)
            program.add_all(iteration.steps)
            bounds.append(program.end)
            program.add_all((*iteration.after, *[Call("barrier")] * pace.barrier))
        bounds.append(program.end)
        return NativeLoop(program, bounds, known, pace.start)


class NativeLoop(Loop):
    """A program and the compiled loop that runs it."""

    def __init__(
        self,
        program: CallProgram,
        bounds: list[int],
        known: array[float],
        start: CommonStart | None,
    ) -> None:
        """``known`` is where the program finds what there is to know of the common start."""
        self._run = compiled().omb_py_run
        self._program = program  # which keeps alive what the rows have addresses of
        self._rows = array("q", program.words)
        self._bounds = array("q", bounds)
        self._known = known
        self._start = start

    def run(self, first: int, seconds: array[float]) -> None:
        start = self._start
        lateness = array("d")
        if start is not None:
            offset = start.offset
            clock = offset.seconds, offset.drift, offset.reference
            self._known[:] = array("d", (0.0, start.leads, start.slack, *clock, SPIN_SECONDS))
            lateness = array("d", bytes(8 * len(seconds)))
        failed = self._run(
            address_of(self._rows),
            address_of(self._bounds),
            first,
            len(seconds),
            address_of(self._known),
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

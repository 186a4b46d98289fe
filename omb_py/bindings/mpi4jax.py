"""mpi4jax: MPI's functions inside of JAX's compiled programs, on the memory of its arrays.

Each step is a program that calls one function. What does not arrive on a rank cannot be waited for,
so a program then returns a number, which is there when all of the program is done.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import mpi4jax
from mpi4py import MPI

from omb_py.bindings.jax import CompiledBinding, Program
from omb_py.buffers import LONG_DOUBLES
from omb_py.buffers.jax import choose_processor
from omb_py.core.calls import IN_PLACE, Call, Message
from omb_py.core.dataclass import replace
from omb_py.core.errors import UnsupportedError
from omb_py.core.options import Options


def _sendrecv(part: Any, call: Call, comm: MPI.Intracomm) -> Any:
    to, sent, source, received = call.values
    return mpi4jax.sendrecv(part, part, source, to, sendtag=sent, recvtag=received, comm=comm)


def _scatter(part: Any, call: Call, comm: MPI.Intracomm) -> Any:
    given = part.reshape(comm.size, -1) if comm.rank == call.root else part
    return mpi4jax.scatter(given, call.root, comm=comm)


def _op(call: Call) -> MPI.Op:
    assert call.op is not None
    op: MPI.Op = getattr(MPI, call.op.upper())
    return op


PROGRAMS: dict[str, Callable[[Any, Call, MPI.Intracomm], Any]] = {
    "allgather": lambda part, call, comm: mpi4jax.allgather(part, comm=comm),
    "allreduce": lambda part, call, comm: mpi4jax.allreduce(part, _op(call), comm=comm),
    "alltoall": lambda part, call, comm: mpi4jax.alltoall(part.reshape(comm.size, -1), comm=comm),
    "bcast": lambda part, call, comm: mpi4jax.bcast(part, call.root, comm=comm),
    "gather": lambda part, call, comm: mpi4jax.gather(part, call.root, comm=comm),
    "recv": lambda part, call, comm: mpi4jax.recv(part, call.peer, tag=call.tag, comm=comm),
    "reduce": lambda part, call, comm: mpi4jax.reduce(part, _op(call), call.root, comm=comm),
    "scan": lambda part, call, comm: mpi4jax.scan(part, _op(call), comm=comm),
    "scatter": _scatter,
    "send": lambda part, call, comm: mpi4jax.send(part, call.peer, tag=call.tag, comm=comm),
    "sendrecv": _sendrecv,
}
"""What a rank does with its part, by MPI's name of the function."""


class Mpi4jaxBinding(CompiledBinding):
    """Calls such as ``jax.jit(lambda x: mpi4jax.allreduce(x, MPI.SUM, comm=comm))(array)``."""

    name = "mpi4jax"
    cannot_add = LONG_DOUBLES | {"float16"}

    def __init__(self, comm: MPI.Intracomm, options: Options) -> None:
        super().__init__(comm, options)
        choose_processor()

    def describe(self) -> dict[str, str]:
        return super().describe() | {"mpi4jax": mpi4jax.__version__}

    def chosen(self, call: Call) -> tuple[Message, tuple[Any, ...]]:
        if call.function not in PROGRAMS or not call.messages:
            raise UnsupportedError(
                f"binding mpi4jax has no {call.function}, only {', '.join(PROGRAMS)}: use "
                "--binding buffer"
            )
        if IN_PLACE in call.operands:
            raise UnsupportedError("binding mpi4jax has no in-place form: leave out -l")
        arrives = call.written(self._rank) is not None
        return call.messages[0], (replace(call, operands=()), arrives)

    def compiled(self, call: Call, arrives: bool) -> Program:
        def program(part: Any) -> Any:
            result = PROGRAMS[call.function](part, call, self.comm)
            return result if arrives else jax.numpy.zeros((), "uint8")

        compiled: Program = jax.jit(program)
        return compiled

    def placed(self, elements: Any) -> Any:
        return jax.device_put(elements)


BINDING = Mpi4jaxBinding

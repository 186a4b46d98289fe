"""Persistent requests: a call is set up once, then started and waited for every time."""

from __future__ import annotations

from collections.abc import Sequence

from omb_py.bindings.buffer import BufferBinding
from omb_py.bindings.compiled.prototypes import PROTOTYPES
from omb_py.core.calls import Call, Iteration
from omb_py.core.calls.forms import persistent, setup_of
from omb_py.core.datatypes import Datatype
from omb_py.core.errors import UnsupportedError


class PersistentBinding(BufferBinding):
    """``request = comm.Send_init(...)`` once, then ``request.Start(); request.Wait()``."""

    name = "persistent"
    own_sums = frozenset()

    def check_sum(self, datatype: Datatype, algorithms: Sequence[str] = ()) -> None:
        super().check_sum(datatype)  # most algorithms need a sendrecv

    def arranged(self, iteration: Iteration) -> Iteration:
        for step in iteration.steps:
            if isinstance(step, Call) and step.operands and not has_form(step):
                raise UnsupportedError(
                    f"binding persistent has no {step.function}, which MPI cannot set up: use "
                    "--binding buffer"
                )
        return persistent(iteration, has_form)


def has_form(call: Call) -> bool:
    """Return whether MPI can set the call up."""
    return setup_of(call) in PROTOTYPES


BINDING = PersistentBinding

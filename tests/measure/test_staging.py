"""Staging: calls on host memory in place of those on device memory."""

from __future__ import annotations

from omb_py.benchmarks import CheckedIteration
from omb_py.buffers.numpy import BUFFER
from omb_py.core.calls import Call, Message, Step
from omb_py.core.datatypes import find_types
from omb_py.measure.staging import Staging


def test_a_call_is_not_taken_for_one_that_is_gone() -> None:
    staging = Staging(rank=0)
    (datatype,) = find_types(("float32",))

    def staged(function: str) -> Step:
        message = Message(BUFFER.allocate(4, datatype), datatype, (1,))
        (step,) = staging.exchange(CheckedIteration((Call(function, (message,), peer=1),))).steps
        return step

    functions = ["send", "recv"] * 20
    found = [staged(function) for function in functions]
    assert [step.function for step in found if isinstance(step, Call)] == functions

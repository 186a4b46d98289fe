"""A binding of native calls from outside the package, with a fault in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from omb_py.bindings.native import NativeBinding
from omb_py.core.calls import Call, Iteration, Message, Step
from omb_py.core.calls.loop import Loop, Pace


class MisdirectedBinding(NativeBinding):
    """Sends messages of 8 bytes to a rank that does not exist."""

    name = "misdirected"

    def loop(self, iterations: Sequence[Iteration], pace: Pace) -> Loop:
        misdirected = [
            replace(iteration, steps=tuple(misdirect(step) for step in iteration.steps))
            for iteration in iterations
        ]
        return super().loop(misdirected, pace)


def misdirect(step: Step) -> Step:
    if not isinstance(step, Call) or step.function != "send":
        return step
    (message,) = step.operands
    assert isinstance(message, Message)
    return replace(step, peer=99) if message.memory.nbytes == 8 else step

"""Calls rewritten into MPI's other forms: non-blocking, and by persistent requests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from omb_py.core.calls import Call, Iteration, Slot, Step, Window
from omb_py.core.dataclass import replace

R = TypeVar("R", bound=Iteration)


def nonblocking(iteration: R) -> R:
    """Return the iteration with each call started and waited for."""
    steps: list[Step] = []
    for step in iteration.steps:
        assert isinstance(step, Call)
        slot = Slot()
        steps += [replace(step, function=f"i{step.function}", slot=slot), Call("wait", slot=slot)]
    return replace(iteration, steps=tuple(steps))


def persistent(iteration: R, applies: Callable[[Call], bool] = lambda call: True) -> R:
    """Return the iteration with requests that are set up once; it starts them and waits for them.

    ``applies`` chooses among single calls; windows are always persistent.
    """
    setup: list[Step] = []
    teardown: list[Step] = []
    steps: list[Step] = []

    def set_up(calls: Sequence[Call]) -> Slot:
        slot = Slot(len(calls))
        for index, call in enumerate(calls):
            setup.append(replace(call, function=setup_of(call), slot=slot, index=index))
            teardown.append(Call("request_free", slot=slot, index=index))
        return slot

    started: dict[Slot, Slot] = {}
    for step in iteration.steps:
        if isinstance(step, Call) and step.slot in started:
            steps.append(replace(step, slot=started[step.slot]))
        elif isinstance(step, Window):
            slots = [set_up(group) for group in step.groups]
            steps += [Call("startall", slot=slot) for slot in slots]
            steps += [Call("waitall", slot=slot) for slot in reversed(slots)]
        elif isinstance(step, Call) and applies(step):
            slot = set_up([step])
            steps.append(Call("start", slot=slot))
            if step.slot is None:
                steps.append(Call("wait", slot=slot))
            else:
                started[step.slot] = slot
        else:
            steps.append(step)
    return replace(
        iteration,
        steps=tuple(steps),
        setup=(*iteration.setup, *setup),
        teardown=(*teardown, *iteration.teardown),
    )


def setup_of(call: Call) -> str:
    """Return the function that sets up a persistent request for a call."""
    return f"{call.function.removeprefix('i')}_init"

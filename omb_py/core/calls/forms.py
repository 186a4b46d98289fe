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
        cell = Slot()
        steps += [replace(step, function=f"i{step.function}", cell=cell), Call("wait", cell=cell)]
    return replace(iteration, steps=tuple(steps))


def persistent(iteration: R, applies: Callable[[Call], bool] = lambda call: True) -> R:
    """Return the iteration with requests that are set up once; it starts them and waits for them.

    ``applies`` chooses among single calls; windows are always persistent.
    """
    setup: list[Step] = []
    teardown: list[Step] = []
    steps: list[Step] = []

    def set_up(calls: Sequence[Call]) -> Slot:
        cell = Slot(len(calls))
        for index, call in enumerate(calls):
            setup.append(replace(call, function=setup_of(call), cell=cell, index=index))
            teardown.append(Call("request_free", cell=cell, index=index))
        return cell

    started: dict[Slot, Slot] = {}
    for step in iteration.steps:
        if isinstance(step, Call) and step.cell in started:
            steps.append(replace(step, cell=started[step.cell]))
        elif isinstance(step, Window):
            cells = [set_up(group) for group in step.groups]
            steps += [Call("startall", cell=cell) for cell in cells]
            steps += [Call("waitall", cell=cell) for cell in reversed(cells)]
        elif isinstance(step, Call) and applies(step):
            cell = set_up([step])
            steps.append(Call("start", cell=cell))
            if step.cell is None:
                steps.append(Call("wait", cell=cell))
            else:
                started[step.cell] = cell
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

"""A binding whose calls only take a known time, on a clock that they move: nothing is sent."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import Any

from omb_py.bindings import Binding, BoundCall
from omb_py.core.calls import Step, Window
from omb_py.core.calls import loop as timing
from omb_py.core.memory import Local
from omb_py.core.options import Options
from omb_py.measure import overlap

MICROSECOND = 1000
COST: dict[str, int] = json.loads(os.environ.get("OMB_TEST_COST", "{}"))
"""Microseconds of a function, first timed on rank 0; those of ``""`` for functions not listed."""

AT_LEAST = 7
"""Microseconds that a wait takes if all the rest was done while the rank computed."""

LOCAL = threading.local()


def now() -> int:
    """Return the nanoseconds on the clock of this thread."""
    return getattr(LOCAL, "now", 0)


def advance(nanoseconds: int) -> None:
    """Move the clock of this thread."""
    LOCAL.now = now() + nanoseconds


def computing() -> overlap.Repeat:
    """Return work that takes as many nanoseconds as it is repeated."""
    return lambda times: (Local("compute", partial(compute, times)),)


def compute(nanoseconds: int) -> None:
    """Compute, while messages go on at half their speed."""
    advance(nanoseconds)
    LOCAL.computed = getattr(LOCAL, "computed", 0) + nanoseconds


class ClockBinding(Binding):
    """Its call number ``k`` of rank ``r`` takes ``k * (1 + r)`` times the cost of its function.

    Both count from 0: one warm-up iteration takes no time. A wait is shorter by half of the
    computing before it.
    """

    name = "clock"

    def __init__(self, comm: Any, options: Options) -> None:
        super().__init__(comm, options)
        vars(timing)["perf_counter"] = lambda: now() * 1e-9
        vars(overlap).update(perf_counter_ns=now, by_machine=computing)

    def bind(self, step: Step) -> BoundCall:
        if isinstance(step, Local):
            return step.run
        if isinstance(step, Window):
            starts = [call.function for group in step.groups for call in group]
            return self.taking([*starts, *["waitall"] * len(step.groups)])
        return self.taking([step.function])

    def taking(self, functions: Sequence[str]) -> BoundCall:
        """Return a call that takes as long as these functions."""
        each = MICROSECOND * (1 + self.comm.rank)
        costs = [each * COST.get(function, COST[""]) for function in functions]
        if functions == ["wait"]:
            return partial(wait, costs[0], each * AT_LEAST, count().__next__)
        return partial(take, sum(costs), count().__next__)


def take(cost: int, calls: Callable[[], int]) -> None:
    advance(calls() * cost)


def wait(cost: int, least: int, calls: Callable[[], int]) -> None:
    """Take the rest of what is under way."""
    number = calls()
    advance(max(number * least, number * cost - getattr(LOCAL, "computed", 0) // 2))
    LOCAL.computed = 0

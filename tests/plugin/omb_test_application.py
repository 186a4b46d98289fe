"""An application from outside the package: pi by numerical integration."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from omb_py.apps import Application, CheckedResult, Kernel, option, share
from omb_py.apps.runtime.team import Team
from omb_py.core.calls import Call


@dataclass(frozen=True)
class Integral:
    """Of 4 / (1 + x^2) from 0 to 1."""

    steps: int = option(1000, "Rectangles.", minimum=1)
    error: float = option(0.0, "Added to the result, so that it is wrong.", minimum=0)


class Midpoints(Kernel[Integral]):
    """Each rank some of the rectangles, then an allreduce."""

    def __init__(self, team: Team, problem: Integral) -> None:
        super().__init__(team, problem)
        self._own, self._pi = team.array(1, "float64"), team.array(1, "float64")
        own, whole = self._own.message(), self._pi.message()
        self._reduce = team.bind(Call("allreduce", (own, whole), op="sum"))

    def solve(self) -> None:
        steps = self.problem.steps
        first, last = share(steps, self.team.ranks, self.team.rank)
        with self.team.computing:
            x = (self.team.xp.arange(first, last) + 0.5) / steps
            self._own.data[0] = (4 / (1 + x * x)).sum() / steps
        self._reduce()

    def result(self) -> float:
        return float(self._pi.data[0]) + self.problem.error


def compare(problem: Integral, found: Any, reference: Any) -> CheckedResult:
    """The midpoint rule is off by less than 1 / (6 steps^2)."""
    difference = abs(found - math.pi)
    return CheckedResult(
        difference < 1 / (6 * problem.steps**2), f"pi is off by {difference:.1e}", difference
    )


PI = Application(
    name="pi",
    title="Pi",
    summary="Pi by numerical integration.",
    problem=Integral,
    kernel=Midpoints,
    metric=lambda problem, seconds: problem.steps / seconds,
    unit="rectangles/s",
    compare=compare,
)

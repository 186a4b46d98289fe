"""The part of a non-blocking call that computing hides: `docs/definitions.md` defines it."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from omb_py.benchmarks import CheckedIteration, Plan
from omb_py.core.calls import Call, Step
from omb_py.core.calls.loop import Loop, Pace
from omb_py.core.dataclass import replace
from omb_py.core.job import Job
from omb_py.core.memory import Local
from omb_py.core.statistics import percentile, summarize
from omb_py.measure.rows import MICROSECONDS, Overlap
from omb_py.measure.sampling import Report, run_counted
from omb_py.measure.work import Laps, Worker

if TYPE_CHECKING:
    from collections.abc import Callable

OTHER, START, COMPUTE, TEST, WAIT = range(5)
"""Kinds of laps: what lies between two iterations, and the parts of one."""


class OverlapMeasure:
    """Measures one plan of non-blocking calls through one binding."""

    def __init__(
        self,
        job: Job,
        worker: Worker,
        make_loop: Callable[[Plan, Pace], Loop],
        test_calls: int,
        report: Report | None,
    ) -> None:
        """``make_loop`` is collective and raises on all ranks alike."""
        self._report = report
        self._job = job
        self._worker = worker
        self._make_loop = make_loop
        self._test_calls = test_calls

    def measure(
        self, plan: Plan, pure: array[float], iterations: int, warmup: int
    ) -> Overlap | None:
        """Return what happens when each rank computes as long as its ``pure`` communication takes.

        The overlap on rank 0, None elsewhere; collective.
        """
        target = percentile(sorted(pure), 50)
        work = self._worker.work(target / (self._test_calls + 1))
        laps = self._worker.laps(kinds=5)
        counts = (iterations, warmup)
        nothing = self._run(replace(plan, exchanges=(CheckedIteration(),)), Pace(), counts)
        alone = CheckedIteration(work * (self._test_calls + 1))
        compute = self._run(replace(plan, exchanges=(alone,)), Pace(), counts)
        pace = Pace(barrier=True)
        overall = self._run(self._overlapped(plan, work, None), pace, counts)
        self._run(self._overlapped(plan, work, laps), pace, counts, laps)
        parts = [laps.seconds(kind) / iterations for kind in range(5)]
        return self._combined(nothing, pure, compute, overall, parts)

    def _overlapped(self, plan: Plan, work: tuple[Local, ...], laps: Laps | None) -> Plan:
        """Return the plan with computing, and tests in it, between each start and its wait."""

        def lap(kind: int) -> tuple[Step, ...]:
            return () if laps is None else (laps.lap(kind),)

        exchanges = []
        for exchange in plan.exchanges:
            steps: list[Step] = [*lap(OTHER)]
            for step in exchange.steps:
                if not isinstance(step, Call) or step.function != "wait":
                    steps += [step, *lap(START)]
                    continue
                steps += [*work, *lap(COMPUTE)]
                for _ in range(self._test_calls):
                    test = replace(step, function="test")
                    steps += [test, *lap(TEST), *work, *lap(COMPUTE)]
                steps += [step, *lap(WAIT)]
            exchanges.append(replace(exchange, steps=tuple(steps)))
        return replace(plan, exchanges=tuple(exchanges))

    def _run(
        self, plan: Plan, pace: Pace, counts: tuple[int, int], laps: Laps | None = None
    ) -> array[float]:
        """Return the seconds of the timed iterations."""
        iterations, warmup = counts
        loop = self._make_loop(plan, pace)
        self._job.barrier()
        run_counted(loop, 0, warmup, 0, self._report)
        if laps is not None:
            laps.clear()
        return run_counted(loop, warmup, 0, iterations, self._report)

    def _combined(
        self,
        nothing: array[float],
        pure: array[float],
        compute: array[float],
        overall: array[float],
        parts: list[float],
    ) -> Overlap | None:
        found = [
            self._job.combine(seconds, timed=True) for seconds in (nothing, pure, compute, overall)
        ]
        means = self._job.mean(array("d", parts))
        if found[0] is None:
            return None
        scaled = [
            summarize([seconds * MICROSECONDS for seconds in one.samples]) for one in found if one
        ]
        clock, pure_, compute_, overall_ = (summary.percentile(50) for summary in scaled)
        communication = max(pure_ - clock, 1e-9)
        hidden = communication + (compute_ - clock) - (overall_ - clock)
        return Overlap(
            overall=scaled[3],
            compute=scaled[2],
            start=means[START] * MICROSECONDS,
            test=means[TEST] * MICROSECONDS,
            wait=means[WAIT] * MICROSECONDS,
            percent=min(100.0, max(0.0, 100 * hidden / communication)),
        )

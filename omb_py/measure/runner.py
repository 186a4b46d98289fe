"""One benchmark through one binding: iterate, combine the ranks, check the data, write a row."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

from omb_py.benchmarks import Case, Exchange, Plan
from omb_py.bindings import Binding
from omb_py.errors import ValidationError
from omb_py.loop import Calls, time_once
from omb_py.measure.rows import Outcome, Starts, make_row
from omb_py.measure.sampling import Goal, Sampled, sample
from omb_py.measure.validation import DataCheck, write_log
from omb_py.measure.walk import Setting, Walk
from omb_py.options import MOST_ITERATIONS
from omb_py.results.output import benchmark_writers
from omb_py.results.row import Row
from omb_py.results.writer import Writer

if TYPE_CHECKING:
    from omb_py.clock import CommonStart


class Run(Walk):
    """A benchmark about to be measured in a job."""

    def __init__(self, setting: Setting, binding: Binding) -> None:
        super().__init__(setting, [binding])
        self.binding = binding
        self._imprecise: list[int] = []

    def measure(self) -> None:
        super().measure()
        if self._imprecise:
            sizes = ", ".join(str(size) for size in self._imprecise)
            self.job.note(
                f"--precision was not reached at {sizes} bytes: raise --max-time or "
                "--max-iterations, or quiet the machine"
            )

    def open_writers(self) -> list[Writer[Row]]:
        return benchmark_writers(self.benchmark, self.options)

    def measure_case(self, case: Case, writers: list[Writer[Any]]) -> None:
        job, options = self.job, self.options
        pace = self.pace()
        goal = self._goal(case)
        plan, check = self.plan(case)
        loop = self.loop(self.binding, plan, pace)
        faults: list[str] = []
        starts = None
        job.comm.Barrier()
        if options.validate:
            seconds, faults = self._time_and_check(plan, check, goal.iterations)
            sampled = Sampled(seconds, options.validation_warmup)
        else:
            sampled = sample(job, loop, pace.start, plan.timed, goal)
            starts = self._starts(pace.start, len(sampled.seconds))
        if not sampled.precise:
            self._imprecise.append(case.size)
        combined = job.combine(sampled.seconds, plan.timed)
        on_device = None
        if len(loop.device_seconds) >= len(sampled.seconds) > 0 and not options.validate:
            on_device = job.combine(loop.device_seconds[-len(sampled.seconds) :], plan.timed)
        passed = job.total(len(faults)) == 0 if options.validate else None
        with self.agreement():
            if combined is not None:
                outcome = Outcome(combined, plan.payload, sampled.warmup, passed, starts, on_device)
                row = make_row(self.run, self.benchmark, case, outcome)
                for writer in writers:
                    writer.row(row)
        if passed is False:
            self._report(faults, self.where(case))

    def _goal(self, case: Case) -> Goal:
        options = self.options
        iterations, warmup = self.benchmark.counts(options, case.size)
        if options.precision is not None:
            iterations = options.max_iterations or MOST_ITERATIONS
        return Goal(
            iterations,
            None if options.auto_warmup else warmup,
            options.precision,
            options.max_time,
        )

    def _starts(self, start: CommonStart | None, iterations: int) -> Starts | None:
        """How common the last ``iterations`` starts were, on rank 0; collective."""
        if start is None:
            return None
        (error,) = self.job.greatest(array("d", [start.offset.error]))
        late = sum(seconds > 0 for seconds in self.job.greatest(start.lateness[-iterations:]))
        return Starts(late, error)

    def _time_and_check(
        self, plan: Plan, check: DataCheck, iterations: int
    ) -> tuple[array[float], list[str]]:
        """Time each iteration on fresh data and check what arrived; the times, and the faults.

        Untimed calls come first, as native OMB makes them; the data is renewed after them, so
        that nothing they left behind can pass for the timed call's result.
        """
        seconds = array("d")
        faults: list[str] = []
        barrier = self.job.comm.Barrier
        for iteration in range(iterations):
            exchange = plan.exchanges[iteration % len(plan.exchanges)]
            check.fill(exchange, iteration)
            calls = self._bind(exchange)
            for _ in range(self.options.validation_warmup):
                barrier()
                for call in calls:
                    call()
            check.fill(exchange, iteration)
            barrier()
            results: list[object] = []
            seconds.append(time_once(calls, results))
            for step, result in zip(exchange.steps, results, strict=True):
                self.binding.deliver(step, result)
            faults += check.faults(exchange, iteration)
            self.binding.release()
        return seconds, faults

    def _bind(self, exchange: Exchange) -> Calls:
        return tuple(self.binding.bind(step) for step in exchange.steps)

    def _report(self, faults: list[str], where: str) -> None:
        """Log this rank's faults if asked to, and end the run with the lowest rank's first."""
        with self.agreement():
            if faults and self.options.validation_log is not None:
                write_log(self.options.validation_log, self.job.rank, where, faults)
        first = ValidationError(f"wrong data in {where}: {faults[0]}") if faults else None
        self.job.agree(first)

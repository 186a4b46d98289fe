"""One benchmark through one binding: iterate, combine the ranks, check the data, write a row."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from math import isnan, nan
from operator import add, sub
from typing import TYPE_CHECKING

from omb_py.benchmarks import Case, CheckedIteration, Plan
from omb_py.bindings import Binding, BoundCall
from omb_py.core.calls.loop import Calls, Loop, time_once
from omb_py.core.errors import BenchmarkError, ValidationError
from omb_py.core.job import Combined
from omb_py.core.options import MAX_ITERATIONS
from omb_py.measure.measurement import Kind, Measurement
from omb_py.measure.rows import Outcome, Overlap, Starts, make_part_row, make_row
from omb_py.measure.sampling import PrecisionGoal, Sampled, sample
from omb_py.measure.validation import DataCheck, check_log, write_log
from omb_py.results.columns import Row
from omb_py.results.destinations import benchmark_writers

if TYPE_CHECKING:
    from omb_py.core.mpi.clock import CommonStart
    from omb_py.measure.library_algorithm import LibraryAlgorithm
    from omb_py.measure.samples import SampleKeeper


class OneBinding:
    """A benchmark through one binding, a row for each case; its methods are collective."""

    def __init__(
        self,
        measurement: Measurement,
        keep: Callable[[Row], object] | None = None,
        keep_busy: Callable[[Loop, Sequence[float]], None] | None = None,
    ) -> None:
        """``keep`` takes rank 0's rows instead of the writers.

        ``keep_busy`` goes on with a loop after its samples, where others measure at the same time;
        it is given the seconds of this rank's iterations.
        """
        self._measurement = measurement
        self.benchmark, self.options = measurement.benchmark, measurement.options
        self.job, self.group = measurement.job, measurement.group
        self.report = measurement.report
        (self.binding,) = measurement.bindings
        self._keep = keep
        self._keep_busy = keep_busy
        self._imprecise: list[int] = []
        self._samples: SampleKeeper | None = None
        self._library_algorithm: LibraryAlgorithm | None = None

    def kind(self) -> Kind:
        """Return this kind of measurement."""
        return Kind(
            self._measurement,
            self.measure_case,
            partial(benchmark_writers, self.benchmark, self.options),
            get_ready=self.get_ready,
            prepare=self.prepare,
            finish=self.finish,
        )

    def get_ready(self) -> None:
        """Check the log of faults and the library's algorithm, then as `Measurement.get_ready`."""
        if self.options.validation_log is not None:
            with self.group.agreement():
                check_log(self.options.validation_log, self.job.rank)
        if self.options.library_algorithm is not None:
            from omb_py.measure.library_algorithm import requested_algorithm

            with self.group.agreement():
                self._library_algorithm = requested_algorithm(self.benchmark.name, self.options)
        self._measurement.get_ready()

    def prepare(self) -> None:
        """Open the file of samples, if one is asked for."""
        if self.options.samples is not None:
            from omb_py.measure.samples import SampleKeeper

            self._samples = SampleKeeper(self.job, self.options.samples, self.options.force)

    def finish(self) -> None:
        """Complete the file of samples, if there is one, and report imprecision."""
        samples, self._samples = self._samples, None
        if samples is not None:
            samples.finish()
        if self._imprecise:
            sizes = ", ".join(str(size) for size in self._imprecise)
            self.group.note(
                f"--precision was not reached at {sizes} bytes: raise --max-time or "
                "--max-iterations, or quiet the machine"
            )

    def measure_case(self, case: Case) -> None:
        """Measure one message size: plan, loop, sample, combine, row."""
        measurement, job, options = self._measurement, self.group, self.options
        # every line that names the measurement, the job or a method of this kind is collective: all
        # ranks make these calls in this order, and only the row is rank 0's
        pace = measurement.pace()
        goal = self._goal(case)
        plan, check = measurement.plan(case)
        self._report_topology(case, plan)
        if self._library_algorithm is not None:
            with job.agreement():
                self._library_algorithm.check(self.binding, plan, case)
        checked = options.validate and self._has_outputs(plan)
        loop = measurement.loop(self.binding, plan, pace)
        faults: list[str] = []
        starts = None
        job.wait_for_all()
        with measurement.iterating():
            if options.validate:
                self.binding.release()  # the loop's requests: each iteration is set up anew
                again = partial(self._time_and_check, plan, check, goal.iterations)
                (seconds, faults), stopped = measurement.unstopped(case, again)
                sampled = Sampled(seconds, options.validation_warmup)
            else:
                what = (job, loop, pace.start, plan.timed, goal, self.report)
                sampled, stopped = measurement.unstopped(case, partial(sample, *what))
                starts = self._starts(pace.start, sampled.seconds, plan.threads)
                if self._keep_busy is not None:
                    self._keep_busy(loop, sampled.seconds)
        if not sampled.precise:
            self._imprecise.append(case.size)
        # millions of iterations take rank 0 seconds to sum up, for which all others wait
        measurement.launch.progress(f"combining {measurement.where(case)}")
        combined = job.combine(sampled.seconds, plan.timed)
        measurement.look_for_steps(case, combined)
        on_device = self._part(loop.device_seconds, len(sampled.seconds), plan.timed)
        queued = self._part(loop.queued_seconds, len(sampled.seconds), plan.timed)
        cpu = self._cpu(loop)
        passed = job.total(len(faults)) == 0 if checked else None
        overlap = None
        if "overlap" in self.benchmark.options:
            hidden = partial(self._overlap, plan, sampled)
            overlap, later = measurement.unstopped(case, hidden)
            stopped = stopped or later
        row = None
        with measurement.launch.working(f"summing up {measurement.where(case)}"), job.agreement():
            if combined is not None:
                outcome = Outcome(
                    combined, plan, sampled.warmup, passed, starts, on_device, overlap, queued, cpu
                )
                row = make_row(measurement.run_name, self.benchmark, case, outcome)
                row = row.replace(stopped_s=stopped)
                self._write(row)
        if self._samples is not None:
            round_trips = self.benchmark.round_trips(options)
            self._samples.keep(row, sampled.seconds, plan.timed, round_trips)
        if passed is False:
            self._report(faults, measurement.where(case))

    def _write(self, row: Row) -> None:
        """Write a row, on rank 0; not collective."""
        if self._keep is not None:
            self._keep(row)
        for writer in self._measurement.writers if self._keep is None else ():
            writer.row(row)

    def _part(self, seconds: array[float], iterations: int, timed: bool) -> Combined | None:
        """Return the loop's measurements other than the time of the last iterations; collective."""
        if not 0 < iterations <= len(seconds) or self.options.validate:
            return None
        return self.group.combine(seconds[-iterations:], timed)

    def _cpu(self, loop: Loop) -> float | None:
        """Return CPU seconds of an iteration, mean over the ranks, on rank 0; collective."""
        counted = loop.cpu_iterations
        each = loop.cpu_seconds / counted if counted else nan
        (mean,) = self.group.mean(array("d", [each]))
        return None if isnan(mean) else mean

    def _has_outputs(self, plan: Plan) -> bool:
        """Return whether any rank has data to check; collective.

        Raises `BenchmarkError` if no rank has any; in some functions a single rank receives no
        data.
        """
        outputs = self.group.total(sum(len(iteration.outputs) for iteration in plan.iterations))
        if outputs == 0 and self.group.ranks > 1:
            raise BenchmarkError(
                f"{self.benchmark.name} does not say what data should arrive, so that -c can check "
                "nothing: its plan needs outputs; leave out -c until it has them"
            )
        return outputs > 0

    def _report_topology(self, case: Case, plan: Plan) -> None:
        """Write a row of its own for the making of the graph, once; collective."""
        resources = self._measurement.resources
        seconds, resources.graph_seconds = resources.graph_seconds, None
        if seconds is None:
            return
        combined = self.group.combine(array("d", [seconds]), timed=True)
        with self.group.agreement():
            if combined is not None:
                what = (self._measurement.run_name, self.benchmark, case, plan)
                self._write(make_part_row(*what, "topology creation", combined))

    def _overlap(self, plan: Plan, sampled: Sampled) -> Overlap | None:
        """Return the part of the plan's communication that computing hides; collective."""
        measurement = self._measurement
        if not measurement.has_worker:
            with self.group.agreement():
                worker = measurement.worker
            if not worker.lap:
                self.job.note(
                    "NumPy computes, in pieces of some 0.5 us: for work that is precise to "
                    "nanoseconds, install a C compiler (gcc) and omb-py again"
                )
        from omb_py.measure.overlap import measure_overlap

        self.binding.release()  # the requests of pass 1: each pass sets up its own
        make_loop, tests = partial(measurement.loop, self.binding), self.options.test_calls
        return measure_overlap(
            self.group,
            measurement.worker,
            make_loop,
            tests,
            self.report,
            plan,
            sampled.seconds,
            sampled.warmup,
            measurement.iterating,
        )

    def _goal(self, case: Case) -> PrecisionGoal:
        options = self.options
        iterations, warmup = self.benchmark.counts(options, case.size)
        if options.precision is not None:
            iterations = options.max_iterations or MAX_ITERATIONS
        return PrecisionGoal(
            iterations,
            None if options.auto_warmup else warmup,
            options.precision,
            options.max_time,
        )

    def _starts(
        self, start: CommonStart | None, seconds: array[float], threads: int
    ) -> Starts | None:
        """Return how common the starts of the last iterations were, and when all ranks had left.

        On rank 0; collective. ``seconds`` are this rank's of the same iterations; those of several
        threads are in no order.
        """
        if start is None:
            return None
        from omb_py.core.mpi.clock import LATE_SECONDS

        group = self.group
        (error,) = group.reduce(array("d", [start.offset.error]), "max")
        entries = start.lateness[-len(seconds) :]
        late = sum(entry > LATE_SECONDS for entry in group.reduce(entries, "max"))
        if threads > 1:
            return Starts(late, error)
        exits = array("d", map(add, entries, seconds))
        completion = map(sub, group.reduce(exits, "max"), group.reduce(entries, "min"))
        return Starts(late, error, array("d", completion))

    def _time_and_check(
        self, plan: Plan, check: DataCheck, iterations: int
    ) -> tuple[array[float], list[str]]:
        """Time each iteration on fresh data and check the result; return the times and the faults.

        Collective: there is a barrier before each call.
        """
        seconds = array("d")
        faults: list[str] = []
        # threads make all of a plan's iterations at once, a single one takes them in turn
        shared = "threads" in self.benchmark.options
        groups = [plan.iterations] if shared else [(one,) for one in plan.iterations]
        for number in range(iterations):
            group = groups[number % len(groups)]
            checked = CheckedCalls(self.binding, check, group, number)
            # untimed calls come first, as native OMB makes them
            for _ in range(self.options.validation_warmup):
                self.group.barrier()
                checked.rehearse()
            checked.fill()  # so that untimed results cannot pass for those of the timed calls
            self.group.barrier()
            seconds.append(checked.time(plan.threads, self._measurement.launch.buffer.enter))
            faults += checked.faults()
            self.binding.release()
            if self.report is not None:
                self.report(number + 1, iterations)
        return seconds, faults

    def _report(self, faults: list[str], where: str) -> None:
        """Log this rank's faults if asked to, and end the run with the lowest rank's first."""
        with self.group.agreement():
            if faults and self.options.validation_log is not None:
                write_log(self.options.validation_log, self.job.rank, where, faults)
        first = ValidationError(f"wrong data in {where}: {faults[0]}") if faults else None
        self.group.agree(first)


class CheckedCalls:
    """The calls of one iteration, to be timed once on known data; of several by threads at once."""

    def __init__(
        self,
        binding: Binding,
        check: DataCheck,
        iterations: Sequence[CheckedIteration],
        number: int,
    ) -> None:
        """Write the data of iteration ``number``, and bind the calls."""
        self._binding, self._check = binding, check
        self._iterations, self._number = iterations, number
        self._results: list[list[object]] = []
        self.fill()  # some bindings make an object of the data when calls are bound
        self._bound = [binding.bound(iteration) for iteration in iterations]
        self._before_check = [
            binding.bind(step) for iteration in iterations for step in iteration.before_check
        ]

    def fill(self) -> None:
        """Write the data as it is before the calls, and marks where data has to arrive."""
        for iteration in self._iterations:
            self._check.fill(iteration, self._number)

    def rehearse(self) -> None:
        """Make the calls untimed, and what comes before and after them."""
        for one in self._bound:
            make((*one.before, *one.calls, *one.after))
        make(self._before_check)

    def time(self, threads: int, enter: Callable[[], None]) -> float:
        """Make the calls; the seconds of an iteration. The arguments are those of `run_once`."""
        for one in self._bound:
            make(one.before)
        seconds, self._results = run_once([one.calls for one in self._bound], threads, enter)
        for one in self._bound:
            make(one.after)
        make(self._before_check)
        return seconds

    def faults(self) -> list[str]:
        """Return a sentence for each fault in the data that the timed calls have left."""
        return [
            fault
            for iteration in self._delivered()
            for fault in self._check.faults(iteration, self._number)
        ]

    def wrong_elements(self) -> int:
        """Return how many elements of what the timed calls have left are wrong."""
        check, number = self._check, self._number
        return sum(check.wrong_elements(iteration, number) for iteration in self._delivered())

    def _delivered(self) -> Iterator[CheckedIteration]:
        """Yield the iterations, what their calls returned being in the memory of each."""
        for iteration, returned in zip(self._iterations, self._results, strict=True):
            steps = self._binding.arranged(iteration).steps
            for step, result in zip(steps, returned, strict=True):
                self._binding.deliver(step, result)
            yield iteration


def run_once(
    iterations: Sequence[Calls], threads: int, enter: Callable[[], None]
) -> tuple[float, list[list[object]]]:
    """Make each of some iterations once, threads sharing them, each after ``enter``.

    Return the mean seconds of one, and what the calls of each returned.
    """
    if len(iterations) == 1:
        results: list[object] = []
        return time_once(iterations[0], results), [results]
    from omb_py.measure.threads import together

    returned: list[list[object]] = [[] for _ in iterations]

    def share(thread: int) -> float:
        numbers = range(thread, len(iterations), threads)
        return sum(time_once(iterations[number], returned[number]) for number in numbers)

    elapsed = together([partial(share, thread) for thread in range(threads)], enter)
    return sum(elapsed) / len(iterations), returned


def make(calls: Iterable[BoundCall]) -> None:
    """Make calls one after the other."""
    for call in calls:
        call()

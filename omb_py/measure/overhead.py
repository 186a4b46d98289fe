"""Several bindings in one job, taking turns: what each adds to the first, and why."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from math import ceil

from omb_py.benchmarks import Benchmark, Case, Metric, Plan
from omb_py.benchmarks.algorithms import for_point_to_point
from omb_py.bindings import Binding
from omb_py.core.calls.loop import Loop
from omb_py.core.dataclass import dataclass, replace
from omb_py.core.datatypes import Datatype
from omb_py.core.errors import LeftOutError, SharedError, UnsupportedError
from omb_py.core.job import Job
from omb_py.core.options import Options
from omb_py.core.statistics import percentile, relative_spread
from omb_py.core.text.words import count
from omb_py.measure.launch import Launch
from omb_py.measure.measurement import Kind, Measurement, own_algorithms
from omb_py.measure.rows import MICROSECONDS, of_case, on_device
from omb_py.measure.sampling import run_counted, warm_up
from omb_py.measure.turns import block_percentiles, busy, take_turns, with_interval
from omb_py.results.columns import OverheadRow
from omb_py.results.destinations import writers_of
from omb_py.results.writer import Writer


@dataclass(frozen=True)
class OverheadSplit:
    """A part of the overhead that two bindings tell apart: what ``binding`` adds to ``base``."""

    name: str
    binding: str
    base: str


SPLITS = (
    OverheadSplit("mpi4py's call and Python", "buffer", "native"),
    OverheadSplit("count and type left to mpi4py", "array", "buffer"),
    OverheadSplit("looking the array up", "buffer", "prebound"),
    OverheadSplit("persistent requests", "persistent", "buffer"),
    OverheadSplit("pickle", "pickle", "buffer"),
    OverheadSplit("pickle with data out of band", "pkl5", "pickle"),
    OverheadSplit("awaiting in an event loop", "coroutine", "buffer"),
    OverheadSplit("asyncio's streams", "asyncio", "tcp"),
    OverheadSplit("torch.distributed on NCCL", "torch", "nccl"),
)
"""Differences that are reported by name if both bindings were measured."""


def kind_of_bindings(
    bindings: Callable[[Job, Options], Sequence[Binding]],
    rounds: int,
    optional: bool,
    launch: Launch,
    benchmark: Benchmark,
    options: Options,
) -> Kind:
    """Return the comparison of the bindings that are made for a job; collective.

    ``optional`` bindings are left out with a note if they cannot do a benchmark.
    """
    measurement = Measurement(launch, benchmark, options, bindings(launch.job, options))
    return TurnsOfBindings(measurement, rounds, optional).kind()


class TurnsOfBindings:
    """Several bindings that take turns; its methods are collective."""

    def __init__(self, measurement: Measurement, rounds: int, optional: bool) -> None:
        self._measurement = measurement
        self.benchmark, self.options = measurement.benchmark, measurement.options
        self.job = measurement.job
        self._rounds = rounds
        self._optional = optional
        self._unable: set[str] = set()
        """The bindings that cannot send the element type, or its calls."""
        self._spreads: list[float] = []

    def kind(self) -> Kind:
        """Return this kind of measurement."""
        return Kind(
            self._measurement,
            self.measure_case,
            self.writers,
            begin_type=self.begin_type,
            finish=lambda: self.job.note(busy(self._spreads)),
        )

    def writers(self) -> list[Writer[OverheadRow]]:
        """Return the writers, on rank 0."""
        from omb_py.results.text import OverheadWriter

        level, above = self.job.thread_level, f"# {count(self._rounds, 'round')}"
        if level != "multiple":
            above += "; programs with mpi4py have thread level multiple unless they choose another:"
            above += " --thread-level multiple"
        text = OverheadWriter(sys.stdout, self.benchmark, self.options, level, [above])
        return writers_of(OverheadRow, text, self.options)

    def measure_case(self, case: Case) -> None:
        """Measure one message size: plan, loops, turns, combine, rows."""
        measurement, job = self._measurement, self.job
        plan, loops = self._loops(case)
        iterations, warmup = self.benchmark.counts(self.options, case.size)
        block = max(1, ceil(iterations / self._rounds))
        members = list(loops.values())
        with measurement.iterating():
            for loop in members:
                job.barrier()
                if self.options.auto_warmup:
                    warm_up(job, loop, plan.timed)
                else:
                    run_counted(loop, 0, warmup, 0, measurement.report)
            what = (members, self._rounds, block, job.barrier, measurement.report)
            seconds, _ = measurement.unstopped(case, partial(take_turns, *what))
        combined = [job.combine(measured, plan.timed) for measured in seconds]
        for found in combined:
            measurement.look_for_steps(case, found)
        scale = MICROSECONDS / self._divisor(case)
        medians = {
            name: [one * scale for one in block_percentiles(found.samples, block, 50)]
            for name, found in zip(loops, combined, strict=True)
            if found is not None
        }
        rows = self._rows(case, medians, block * self._rounds) if medians else []
        measurement.write(rows)

    def begin_type(self, datatype: Datatype) -> None:
        """Begin with all bindings; leave out those that cannot send an element type."""
        measurement = self._measurement
        self._unable.clear()
        if not self._optional:
            measurement.begin_type(datatype)
            return
        for binding in measurement.bindings if self.benchmark.reduces else ():
            try:
                with self.job.agreement():
                    binding.check_sum(datatype, own_algorithms(self.benchmark, datatype))
            except SharedError as error:
                self._leave_out(binding, error)

    def _loops(self, case: Case) -> tuple[Plan, dict[str, Loop]]:
        """Return the plan and the bindings' loops by name; those that cannot do it are left out.

        Bindings share a plan and its memory, unless it is set up: then each has one of its own.
        Those that only send from rank to rank share one by an own algorithm.
        """
        loops: dict[str, Loop] = {}
        measurement = self._measurement
        pace = measurement.pace()
        plan, _ = measurement.plan(case)
        plans: dict[str | None, Plan] = {None: plan}
        is_set_up = self.job.total(sum(len(iteration.setup) for iteration in plan.iterations)) > 0
        only_here = False
        for binding in measurement.bindings:
            if binding.name in self._unable:
                continue
            algorithm = self._algorithm(binding)
            try:
                if algorithm not in plans or (loops and is_set_up):
                    options = replace(case.options, algorithm=algorithm)
                    plans[algorithm], _ = measurement.plan(replace(case, options=options))
                loops[binding.name] = measurement.loop(binding, plans[algorithm], pace)
            except SharedError as error:
                if not self._optional:
                    raise
                only_here |= error.exit_code == LeftOutError.exit_code
                self._leave_out(binding, error, case)
                binding.release()
        if len(loops) < 2:
            what = measurement.where(case)
            raise SharedError(
                f"fewer than two bindings can do {what}: name others with --bindings",
                LeftOutError.exit_code if only_here else UnsupportedError.exit_code,
            )
        return plan, loops

    def _leave_out(self, binding: Binding, error: SharedError, case: Case | None = None) -> None:
        """Note that a binding cannot do a case, or all others of the element type as little."""
        text = str(error)
        if error.exit_code == LeftOutError.exit_code and case is not None:
            text = f"binding {binding.name} at {case.size} bytes: {text}"
        else:
            self._unable.add(binding.name)
            if f"binding {binding.name}" not in text:
                text = f"binding {binding.name}: {text}"
        self.job.note(f"left out: {text}")

    def _algorithm(self, binding: Binding) -> str | None:
        """Return our algorithm by which a binding makes the collective; None for the library's."""
        if not binding.point_to_point:
            return None
        return for_point_to_point(self.benchmark.name, self.options).algorithm

    def _divisor(self, case: Case) -> int:
        """Return the divisor of an iteration's time: by it the time becomes a latency or a
        message's."""
        if self.benchmark.metric is Metric.LATENCY:
            return self.benchmark.round_trips(self.options)
        return case.window if "window" in self.benchmark.options else 1

    def _rows(
        self, case: Case, medians: dict[str, list[float]], iterations: int
    ) -> list[OverheadRow]:
        """Return rows of each binding against the first, then the parts that have a name."""
        base = next(iter(medians))
        pairs = [OverheadSplit("", name, base) for name in medians]
        pairs += [split for split in SPLITS if {split.binding, split.base} <= set(medians)]
        algorithms = {
            binding.name: self._algorithm(binding) for binding in self._measurement.bindings
        }
        return [
            self._row(case, split, medians, iterations, algorithms[split.binding])
            for split in pairs
        ]

    def _row(
        self,
        case: Case,
        split: OverheadSplit,
        medians: dict[str, list[float]],
        iterations: int,
        algorithm: str | None,
    ) -> OverheadRow:
        ours, theirs = medians[split.binding], medians[split.base]
        added = [a - b for a, b in zip(ours, theirs, strict=True)]
        ratio = [a / b for a, b in zip(ours, theirs, strict=True)]
        if split.binding != split.base:
            self._spreads.append(relative_spread(ratio))
        added_median, added_low, added_high = with_interval(added)
        ratio_median, ratio_low, ratio_high = with_interval(ratio)
        return OverheadRow(
            **of_case(self._measurement.run_name, self.benchmark, case),
            staged=self.options.staging if on_device(case) else None,
            binding=split.binding,
            base=split.base,
            algorithm=algorithm,
            split=split.name or None,
            thread_level=self.job.thread_level,
            median_us=percentile(sorted(ours), 50),
            base_us=percentile(sorted(theirs), 50),
            added_us=added_median,
            added_low_us=added_low,
            added_high_us=added_high,
            ratio=ratio_median,
            ratio_low=ratio_low,
            ratio_high=ratio_high,
            rounds=self._rounds,
            iterations=iterations,
        )

"""From options to rows: for each size allocate, bind, iterate, combine the ranks, write."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from omb_py.benchmarks import Benchmark, Case, Exchange, Plan
from omb_py.bindings import Binding
from omb_py.buffers import Buffer
from omb_py.datatypes import Datatype
from omb_py.errors import OmbError, UsageError, ValidationError
from omb_py.job import Job
from omb_py.measure.loop import Calls, time_iterations, time_once
from omb_py.measure.rows import Outcome, make_row
from omb_py.measure.sizes import sizes_by_type
from omb_py.measure.validation import DataCheck, write_log
from omb_py.options import VARIED_WINDOWS, Options
from omb_py.results.output import open_writers
from omb_py.results.row import new_run
from omb_py.results.writer import Writer

if TYPE_CHECKING:
    from omb_py.watchdog import Watchdog


@dataclass(frozen=True)
class Run:
    """A benchmark about to be measured in a job."""

    benchmark: Benchmark
    options: Options
    datatypes: tuple[Datatype, ...]
    buffer: Buffer
    binding: Binding
    job: Job
    watchdog: Watchdog | None

    def measure(self) -> None:
        """Measure every element type, message size and window, and write a row for each.

        Raises `UsageError` or `SharedError` on all ranks when the run cannot go on; rows written
        before stay.
        """
        check_ranks(self.benchmark, self.options, self.job)
        sizes = sizes_by_type(self.benchmark, self.options, self.datatypes, self.job.ranks)
        nodes = self.job.nodes()
        notes = [note for found in sizes.values() for note in found.notes]
        notes += [note for note in [self.job.crowding(nodes)] if note is not None]
        if self.job.rank == 0:
            for note in dict.fromkeys(notes):
                print(f"omb-py: note: {note}", file=sys.stderr, flush=True)
        run = new_run()
        writers = self._start_writers(run, nodes)
        windows = VARIED_WINDOWS if self.options.vary_window else (self.options.window,)
        for datatype, found in sizes.items():
            for writer in writers if found.sizes else ():
                writer.section(datatype if self.benchmark.sized else None)
            for size in found.sizes:
                for window in windows:
                    self._measure_size(run, writers, self._case(datatype, size, window))
        for writer in writers:
            writer.finish()

    def _case(self, datatype: Datatype, size: int, window: int) -> Case:
        job = self.job
        return Case(job.rank, job.ranks, size, datatype, window, self.buffer, self.options)

    def _start_writers(self, run: str, nodes: list[tuple[str, int]]) -> list[Writer]:
        """Open the outputs on rank 0 and write what stands before the rows."""
        writers: list[Writer] = []
        metadata = {"ranks": str(self.job.ranks)}
        if self.options.output is not None or self.options.format != "text":
            metadata = self._metadata(run, nodes) | metadata
        with self._agreement():
            if self.job.rank == 0:
                writers = open_writers(self.benchmark, self.options)
                for writer in writers:
                    writer.start(metadata)
        return writers

    def _metadata(self, run: str, nodes: list[tuple[str, int]]) -> dict[str, str]:
        from omb_py.results.metadata import describe_nodes, process_metadata

        hosts = {"hosts": describe_nodes(nodes)}
        return process_metadata(run) | self.buffer.describe() | self.job.describe() | hosts

    def _measure_size(self, run: str, writers: list[Writer], case: Case) -> None:
        job, benchmark = self.job, self.benchmark
        where = f"{benchmark.name} with messages of {case.size} bytes"
        if self.watchdog is not None:
            self.watchdog.progress(f"measuring {where}")
        iterations, warmup = benchmark.counts(self.options, case.size)
        check = DataCheck(job.rank, job.ranks, case.size, case.datatype)
        with self._agreement():
            plan = benchmark.plan(case)
            for exchange in plan.exchanges:
                check.fill(exchange, iteration=0)
            calls = [self._bind(exchange) for exchange in plan.exchanges]
        faults: list[str] = []
        job.comm.Barrier()
        if self.options.validate:
            warmup = self.options.validation_warmup
            seconds, faults = self._time_and_check(plan, check, iterations)
        else:
            barrier = job.comm.Barrier if benchmark.paced else None
            seconds = time_iterations(calls, iterations, warmup, barrier)
        combined = job.combine(seconds, plan.timed)
        passed = job.total(len(faults)) == 0 if self.options.validate else None
        with self._agreement():
            if combined is not None:
                outcome = Outcome(combined, plan.payload, warmup, passed)
                row = make_row(run, benchmark, case, outcome)
                for writer in writers:
                    writer.row(row)
        if passed is False:
            self._report(faults, where)

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
        return seconds, faults

    def _bind(self, exchange: Exchange) -> Calls:
        return tuple(self.binding.bind(step) for step in exchange.steps)

    def _report(self, faults: list[str], where: str) -> None:
        """Log this rank's faults if asked to, and end the run with the lowest rank's first."""
        with self._agreement():
            if faults and self.options.validation_log is not None:
                write_log(self.options.validation_log, self.job.rank, where, faults)
        first = ValidationError(f"wrong data in {where}: {faults[0]}") if faults else None
        self.job.agree(first)

    @contextmanager
    def _agreement(self) -> Iterator[None]:
        """Make a failure of any rank inside the block a failure of all at its end."""
        failure: OmbError | None = None
        try:
            yield
        except OmbError as error:
            failure = error
        self.job.agree(failure)


def check_ranks(benchmark: Benchmark, options: Options, job: Job) -> None:
    """Raise `UsageError` when the benchmark does not run on this many ranks."""
    job.check_launcher()
    ranks = job.ranks
    if not benchmark.ranks.allow(ranks):
        raise UsageError(
            f"{benchmark.name} needs {benchmark.ranks.value}, and this job has {ranks}: "
            "start it with another mpiexec -n"
        )
    if options.pairs is not None and options.pairs > ranks // 2:
        raise UsageError(f"-p: {ranks} ranks make at most {ranks // 2} pairs, not {options.pairs}")
    if options.root is not None and options.root >= ranks:
        raise UsageError(
            f"-k: there is no rank {options.root}; the last of {ranks} ranks is {ranks - 1}"
        )

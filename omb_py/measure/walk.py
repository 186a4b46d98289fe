"""What every run does: on all ranks together, for each element type, message size and window."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from omb_py.benchmarks import Benchmark, Case, Plan
from omb_py.bindings import Binding
from omb_py.buffers import Buffer
from omb_py.datatypes import Datatype
from omb_py.errors import OmbError, UsageError
from omb_py.job import Job
from omb_py.loop import Loop, Pace
from omb_py.measure.sizes import sizes_by_type
from omb_py.measure.validation import DataCheck
from omb_py.options import VARIED_WINDOWS, Options
from omb_py.results.row import new_run
from omb_py.results.writer import Writer

if TYPE_CHECKING:
    from omb_py.clock import SharedClock
    from omb_py.watchdog import Watchdog


@dataclass(frozen=True)
class Setting:
    """What is to be measured, and the job that will do it."""

    benchmark: Benchmark
    options: Options
    datatypes: tuple[Datatype, ...]
    buffer: Buffer
    job: Job
    watchdog: Watchdog | None


class Walk(ABC):
    """A run about to be measured; what it does at each message size is up to its kind."""

    def __init__(self, setting: Setting, bindings: Sequence[Binding]) -> None:
        self.benchmark = setting.benchmark
        self.options = setting.options
        self.job = setting.job
        self.bindings = list(bindings)
        self.run = new_run()
        self._setting = setting
        self._clock: SharedClock | None = None

    @abstractmethod
    def open_writers(self) -> list[Writer[Any]]:
        """The places that results go to; called on rank 0 alone."""

    @abstractmethod
    def measure_case(self, case: Case, writers: list[Writer[Any]]) -> None:
        """Measure one message size, and write what came of it on rank 0, which has writers."""

    def measure(self) -> None:
        """Measure everything that was asked for.

        Raises `UsageError` or `SharedError` on all ranks when the run cannot go on; rows written
        before stay.
        """
        job, options = self.job, self.options
        check_ranks(self.benchmark, options, job)
        sizes = sizes_by_type(self.benchmark, options, self._setting.datatypes, job.ranks)
        nodes = job.nodes()
        notes = [note for found in sizes.values() for note in found.notes]
        for note in [*dict.fromkeys(notes), job.crowding(nodes)]:
            if note is not None:
                job.note(note)
        writers = self._start_writers(nodes)
        if options.sync == "clock":
            from omb_py.clock import SharedClock

            self._clock = SharedClock(job.comm)
        windows = VARIED_WINDOWS if options.vary_window else (options.window,)
        for datatype, found in sizes.items():
            for writer in writers if found.sizes else ():
                writer.section(datatype if self.benchmark.sized else None)
            for size in found.sizes:
                for window in windows:
                    self._measure(self._case(datatype, size, window), writers)
        for writer in writers:
            writer.finish()
        if self._clock is not None:
            self._clock.free()

    def where(self, case: Case) -> str:
        """A case in words, for messages."""
        return f"{self.benchmark.name} with messages of {case.size} bytes"

    def plan(self, case: Case) -> tuple[Plan, DataCheck]:
        """This rank's part of a case, its memory filled, and what checks that memory.

        Collective; raises `SharedError` when any rank cannot do it.
        """
        check = DataCheck(case.rank, case.ranks, case.size, case.datatype)
        with self.agreement():
            plan = self.benchmark.plan(case)
            for exchange in plan.exchanges:
                check.fill(exchange, iteration=0)
        return plan, check

    def loop(self, binding: Binding, plan: Plan, pace: Pace) -> Loop:
        """The loop that makes the plan's calls; collective, raises like `plan`."""
        with self.agreement():
            return binding.loop([exchange.steps for exchange in plan.exchanges], pace)

    def pace(self) -> Pace:
        """What keeps the ranks together at the next size; with clocks, aligned anew.

        A barrier then comes before each announcement, so that no rank still works when it comes.
        """
        if self._clock is None or self.options.validate:
            return Pace(barrier=self.benchmark.paced)
        from omb_py.clock import CommonStart

        return Pace(barrier=True, start=CommonStart(self.job.comm, self._clock.align()))

    @contextmanager
    def agreement(self) -> Iterator[None]:
        """Make a failure of any rank inside the block a failure of all at its end."""
        failure: OmbError | None = None
        try:
            yield
        except OmbError as error:
            failure = error
        self.job.agree(failure)

    def _measure(self, case: Case, writers: list[Writer[Any]]) -> None:
        if self._setting.watchdog is not None:
            self._setting.watchdog.progress(f"measuring {self.where(case)}")
        self.measure_case(case, writers)
        for binding in self.bindings:
            binding.release()

    def _case(self, datatype: Datatype, size: int, window: int) -> Case:
        job, buffer = self.job, self._setting.buffer
        return Case(job.rank, job.ranks, size, datatype, window, buffer, self.options)

    def _start_writers(self, nodes: list[tuple[str, int]]) -> list[Writer[Any]]:
        """Open the outputs on rank 0 and write what stands before the rows."""
        writers: list[Writer[Any]] = []
        metadata = {"ranks": str(self.job.ranks)}
        if self.options.output is not None or self.options.format != "text":
            metadata = self._metadata(nodes) | metadata
        with self.agreement():
            if self.job.rank == 0:
                writers = self.open_writers()
                for writer in writers:
                    writer.start(metadata)
        return writers

    def _metadata(self, nodes: list[tuple[str, int]]) -> dict[str, str]:
        from omb_py.results.metadata import describe_nodes, process_metadata

        found = process_metadata(self.run) | self._setting.buffer.describe() | self.job.describe()
        for binding in self.bindings:
            found |= binding.describe()
        return found | {"hosts": describe_nodes(nodes)}


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

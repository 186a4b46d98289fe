"""The common part of all measurements: each element type, message size and window."""

from __future__ import annotations

import ctypes
import time
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from omb_py.benchmarks import Benchmark, Case, Plan, Ranks
from omb_py.bindings import Binding
from omb_py.buffers import TIMES_CACHE, Buffer
from omb_py.core import BEGAN
from omb_py.core.calls import Call, Step
from omb_py.core.calls.loop import Loop, Pace
from omb_py.core.dataclass import dataclass, field, replace
from omb_py.core.datatypes import BRAIN, Datatype
from omb_py.core.errors import (
    LeftOutError,
    MissingError,
    OutOfMemoryError,
    SharedError,
    UnsupportedError,
    UsageError,
)
from omb_py.core.job import Combined, Job
from omb_py.core.memory import Local, Place
from omb_py.core.mpi.startup_timer import Stages, seconds_before
from omb_py.core.options import VARIED_WINDOWS, Options
from omb_py.core.statistics import percentile
from omb_py.measure import devices
from omb_py.measure.conditions import SYS, coarse, examine, largest_cache, tick
from omb_py.measure.host_load import HostLoad
from omb_py.measure.resources import MpiResources
from omb_py.measure.sampling import Report, check_counts
from omb_py.measure.sizes import Sizes, sizes_by_type
from omb_py.measure.stops import Stops
from omb_py.measure.validation import DataCheck, prove
from omb_py.measure.writers import finish_writers, start_writers, takes_metadata
from omb_py.results.columns import new_run
from omb_py.results.writer import Writer

if TYPE_CHECKING:
    from omb_py.core.mpi.clock import SharedClock
    from omb_py.core.mpi.watchdog import Watchdog
    from omb_py.measure.overlap import Worker
    from omb_py.measure.parts import PartJob

Measured = TypeVar("Measured")


@dataclass(frozen=True)
class RunContext:
    """The subject of a measurement, and the job that makes it."""

    benchmark: Benchmark
    options: Options
    datatypes: tuple[Datatype, ...]
    buffer: Buffer
    job: Job
    watchdog: Watchdog | None
    device_first: bool = True
    """True if the device, if any, was chosen before MPI was started."""
    stages: Stages = field(default_factory=Stages)
    """The durations of the parts of the job's start."""
    more_writers: Callable[[], Sequence[Writer[Any]]] = tuple
    """A function that makes further writers on rank 0, besides those that the options name."""
    part: PartJob | None = None
    """The ranks that measure, if the other ranks of the job sleep meanwhile."""
    command: str | None = None
    """The command line of this benchmark, if it is one of several in a launch."""


class Measurement(ABC):
    """A benchmark about to be measured; what is done at each message size is up to its kind."""

    def __init__(
        self, context: RunContext, bindings: Sequence[Binding], group: Job | None = None
    ) -> None:
        """``group`` are the ranks that measure together, all of them unless it is given."""
        self.benchmark = context.benchmark
        self.options = context.options
        self.job = context.job
        self.group = context.job if group is None else group
        self.largest_group = self.group.ranks
        self.bindings = list(bindings)
        self.run_name = new_run()
        self._context = context
        self._clock: SharedClock | None = None
        self._worker: Worker | None = None
        self._flush: tuple[Step, ...] = ()
        self._buffer = context.buffer
        self._nodes: tuple[int, ...] = ()
        self._left_out: list[str] = []
        self._skipped: list[tuple[int, str]] = []
        self._skipped_types: list[tuple[str, str]] = []
        self._stepped: list[int] = []
        self._stops = Stops()
        self._stopped: list[tuple[int, float]] = []
        self._marked: list[int] = []
        self._tick = 0.0
        self._medians: list[tuple[int, float]] = []
        watchdog = context.watchdog
        self.report: Report | None = None if watchdog is None else watchdog.alive
        self.iterating_seconds = 0.0
        self.resources = MpiResources(self.group, self.options)

    @abstractmethod
    def open_writers(self) -> list[Writer[Any]]:
        """Open the writers of the results; called only on rank 0."""

    @abstractmethod
    def measure_case(self, case: Case, writers: list[Writer[Any]]) -> None:
        """Measure one message size, and write what came of it on rank 0, which has writers."""

    def prepare(self) -> None:  # noqa: B027 - most kinds of measurement need nothing
        """Open what rows go to besides, when all else is known to be right; collective."""

    def run(self) -> None:
        """Measure all types and sizes; collective.

        Raises `UsageError` or `SharedError` on all ranks when the run cannot go on; rows written
        before stay.
        """
        job, options = self.job, self.options
        # all ranks call what is given the job or a group, in this order; notes and metadata are
        # rank 0's
        self.get_ready()
        datatypes: Sequence[Datatype] = self._context.datatypes
        if any(binding.needs_mpi for binding in self.bindings):
            datatypes = [job.as_passed(datatype) for datatype in datatypes]
        sizes = sizes_by_type(self.benchmark, options, datatypes, self.largest_group)
        left_out = (words for found in sizes.values() for words in found.left_out)
        self._left_out = [*dict.fromkeys(left_out)]
        if job.guest:  # a program gets the rows that there are
            job.note(*(f"left out {words}" for words in self._left_out))
            self._left_out = []
        threads, own_threads = 0, 1
        if "threads" in self.benchmark.options:
            threads = options.threads[0] + options.threads[1] * (job.ranks - 1)
            own_threads = options.threads[min(job.rank, 1)]
        device = self._context.buffer.device
        host = examine(job, devices.word(device), device.identity if device else "", own_threads)
        oversubscription = job.oversubscription(host.nodes, threads)
        unused = None
        if options.validate and options.sync == "clock":
            unused = "--sync clock has no effect with -c, which keeps ranks together by barriers"
        begins = dict.fromkeys(found.note for found in sizes.values())
        job.note(*begins, unused, oversubscription, devices.sharing(host.nodes))
        job.note(*host.notes)
        conditions = dict(host.metadata)
        if self._context.command is not None:
            conditions["command"] = self._context.command
        if self.group.rank == 0:  # which has the samples of all ranks, to compare it with
            self._tick = tick()
        if self._tick:
            conditions["clock_tick_ns"] = f"{self._tick * 1e9:.0f}"
        writers = start_writers(
            *(self._context, self.run_name, host.nodes, self.open_writers, self.bindings),
            conditions | self.more_metadata(),
            self._context.part,
        )
        self.prepare()
        if options.sync == "clock":
            from omb_py.core.mpi.clock import SharedClock

            self._clock = SharedClock(self.group.comm_for("--sync clock"))
        # processes that the benchmark starts are no others
        alone = "spawned" not in self.benchmark.options
        host_load = HostLoad(job, threads) if alone else None
        try:
            with self._stops:
                self._measure_types(sizes, writers)
        except SharedError:
            # all ranks have it, so that they free together what MPI made
            for binding in self.bindings:
                binding.release()
            self.resources.close()
            raise
        is_own = not job.guest and self._context.command is None
        costs = durations(self.iterating_seconds, is_own) if job.rank == 0 else {}
        metadata, note = host_load.finish() if host_load else ({}, None)
        from omb_py.measure import transport  # loaded by each rank, and not before it is timed

        transported, surprise = transport.used(job, takes_metadata(options))
        self.resources.close()
        finish_writers(job, writers, self.run_name, metadata | costs | transported)
        job.note(note, surprise)
        if self._clock is not None:
            self._clock.free()
        if self._stepped:
            listed = ", ".join(map(str, dict.fromkeys(self._stepped)))
            place = f" at {listed} bytes" if self.benchmark.sized else ""
            self.group.note(f"the clock stepped back{place}: times are below zero; measure again")
        self.group.note(stops_in_words(self._stopped, self._marked, self.benchmark.sized))
        self.group.note(coarse(self._tick, self._medians))
        self._report_skipped()

    def get_ready(self) -> None:
        """Check what is asked for, and choose where messages lie; collective, raises like `run`."""
        self.check_group()
        check_counts(self.options)
        self._place()

    def check_group(self) -> None:
        """Raise `UsageError` when the benchmark does not run on so many ranks."""
        check_ranks(self.benchmark, self.options, self.group)

    def more_metadata(self) -> dict[str, str]:
        """Return further metadata of the run, on rank 0."""
        return {}

    def _report_skipped(self) -> None:
        """Raise `SharedError` if sizes or types were left out, with what and the first why."""
        parts = [*self._left_out]
        if self._skipped:
            listed = ", ".join(str(size) for size in dict(self._skipped))
            what = f"messages of {listed} bytes" if self.benchmark.sized else "what was requested"
            parts.append(f"{what}: {self._skipped[0][1]}")
        if self._skipped_types:
            names = dict(self._skipped_types)
            what = "type" if len(names) == 1 else "types"
            parts.append(f"{what} {', '.join(names)}: {self._skipped_types[0][1]}")
        if parts:
            raise SharedError(f"left out {'; and '.join(parts)}", LeftOutError.exit_code)

    def _measure_types(self, sizes: dict[Datatype, Sizes], writers: list[Writer[Any]]) -> None:
        """Measure each type; one of several that is not supported is left out."""
        options = self.options
        windows = VARIED_WINDOWS if options.vary_window else (options.window,)
        measurable = {datatype: found for datatype, found in sizes.items() if found.sizes}
        for datatype, found in measurable.items():
            for writer in writers:
                writer.section(datatype if self.benchmark.sized else None)
            try:
                self.begin_type(datatype)
                for size in found.sizes:
                    for window in windows:
                        self._measure_one(self._case(datatype, size, window), writers)
            except SharedError as error:
                if error.exit_code not in (UnsupportedError.exit_code, MissingError.exit_code):
                    raise
                self._skipped_types.append((datatype.name, str(error)))
                if len(self._skipped_types) == len(measurable):
                    raise SharedError(self._skipped_types[0][1], error.exit_code) from error
                self._release()

    def begin_type(self, datatype: Datatype) -> None:
        """Raise `SharedError` if a binding cannot send an element type; collective."""
        if self.benchmark.reduces:
            with self.group.agreement():
                for binding in self.bindings:
                    binding.check_sum(datatype, own_algorithms(self.benchmark, datatype))

    @contextmanager
    def iterating(self) -> Iterator[None]:
        """Count the time of the block as that of iterations."""
        before = time.perf_counter()
        yield
        self.iterating_seconds += time.perf_counter() - before

    def where(self, case: Case) -> str:
        """Return a case in words, for messages."""
        return f"{self.benchmark.name} with messages of {case.size} bytes"

    def plan(self, case: Case, benchmark: Benchmark | None = None) -> tuple[Plan, DataCheck]:
        """Return this rank's plan of a case, its memory filled, and the check of that memory.

        The plan is that of ``benchmark`` if one is given, else that of the measured benchmark.
        Collective; raises `SharedError` when any rank cannot do it.
        """
        check = DataCheck(case.rank, case.ranks, case.size, case.datatype)
        with self.group.agreement():
            plan = (benchmark or self.benchmark).plan(case)
            for exchange in plan.exchanges:
                check.fill(exchange, iteration=0)
            plan = devices.arranged(plan, case)
            if case.options.target_busy is not None and not plan.timed:
                plan = devices.begun_by(plan, self.worker.work(case.options.target_busy / 1e6))
            if case.options.cold:
                self._flush = self._flush or case.buffer.flush() or host_flush()
                plan = flushed(plan, self._flush)
        return plan, check

    @property
    def worker(self) -> Worker:
        """What computes for a given time on this rank."""
        if self._worker is None:
            from omb_py.measure.overlap import find_worker

            self._worker = find_worker(self.options, self._context.buffer)
        return self._worker

    def loop(self, binding: Binding, plan: Plan, pace: Pace) -> Loop:
        """Return the loop that makes the plan's calls; collective, raises like `plan`."""
        with self.group.agreement():
            devices.check(binding, plan.exchanges, self.options)
            if plan.chained and not binding.passes_addresses:
                raise UnsupportedError(
                    f"binding {binding.name} does not leave what arrives in the memory that the "
                    f"next call of --p2p-algorithm {self.options.algorithm} sends: use --binding "
                    "buffer"
                )
            on_part = self._context.part is not None
            if self.options.session or on_part:
                from omb_py.core import mpi

                for exchange in plan.exchanges:
                    functions = binding.functions(exchange)
                    if self.options.session:
                        mpi.check(functions)
                    if on_part:
                        mpi.check_on_part(functions)
            if plan.threads == 1:
                return binding.loop(plan.exchanges, pace)
            if not binding.serves_threads:
                raise UnsupportedError(
                    f"binding {binding.name} lets one thread receive at a time, so that several "
                    "wait for each other: use --binding pickle, or -t 1"
                )
            from omb_py.measure.threads import ThreadLoop

            shares = (plan.exchanges[number :: plan.threads] for number in range(plan.threads))
            loops = [binding.loop(share, pace) for share in shares]
            return ThreadLoop(loops, self._context.buffer.enter)

    def pace(self) -> Pace:
        """Return the ranks' synchronization at the next size; with clocks, aligned anew.

        A barrier then comes before each announcement, so that no rank still works when it comes.
        """
        if self._clock is None or self.options.validate:
            busy = self.options.target_busy is not None
            return Pace(barrier=self.benchmark.paced or busy)
        from omb_py.core.mpi.clock import CommonStart

        return Pace(barrier=True, start=CommonStart(self.group.comm, self._clock.align()))

    def look_for_steps(self, case: Case, combined: Combined | None) -> None:
        """Keep in mind what a clock that steps back, or has coarse ticks, makes of the times."""
        if combined is None:
            return
        if min(combined.samples, default=0.0) < 0:
            self._stepped.append(case.size)
        elif self._tick and combined.samples:
            self._medians.append((case.size, percentile(sorted(combined.samples), 50)))

    def unstopped(
        self, case: Case, measure: Callable[[], Measured], tries: int = 2
    ) -> tuple[Measured, float | None]:
        """Return what ``measure`` returns, again if a rank was stopped meanwhile; collective.

        With it come the seconds for which ranks were stopped in the last of ``tries``, if any was.
        """
        for _ in range(tries):
            before = self._stops.read()
            measured = measure()
            (stopped,) = self.group.allreduce(array("d", [self._stops.since(before)]), "max")
            if not stopped:
                return measured, None
            self._stopped.append((case.size, stopped))
        self._marked.append(case.size)
        return measured, stopped

    def _measure_one(self, case: Case, writers: list[Writer[Any]]) -> None:
        if self._context.watchdog is not None:
            self._context.watchdog.progress(f"measuring {self.where(case)}")
        try:
            self.measure_case(case, writers)
        except SharedError as error:
            if error.exit_code != LeftOutError.exit_code:
                raise
            self._skipped.append((case.size, str(error)))
        self._release()

    def _release(self) -> None:
        """Give back what belongs to one case; collective."""
        for binding in self.bindings:
            binding.release()
        self.resources.release()

    def _place(self) -> None:
        """Choose where this rank's messages lie; collective, raises where that cannot be."""
        job, options, device = self.group, self.options, self._context.buffer.device
        if options.placement or options.managed or options.validate:  # else nothing can fail
            with job.agreement():
                place = options.place_of(job.rank, job.ranks)
                if place is not None:
                    self._buffer = self._context.buffer.at(place)
                for datatype in self._context.datatypes if options.validate else ():
                    with suppress(UnsupportedError):  # left out when its turn comes
                        prove(self._buffer, datatype)
        on_device = int(self._buffer.place is Place.DEVICE)
        if devices.option_for_devices(options, device) and job.total(on_device) == 0:
            devices.check_host_only(options, device)
        self.resources.buffer = self._buffer
        alike = "nodes" in self.benchmark.options
        if alike or knows_nodes(self.benchmark, options):
            from omb_py.core.job import node_of_each_rank

            self._nodes = node_of_each_rank(options.node_map, job, alike)

    def _case(self, datatype: Datatype, size: int, window: int) -> Case:
        job, buffer = self.group, self._buffer
        return Case(
            job.rank,
            job.ranks,
            size,
            datatype,
            window,
            buffer,
            self.options,
            self.resources,
            self._nodes,
        )


def own_algorithms(benchmark: Benchmark, datatype: Datatype) -> Sequence[str]:
    """Return own algorithms of a benchmark that add a type that libraries may lack."""
    if datatype.code != BRAIN or "algorithm" not in benchmark.options:
        return ()
    from omb_py.benchmarks.algorithms import algorithms

    return tuple(algorithms(benchmark.name))


def knows_nodes(benchmark: Benchmark, options: Options) -> bool:
    """Return whether the requested algorithm needs the node of each rank.

    Raises `UsageError` if a node is named for each rank and the algorithm does not use it.
    """
    if options.own_algorithm is not None:
        from omb_py.benchmarks.algorithms import select

        algorithm = select(benchmark.name, options)
        if algorithm is not None and algorithm.by_nodes:
            return True
    if options.node_map is not None:
        raise UsageError(
            "--node-map is for --p2p-algorithm hierarchical: choose that, or leave it out"
        )
    return False


def stops_in_words(
    stopped: Sequence[tuple[int, float]], marked: Sequence[int], sized: bool
) -> str | None:
    """Return a sentence on the sizes and seconds of stops, and the sizes whose rows are marked."""
    if not stopped:
        return None
    from omb_py.core.text.units import duration

    seconds = duration(sum(one for _, one in stopped))
    sizes, left = (", ".join(map(str, dict.fromkeys(some))) for some in (dict(stopped), marked))
    at, but = (f" at {sizes} bytes", f"{left} bytes") if sized else ("", "the last time")
    but = f", but for {but}: do not use those numbers" if marked else ""
    return f"ranks were stopped for {seconds}{at}, as in a suspended job: measured again{but}"


def durations(iterating: float, own_launch: bool) -> dict[str, str]:
    """Return metadata on the cost of a run, if it was ``iterating`` for any seconds.

    ``iterating_seconds`` are those of iterations, with warm-up and all that keeps ranks together;
    ``launch_seconds`` those since the start of this process, if it is the run's ``own_launch``. The
    launcher's own start and the end of MPI are in neither.
    """
    if not iterating:
        return {}
    costs = {"iterating_seconds": f"{iterating:.4f}"}
    if own_launch:
        launch = seconds_before(time.perf_counter(), 0.0) or time.perf_counter() - BEGAN
        costs = {"launch_seconds": f"{launch:.3f}", **costs}
    return costs


def check_ranks(benchmark: Benchmark, options: Options, job: Job) -> None:
    """Raise `UsageError` when the benchmark does not run on this many ranks or their threads."""
    job.check_launcher()
    ranks = job.ranks
    if not benchmark.ranks.allow(ranks):
        number = ranks + 1 if benchmark.ranks is Ranks.EVEN else 2
        program = "python PROGRAM" if job.guest else f"omb-py {benchmark.name}"
        raise UsageError(
            f"{benchmark.name} needs {benchmark.ranks.value}, and this job has {ranks}: "
            f"start it with: mpiexec -n {number} {program}"
        )
    if "threads" in benchmark.options and job.thread_level != "multiple":
        raise UsageError(
            f"{benchmark.name} needs thread level multiple, and this job has {job.thread_level}: "
            "leave out --thread-level, or use an MPI library that grants it"
        )
    if options.pairs is not None and options.pairs > ranks // 2:
        raise UsageError(f"-p: {ranks} ranks make at most {ranks // 2} pairs, not {options.pairs}")
    if options.skew is not None:
        options.skew.check(ranks)
    if options.root is not None and options.root >= ranks:
        raise UsageError(
            f"-k: there is no rank {options.root}; the last of {ranks} ranks is {ranks - 1}"
        )


USUAL_CACHE = 32 << 20
"""Bytes of the largest cache if the system does not say."""


def flushed(plan: Plan, flush: tuple[Step, ...]) -> Plan:
    """Return the plan with a flush before each iteration, then a barrier for slower ranks.

    Raises `UnsupportedError` for a plan of several threads.
    """
    if plan.threads > 1:
        raise UnsupportedError("--cold is for one thread a rank: leave it out, or use -t 1")
    exchanges = (
        replace(exchange, before=(*flush, Call("barrier"), *exchange.before))
        for exchange in plan.exchanges
    )
    return replace(plan, exchanges=tuple(exchanges))


def host_flush(root: str = SYS) -> tuple[Local]:
    """Return a step that reads `TIMES_CACHE` times the largest cache, and so empties it.

    The C library compares two halves of a block, with ordinary loads: its writes of large blocks
    bypass caches. ``root`` is the system's folder of devices. Raises `OutOfMemoryError`.
    """
    half = TIMES_CACHE * (largest_cache(root) or USUAL_CACHE) // 2
    try:
        block = bytearray(b"\1") * (2 * half)  # written: pages never written are all one
    except MemoryError:
        raise OutOfMemoryError(
            f"--cold needs {2 * half >> 20} MiB on each rank: start fewer ranks on a host"
        ) from None
    address = ctypes.addressof(ctypes.c_char.from_buffer(block))
    compare = ctypes.CDLL(None).memcmp
    arguments = address, address + half, half
    compare.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
    function = ctypes.cast(compare, ctypes.c_void_p).value or 0
    return (Local("flush", partial(compare, *arguments), function, arguments, kept=block),)

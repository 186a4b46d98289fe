"""What all kinds of measurements need of a case: its plan, its loop, its pace, its memory."""

from __future__ import annotations

import ctypes
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from omb_py.benchmarks import Benchmark, Case, Plan, Ranks
from omb_py.bindings import Binding
from omb_py.buffers import TIMES_CACHE
from omb_py.core.calls import Call, Step
from omb_py.core.calls.loop import Loop, Pace
from omb_py.core.dataclass import dataclass, replace
from omb_py.core.datatypes import BRAIN, Datatype, find_types
from omb_py.core.errors import OutOfMemoryError, UnsupportedError, UsageError
from omb_py.core.job import Combined, Job
from omb_py.core.memory import Local, Place
from omb_py.core.options import Options
from omb_py.core.statistics import percentile
from omb_py.measure import devices
from omb_py.measure.conditions import SYS, coarse, largest_cache
from omb_py.measure.launch import Launch
from omb_py.measure.resources import MpiResources
from omb_py.measure.sampling import check_counts
from omb_py.measure.stops import Stops, in_words
from omb_py.measure.validation import DataCheck, prove
from omb_py.results.columns import new_run
from omb_py.results.writer import Writer

if TYPE_CHECKING:
    from omb_py.core.mpi.clock import SharedClock
    from omb_py.measure.overlap import Worker
    from omb_py.measure.sizes import Sizes


Measured = TypeVar("Measured")


class Measurement:
    """A benchmark about to be measured: its ranks and memory, and what all kinds need of a case.

    Methods are collective over the ranks that measure together, unless they say otherwise.
    """

    def __init__(
        self,
        launch: Launch,
        benchmark: Benchmark,
        options: Options,
        bindings: Sequence[Binding],
        group: Job | None = None,
    ) -> None:
        """``group`` are the ranks that measure together, all of them unless it is given."""
        self.launch = launch
        self.benchmark = benchmark
        self.options = options
        self.job = launch.job
        self.group = launch.job if group is None else group
        self.bindings = list(bindings)
        self.datatypes = find_types(options.types or (benchmark.usual_type,))
        if any(binding.needs_mpi for binding in bindings):
            self.datatypes = tuple(map(launch.job.as_passed, self.datatypes))
        self.run_name = new_run()
        self.report = launch.report
        self.writers: list[Writer[Any]] = []
        """Where rows go; only on rank 0, once they are open."""
        self.resources = MpiResources(self.group, options)
        self.clock: SharedClock | None = None
        """The ranks' common clock, if they start together by it."""
        self.tick = 0.0
        """Seconds of a tick of the clock, if it is too coarse to be of no matter; on rank 0."""
        self.within = ""
        """Words behind those for a case: where it is measured, if not on all ranks."""
        self.iterating_seconds = 0.0
        self._worker: Worker | None = None
        self._flush: tuple[Step, ...] = ()
        self._buffer = launch.buffer
        self._nodes: tuple[int, ...] = ()
        self.stops = Stops()
        self._stopped: list[tuple[int, float]] = []
        self._marked: list[int] = []
        self._stepped: list[int] = []
        self._medians: list[tuple[int, float]] = []

    def get_ready(self) -> None:
        """Check what is asked for, and choose where messages lie.

        Raises `UsageError` or `SharedError` when these ranks cannot measure it.
        """
        check_ranks(self.benchmark, self.options, self.group)
        self.choose_memory()

    def choose_memory(self) -> None:
        """Choose where this rank's messages lie, and its node; raises where that cannot be."""
        check_counts(self.options)
        job, options, device = self.group, self.options, self.launch.buffer.device
        if options.placement or options.managed or options.validate:  # else nothing can fail
            with job.agreement():
                place = options.place_of(job.rank, job.ranks)
                if place is not None:
                    self._buffer = self.launch.buffer.at(place)
                for datatype in self.datatypes if options.validate else ():
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

    def begin_type(self, datatype: Datatype) -> None:
        """Raise `SharedError` if a binding cannot send an element type."""
        if self.benchmark.reduces:
            with self.group.agreement():
                for binding in self.bindings:
                    binding.check_sum(datatype, own_algorithms(self.benchmark, datatype))

    def case(self, datatype: Datatype, size: int, window: int) -> Case:
        """Return this rank's case of an element type, message size and window; not collective."""
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

    def where(self, case: Case) -> str:
        """Return a case in words, for messages; not collective."""
        return f"{self.benchmark.name} with messages of {case.size} bytes{self.within}"

    def write(self, rows: Iterable[Any]) -> None:
        """Write the rows that this rank has; raises `SharedError` if that fails."""
        with self.group.agreement():
            for row in rows:
                for writer in self.writers:
                    writer.row(row)

    @contextmanager
    def iterating(self) -> Iterator[None]:
        """Count the time of the block as that of iterations."""
        before = time.perf_counter()
        yield
        self.iterating_seconds += time.perf_counter() - before

    def plan(self, case: Case, benchmark: Benchmark | None = None) -> tuple[Plan, DataCheck]:
        """Return this rank's plan of a case, its memory filled, and the check of that memory.

        The plan is that of ``benchmark`` if one is given, else that of the measured benchmark.
        Collective; raises `SharedError` when any rank cannot do it.
        """
        check = DataCheck(case.rank, case.ranks, case.size, case.datatype)
        with self.group.agreement():
            plan = (benchmark or self.benchmark).plan(case)
            for iteration in plan.iterations:
                check.fill(iteration, 0)
            plan = devices.arranged(plan, case)
            if case.options.target_busy is not None and not plan.timed:
                plan = devices.begun_by(plan, self.worker.work(case.options.target_busy / 1e6))
            if case.options.cold:
                self._flush = self._flush or case.buffer.flush() or host_flush()
                plan = flushed(plan, self._flush)
        return plan, check

    @property
    def has_worker(self) -> bool:
        """True once `worker` has been found."""
        return self._worker is not None

    @property
    def worker(self) -> Worker:
        """What computes for a given time on this rank."""
        if self._worker is None:
            from omb_py.measure.overlap import find_worker

            self._worker = find_worker(self.options, self.launch.buffer)
        return self._worker

    def loop(self, binding: Binding, plan: Plan, pace: Pace) -> Loop:
        """Return the loop that makes the plan's calls; collective, raises like `plan`."""
        with self.group.agreement():
            devices.check(binding, plan.iterations, self.options)
            if plan.chained and not binding.passes_addresses:
                raise UnsupportedError(
                    f"binding {binding.name} does not leave what arrives in the memory that the "
                    f"next call of --p2p-algorithm {self.options.algorithm} sends: use --binding "
                    "buffer"
                )
            on_subset = self.launch.subset is not None
            if self.options.session or on_subset:
                from omb_py.core import mpi

                for iteration in plan.iterations:
                    functions = binding.functions(iteration)
                    if self.options.session:
                        mpi.check(functions)
                    if on_subset:
                        mpi.check_on_subset(functions)
            loop = self._loop(binding, plan, pace)
            # mpi4py 4.1's requests of persistent reductions do not keep their arrays
            loop.plan = plan
            return loop

    def _loop(self, binding: Binding, plan: Plan, pace: Pace) -> Loop:
        """Return the binding's loop of a plan, or one of several threads; raises `OmbError`."""
        if plan.threads == 1:
            return binding.loop(plan.iterations, pace)
        if not binding.serves_threads:
            raise UnsupportedError(
                f"binding {binding.name} lets one thread receive at a time, so that several "
                "wait for each other: use --binding pickle, or -t 1"
            )
        from omb_py.measure.threads import ThreadLoop

        shares = (plan.iterations[number :: plan.threads] for number in range(plan.threads))
        loops = [binding.loop(share, pace) for share in shares]
        return ThreadLoop(loops, self.launch.buffer.enter)

    def pace(self) -> Pace:
        """Return the ranks' synchronization at the next size; with clocks, aligned anew.

        A barrier then comes before each announcement, so that no rank still works when it comes.
        """
        if self.clock is None or self.options.validate:
            busy = self.options.target_busy is not None
            return Pace(barrier=self.benchmark.paced or busy)
        from omb_py.core.mpi.clock import CommonStart

        return Pace(barrier=True, start=CommonStart(self.group.comm, self.clock.align()))

    def look_for_steps(self, case: Case, combined: Combined | None) -> None:
        """Note the size if its times are below 0; else keep the median, to compare with a tick."""
        if combined is None:
            return
        if min(combined.samples, default=0.0) < 0:
            self._stepped.append(case.size)
        elif self.tick and combined.samples:
            self._medians.append((case.size, percentile(sorted(combined.samples), 50)))

    def unstopped(
        self, case: Case, measure: Callable[[], Measured], tries: int = 2
    ) -> tuple[Measured, float | None]:
        """Return what ``measure`` returns, again if a rank was stopped meanwhile.

        With it come the seconds for which ranks were stopped in the last of ``tries``, if any was.
        """
        for _ in range(tries):
            before = self.stops.read()
            measured = measure()
            (stopped,) = self.group.allreduce(array("d", [self.stops.since(before)]), "max")
            if not stopped:
                return measured, None
            self._stopped.append((case.size, stopped))
        self._marked.append(case.size)
        return measured, stopped

    def note_clock(self) -> None:
        """Tell the user if ranks were stopped, the clock stepped back, or its ticks are long."""
        if self._stepped:
            listed = ", ".join(map(str, dict.fromkeys(self._stepped)))
            place = f" at {listed} bytes" if self.benchmark.sized else ""
            self.group.note(f"the clock stepped back{place}: times are below zero; measure again")
        self.group.note(in_words(self._stopped, self._marked, self.benchmark.sized))
        self.group.note(coarse(self.tick, self._medians))

    def release(self) -> None:
        """Give back what belongs to one case."""
        for binding in self.bindings:
            binding.release()
        self.resources.release()

    def close(self) -> None:
        """Give back what belongs to a case and what outlives it."""
        for binding in self.bindings:
            binding.release()
        self.resources.close()


def nothing() -> None:
    """Do nothing."""


@dataclass(frozen=True)
class Kind:
    """A kind of measurement: what `omb_py.measure.run` calls, on all ranks, to measure it.

    ``measure_case`` measures one message size and writes what came of it; ``writers`` opens, only
    on rank 0, what rows go to. ``get_ready`` and ``begin_type`` are those of `Measurement` unless
    they are given. ``prepare`` opens what rows go to besides, when all else is known to be right;
    ``finish`` follows the last case, also if one has failed. ``metadata`` are more facts of the
    run, on rank 0. ``largest_group`` is the number of ranks in the largest of several groups,
    ``sizes`` returns the message sizes of each element type if they are not those of the options.
    """

    measurement: Measurement
    measure_case: Callable[[Case], None]
    writers: Callable[[], Sequence[Writer[Any]]]
    get_ready: Callable[[], None] | None = None
    begin_type: Callable[[Datatype], None] | None = None
    prepare: Callable[[], None] = nothing
    finish: Callable[[], None] = nothing
    metadata: Callable[[], dict[str, str]] = dict
    largest_group: int | None = None
    sizes: Callable[[], dict[Datatype, Sizes]] | None = None


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
    iterations = (
        replace(iteration, before=(*flush, Call("barrier"), *iteration.before))
        for iteration in plan.iterations
    )
    return replace(plan, iterations=tuple(iterations))


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

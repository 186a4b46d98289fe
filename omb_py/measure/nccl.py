"""nccl-tests' programs: each size out of place, then in place, as nccl-tests times and checks it.

``n`` iterations are started one after another, and waited for once; the time of one is the mean
over them and, unless ``-a`` says otherwise, over the ranks. A call that returns when its work is
done, as all of the host do, is a wait of its own.
"""

from __future__ import annotations

import os
import sys
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from omb_py.benchmarks import Benchmark, Case, Plan
from omb_py.bindings import BINDINGS, Binding
from omb_py.core import VERSION
from omb_py.core.calls import Call
from omb_py.core.calls.loop import Loop, Pace
from omb_py.core.dataclass import replace
from omb_py.core.datatypes import Datatype
from omb_py.core.errors import SharedError, UsageError, ValidationError
from omb_py.core.job import ESCAPED, Op
from omb_py.core.options import Options
from omb_py.measure.benchmark import CheckedCalls
from omb_py.measure.launch import Launch
from omb_py.measure.measurement import Kind, Measurement
from omb_py.measure.rows import GIGABYTE, MICROSECONDS
from omb_py.measure.sampling import run_counted
from omb_py.measure.sizes import Sizes
from omb_py.measure.validation import DataCheck
from omb_py.results.nccl import (
    ADDING,
    OF_BLOCKS,
    OF_PARTS,
    ROOTED,
    SLACK,
    TYPE_NAMES,
    NcclHalf,
    NcclJson,
    NcclRank,
    NcclReport,
    NcclRow,
    NcclSettings,
    NcclText,
    open_json,
)
from omb_py.results.writer import Writer

UNCHECKED_IN_PLACE = frozenset({"alltoall", "sendrecv"})
"""Programs whose data in place nccl-tests does not check: what is sent is overwritten."""

ALIGNED = 16
"""Bytes of which nccl-tests makes each rank's part a multiple."""

WITH_BARRIER = 1
"""The value of ``-z`` with which a barrier is part of the time."""

GIBIBYTE = 1 << 30

AVERAGES: tuple[Op | None, ...] = (None, "sum", "min", "max")
"""Reductions of the times of all ranks, by the number of ``-a``; rank 0's time has none."""


def kind_of_nccl(
    settings: NcclSettings, launch: Launch, benchmark: Benchmark, options: Options
) -> Kind:
    """Return the measurement of a program of nccl-tests; collective."""
    binding: Binding = BINDINGS.load(options.binding)(launch.job.communicator, options)
    launch.job.at_end(binding.close)
    return NcclTest(Measurement(launch, benchmark, options, [binding]), settings).kind()


class NcclTest:
    """A program of nccl-tests; its methods are collective."""

    def __init__(self, measurement: Measurement, settings: NcclSettings) -> None:
        self._measurement, self._settings = measurement, settings
        (self._binding,) = measurement.bindings
        self._job = measurement.job
        self._report = NcclReport(settings)
        self._roots: Iterator[int] = iter(())
        self._sizes: dict[Datatype, Sizes] = {}

    def kind(self) -> Kind:
        """Return this kind of measurement."""
        return Kind(
            self._measurement,
            self.measure_case,
            self.writers,
            get_ready=self.get_ready,
            begin_type=self.begin_type,
            finish=self.finish,
            sizes=self.sizes,
        )

    def get_ready(self) -> None:
        """Check what is asked for, and learn which process and device each rank has."""
        self._measurement.get_ready()
        buffer, job, root = self._measurement.launch.buffer, self._job, self._settings.root
        if root is not None and root >= job.ranks:
            raise UsageError(
                f"-r: there is no rank {root}; the last of {job.ranks} ranks is {job.ranks - 1}"
            )
        self._note_what_differs()
        self._limit_sizes()
        number, bus, name = 0, "host", f"host memory, buffer {buffer.name}"
        if buffer.device is not None:
            number, name = buffer.device.number, buffer.device.name
            bus = buffer.device.identity
        words = "\t".join([str(os.getpid()), os.uname().nodename, str(number), bus, name])
        gathered = [one.decode(errors=ESCAPED) for one in job.gather(words.encode(errors=ESCAPED))]
        for rank, one in enumerate(gathered):
            pid, host, device, bus, name = one.split("\t")
            self._report.ranks.append(NcclRank(rank, int(pid), host, int(device), bus, name))

    def sizes(self) -> dict[Datatype, Sizes]:
        """Return the sizes of each type, in nccl-tests' order: roots, cycles, sizes."""
        found, settings = {}, self._settings
        for datatype in self._measurement.datatypes:
            sizes = tuple(
                block_of(settings.program, size, datatype, self._job.ranks)
                for size in asked_sizes(settings, self._report.largest)
            )
            found[datatype] = Sizes(sizes * settings.cycles * len(self._each_root()))
        self._sizes = found
        return found

    def begin_type(self, datatype: Datatype) -> None:
        """Begin with the first root; raise `SharedError` if the binding cannot add the type."""
        try:
            self._measurement.begin_type(datatype)
        except SharedError as error:
            raise SharedError(
                f"-d {TYPE_NAMES[datatype.name]}: binding {self._binding.name} cannot add it here: "
                "choose another type, or another --binding",
                error.exit_code,
            ) from error
        roots = self._each_root()
        times = len(self._sizes[datatype].sizes) // len(roots)
        self._roots = (root for root in roots for _ in range(times))

    def writers(self) -> list[Writer[Any]]:
        """Return the writers, on rank 0."""
        report, options = self._report, self._measurement.options
        report.facts = {"version": VERSION, "binding": options.binding}
        report.facts |= self._binding.describe() | {"buffer": options.buffer}
        report.facts["placement"] = self._measurement.launch.buffer.place.value
        found: list[Writer[Any]] = [NcclText(sys.stdout, report)]
        if self._settings.output is not None:
            stream, name = open_json(self._settings.output)
            print(f"# Writing JSON output to {name}", flush=True)
            found.append(NcclJson(stream, report))
        return found

    def measure_case(self, case: Case) -> None:
        """Measure one size, out of place and in place, and write its line."""
        settings, measurement = self._settings, self._measurement
        root = next(self._roots)
        offset = settings.unaligned * case.datatype.itemsize
        case = replace(case, options=replace(case.options, root=root, offset=offset))
        program = settings.program
        halves = tuple(self._half(case, in_place) for in_place in (False, True))
        whole, _ = self._traffic(case)
        part = case.ranks if program in OF_PARTS else 1
        row = NcclRow(
            size=whole,
            count=whole // part // case.datatype.itemsize,
            type=TYPE_NAMES[case.datatype.name],
            redop="sum" if program in ADDING or program == "sendrecv" else "none",
            root=root if program in ROOTED else -1,
            halves=halves,
        )
        self._report.buses += [half.busbw for half in halves]
        measurement.write([row])

    def finish(self) -> None:
        """Raise `ValidationError` if data was wrong, `SharedError` if it was too slow."""
        report = self._report
        if report.errors:
            raise ValidationError(
                f"{report.errors} times a rank found wrong data: column #wrong has the sizes, and "
                f"'omb-py {self._measurement.benchmark.name} -c' says where"
            )
        if self._complete and not report.fast_enough:
            raise SharedError(
                f"the mean bus bandwidth of {report.mean:g} GB/s is below {SLACK} times "
                f"NCCL_TESTS_MIN_BW={self._settings.minimum:g}"
            )

    @property
    def _complete(self) -> bool:
        """True if all sizes have been measured."""
        return len(self._report.buses) == 2 * sum(len(one.sizes) for one in self._sizes.values())

    def _each_root(self) -> Sequence[int]:
        if self._settings.program not in ROOTED:
            return (0,)
        return range(self._job.ranks) if self._settings.root is None else (self._settings.root,)

    def _traffic(self, case: Case) -> tuple[int, float]:
        """Return nccl-tests' size in bytes, and the factor of the bus bandwidth."""
        traffic = self._measurement.benchmark.traffic
        if traffic is None:
            return case.size, 1.0
        return traffic(case.options, case.size, case.ranks)

    def _half(self, case: Case, in_place: bool) -> NcclHalf:
        """Return the numbers of a size, out of place or in place."""
        settings, measurement, job = self._settings, self._measurement, self._job
        checked = settings.checks and not (in_place and settings.program in UNCHECKED_IN_PLACE)
        if case.size == 0:  # NCCL returns at once, and gloo fails
            return NcclHalf(0.0, 0.0, 0.0, 0 if checked else None)
        plan, check = measurement.plan(case, self._in_place() if in_place else None)
        pace = Pace(barrier=settings.blocking in (1, 3))
        loop = measurement.loop(self._binding, plan, pace)
        with measurement.iterating():
            job.barrier()
            run_counted(loop, 0, settings.warmup + 1, 0, measurement.report)
            job.barrier()
            elapsed, queued = self._timed(loop)
        each = settings.iterations * settings.aggregated
        seconds = self._over_ranks(elapsed) / each
        size, factor = self._traffic(case)
        measurement.release()
        wrong = self._wrong(plan, check) if checked else None
        measurement.release()
        reported = queued / each if settings.cpu_time else seconds
        algorithm = size / seconds / GIGABYTE if seconds else 0.0
        return NcclHalf(reported * MICROSECONDS, algorithm, algorithm * factor, wrong)

    def _limit_sizes(self) -> None:
        """Reduce sizes to what the memory of every rank has room for, as nccl-tests does."""
        settings, device = self._settings, self._measurement.launch.buffer.device
        memory = available_memory() // self._job.on_host().ranks
        if device is not None:
            memory = device.memory - min(-(-device.memory // (16 * GIBIBYTE)), 4) * GIBIBYTE
            memory -= GIBIBYTE
        most = max(0, memory) // (3 if settings.checks else 2)
        (least,) = self._job.allreduce(array("d", [most]), "min")
        self._report.largest = min(settings.largest, int(least))

    def _note_what_differs(self) -> None:
        """Tell the user where a column is not what nccl-tests has in it."""
        binding, benchmark = self._binding, self._measurement.benchmark
        if self._in_place() is None and benchmark.name != "bcast":
            self._job.note(
                f"binding {binding.name} has no {benchmark.name} in place: the columns in place "
                "are of the call out of place, measured again"
            )
        if self._settings.aggregated > 1:
            self._job.note("-m: calls are made one by one, which NCCL would launch as a group")

    def _in_place(self) -> Benchmark | None:
        """Return the benchmark in place, as the binding has it; None if it has none of its own."""
        benchmark = self._measurement.benchmark
        if benchmark.name == "bcast":  # is so anyway
            return None
        if self._binding.in_place_is_alias:
            return replace(benchmark, plan=partial(aliased, benchmark.plan))
        if "in_place" in benchmark.options and self._binding.passes_addresses:
            return replace(benchmark, plan=partial(in_place_by_mpi, benchmark.plan))
        return None

    def _timed(self, loop: Loop) -> tuple[float, float]:
        """Return the seconds of all timed iterations, and those to start them."""
        times = self._settings.iterations * self._settings.aggregated
        if self._settings.blocking == 0:
            return loop.burst(times)
        seconds = array("d", bytes(8 * times))
        begin = time.perf_counter()
        loop.run(0, seconds)
        elapsed = time.perf_counter() - begin
        total = elapsed if self._settings.blocking == WITH_BARRIER else sum(seconds)
        return total, total

    def _over_ranks(self, seconds: float) -> float:
        """Return one time of those of all ranks, as ``-a`` asks for."""
        how = AVERAGES[self._settings.average]
        if how is None:
            return self._job.bcast_from_root(seconds)
        (found,) = self._job.allreduce(array("d", [seconds]), how)
        return found / self._job.ranks if how == "sum" else found

    def _wrong(self, plan: Plan, check: DataCheck) -> int:
        """Return the wrong elements of all ranks in the first check that finds any."""
        for number in range(self._settings.checks):
            calls = CheckedCalls(self._binding, check, plan.iterations, number)
            self._job.barrier()
            calls.time(1, self._measurement.launch.buffer.enter)
            wrong = calls.wrong_elements()
            self._binding.release()
            if total := self._job.total(wrong):
                self._report.errors += self._job.total(int(wrong > 0))
                return total
        return 0


def asked_sizes(settings: NcclSettings, largest: int) -> Iterator[int]:
    """Yield nccl-tests' sizes in bytes, before they are rounded to whole elements of each rank."""
    size = min(settings.smallest, largest)
    while size <= largest:
        yield size
        if size == 0 and settings.multiplied:  # there is no memory
            return
        size = size * settings.step if settings.multiplied else size + settings.step


def available_memory() -> int:
    """Return the bytes of this host's memory that no process uses; without a word on it, no limit.

    Source: Linux's proc_meminfo(5).
    """
    with suppress(OSError), open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    return sys.maxsize


def block_of(program: str, size: int, datatype: Datatype, ranks: int) -> int:
    """Return our message size of a size of nccl-tests, which it rounds down.

    To whole elements, and where each rank has a part of it to parts of whole `ALIGNED` bytes: a
    size with fewer becomes 0.
    """
    if program not in OF_PARTS:
        return size // datatype.itemsize * datatype.itemsize
    part = size // datatype.itemsize // ranks * datatype.itemsize // ALIGNED * ALIGNED
    return part if program in OF_BLOCKS else part * ranks


def in_place_by_mpi(plan: Callable[[Case], Plan], case: Case) -> Plan:
    """Return the plan with ``MPI_IN_PLACE``."""
    return plan(replace(case, options=replace(case.options, in_place=True)))


def aliased(plan: Callable[[Case], Plan], case: Case) -> Plan:
    """Return the plan with one memory for both operands, the smaller at this rank's part of it."""
    made = plan(case)
    (iteration,) = made.iterations
    (call,) = iteration.steps
    assert isinstance(call, Call)
    if len(call.messages) < 2:
        return made
    source, target = call.messages
    moved, other = (
        (target, source) if target.memory.nbytes < source.memory.nbytes else call.messages
    )
    memory = other.memory
    if moved.memory.nbytes < memory.nbytes:
        memory = memory.slice(case.rank * moved.memory.nbytes, moved.memory.nbytes)
    own = replace(moved, memory=memory)
    operands = (own, target) if moved is source else (source, own)
    inputs, outputs = iteration.inputs, iteration.outputs
    if moved is source:
        inputs = tuple(replace(one, memory=memory) for one in inputs[:1])
    else:
        outputs = tuple(replace(one, memory=memory) for one in outputs)
    iteration = replace(
        iteration, steps=(replace(call, operands=operands),), inputs=inputs, outputs=outputs
    )
    return replace(made, iterations=(iteration,))

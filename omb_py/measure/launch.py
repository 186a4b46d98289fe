"""From options to a job: the device is chosen, MPI started, and both ended in order.

Inside a user's program, `measure_in_program` leaves MPI started, and the program as it was. Only
``--coll-algorithm`` lasts: the MPI library reads it once.
"""

from __future__ import annotations

import atexit
import gc
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any

from omb_py.benchmarks import Benchmark, StartUp
from omb_py.bindings import BINDINGS, Binding, load_before_mpi
from omb_py.buffers import BUFFERS, Buffer
from omb_py.core import mpi
from omb_py.core.dataclass import dataclass, replace
from omb_py.core.datatypes import find_types
from omb_py.core.errors import MissingPackageError, OmbError, UnsupportedError, UsageError
from omb_py.core.job import Job
from omb_py.core.memory import Place
from omb_py.core.mpi import THREAD_LEVELS, launcher
from omb_py.core.mpi.startup_timer import BUFFER, NUMPY, Stages
from omb_py.core.options import Options, alike

if TYPE_CHECKING:
    from omb_py.core.mpi.watchdog import Watchdog
    from omb_py.measure.measurement import Measurement, RunContext
    from omb_py.measure.recovery import RecoveryMeasurement
    from omb_py.measure.startup import StartUpMeasurement
    from omb_py.results.writer import Writer


@dataclass(frozen=True)
class StartedJob:
    """A job that has started, with the buffer whose device was chosen for it."""

    job: Job
    buffer: Buffer
    watchdog: Watchdog | None
    device_first: bool


@contextmanager
def start_job(
    name: str,
    options: Options,
    stages: Stages | None = None,
    in_program: bool = False,
    numpy_apart: bool = False,
    more: Mapping[str, object] | None = None,
) -> Iterator[StartedJob]:
    """Start the job in which ``name`` runs, with its buffer, and end it.

    All ranks must have the same options, and ``more`` values by the names of what sets them.
    ``numpy_apart`` times the import of NumPy as a stage of its own. A GPU context that comes after
    MPI_Init costs Open MPI 5 its direct copies between GPUs.
    """
    launched = {"benchmark": (name,), **alike(options)}
    launched |= {key: (value,) for key, value in (more or {}).items()}
    stages = Stages() if stages is None else stages
    watchdog = None
    if options.timeout is not None:
        from omb_py.core.mpi.watchdog import Watchdog

        watchdog = Watchdog(options.timeout, launcher.rank())
        watchdog.progress("starting MPI")
    with ExitStack() as after_mpi:
        if watchdog is not None and in_program:
            after_mpi.callback(watchdog.close)
        local_rank = launcher.local_rank()
        apart = stages.importing("numpy", NUMPY) if numpy_apart else nullcontext()
        with stages.stage(BUFFER), apart:
            buffer, failure = prepare_buffer(options, local_rank or 0)
        if buffer is not None:
            after_mpi.callback(buffer.close)
        if options.library_algorithm is not None and failure is None:
            from omb_py.measure.library_algorithm import request

            try:
                request(name, options.library_algorithm)
            except OmbError as error:
                failure = error
        if isinstance(failure, UsageError) and launcher.is_alone():
            raise failure  # also where MPI cannot be started
        try:
            started = _job(options, stages, in_program)
        except OmbError as error:
            raise failure or error from error
        with started as job:
            job.debug = options.debug
            if (records := os.environ.get(launcher.SHARED_FILES)) is not None:
                from omb_py.core import shared_memory

                shared_memory.record(records)
            job.expect(None if in_program else launcher.expected_ranks())
            job.start_together(failure, launched)
            if job.rank == 0 and launcher.expected_ranks() is not None:
                with suppress(OSError):
                    os.unlink(launcher.NOT_STARTED)
            assert buffer is not None
            device_first = local_rank is not None or job.ranks == 1
            if buffer.device is not None and not device_first:
                buffer = choose_device_again(options, job)
                after_mpi.callback(buffer.close)
            if THREAD_LEVELS.index(job.thread_level) < THREAD_LEVELS.index(options.thread_level):
                job.note(
                    f"requested thread level {options.thread_level}, MPI grants {job.thread_level}"
                )
            if not in_program:
                # what was imported stays to the end: no collection has to go through it, least of
                # all that at the interpreter's end, which takes 10 ms and more
                gc.freeze()
            yield StartedJob(job, buffer, watchdog, device_first)
            if watchdog is not None and not in_program:
                watchdog.end()


def _job(options: Options, stages: Stages, guest: bool) -> Job:
    """Return the job of all ranks, by MPI, or by torch if torchrun started them.

    Raises `UsageError` if there is no MPI, `UnsupportedError` if torchrun starts ranks whose
    binding needs it.
    """
    if "RANK" in os.environ and not guest:
        try:
            needs_mpi = BINDINGS.load(options.binding).needs_mpi
        except MissingPackageError as error:
            if error.package != "mpi4py":
                raise
            needs_mpi = True
        if launcher.by_torchrun() and not needs_mpi:
            from omb_py.core.job import by_torch

            return by_torch.world(options.interface)
        if launcher.by_torchrun() and not launcher.by_mpi():
            raise UnsupportedError(
                f"binding {options.binding} needs MPI, and torchrun starts ranks without it: start "
                "them with mpiexec, or choose another --binding, such as torch or tcp"
            )
        ranks = os.environ.get("WORLD_SIZE", "")
        if not needs_mpi and not launcher.by_mpi() and ranks not in ("", "1"):
            raise UsageError(
                f"RANK and WORLD_SIZE={ranks} are set, but neither mpiexec nor torchrun started "
                f"this process, and ranks of binding {options.binding} meet through one of them: "
                f"start them with mpiexec -n {ranks}, or torchrun --nproc_per_node {ranks}"
            )
    from omb_py.core.job import by_mpi

    load_before_mpi((options.binding,))
    return by_mpi.world(options.thread_level, options.session, stages, guest)


@contextmanager
def launch(
    benchmark: Benchmark,
    options: Options,
    in_program: bool = False,
    more_writers: Callable[[], Sequence[Writer[Any]]] = tuple,
    more: Mapping[str, object] | None = None,
) -> Iterator[RunContext]:
    """Start a job in which ``benchmark`` can be measured; it ends when the block is left.

    The device, if any, is chosen before MPI is started. With ``in_program``, within a user's
    program, MPI and the process go on, and errors are raised. ``more_writers`` makes, on rank 0,
    further writers in addition to those that the options name. ``more`` is as in `start_job`.
    """
    stages = Stages()
    datatypes = find_types(options.types or (benchmark.usual_type,))
    numpy_apart = benchmark.start_up is StartUp.PARTS
    with start_job(benchmark.name, options, stages, in_program, numpy_apart, more) as started:
        from omb_py.measure.measurement import RunContext

        yield RunContext(
            benchmark,
            adapted(benchmark.name, options, started),
            datatypes,
            started.buffer,
            started.job,
            started.watchdog,
            started.device_first,
            stages,
            more_writers,
        )


def adapted(name: str, options: Options, started: StartedJob) -> Options:
    """Return the options with the choices that depend on the buffer, known by now; collective.

    Raises `SharedError` if a requirement of the binding is missing.
    """
    if options.window_kind is None:
        # what MPI allocates is on the host
        kind = "allocate" if started.buffer.device is None else "create"
        options = replace(options, window_kind=kind)
    if options.placement and started.buffer.device is None:
        if {*options.placement} != {Place.HOST}:
            letters = " ".join(place.value for place in options.placement)
            started.job.note(f"buffer {options.buffer} has no device: {letters} is measured as H H")
        options = replace(options, placement=())
    options = labelled(options)
    with started.job.agreement():
        point_to_point = BINDINGS.load(options.binding).point_to_point
    if point_to_point:
        from omb_py.benchmarks.algorithms import for_point_to_point

        options = for_point_to_point(name, options)
    return options


def measurement(
    context: RunContext,
) -> Measurement | StartUpMeasurement | RecoveryMeasurement:
    """Return the measurement that the options select."""
    benchmark, options = context.benchmark, context.options
    if benchmark.recovery is not None:
        from omb_py.measure.recovery import RecoveryMeasurement

        return RecoveryMeasurement(context, benchmark.recovery)
    if benchmark.start_up is not None:
        from omb_py.measure.startup import StartUpMeasurement

        return StartUpMeasurement(context, benchmark.start_up)
    check_binding_options(options, (options.binding,))
    if options.split is not None:
        return measurement_of_groups(context)
    binding: Binding = BINDINGS.load(options.binding)(context.job.communicator, options)
    context.job.at_end(binding.close)
    from omb_py.measure.benchmark import BenchmarkMeasurement

    return BenchmarkMeasurement(context, binding)


def measurement_of_groups(context: RunContext) -> Measurement:
    """Return the measurement of the groups of ranks that the options name; collective.

    Raises `UsageError` if the ranks cannot be divided in this way.
    """
    from omb_py.core.job.groups import GroupJob, parse_split
    from omb_py.measure.groups import GroupsMeasurement

    options, job, kind = context.options, context.job, GroupsMeasurement
    if options.congestor is not None:
        from omb_py.measure.congestion import CongestionMeasurement

        kind = CongestionMeasurement
    group = GroupJob(job, parse_split(options.split or ""))
    job.at_end(group.free)
    binding: Binding = BINDINGS.load(options.binding)(group.communicator, options)
    job.at_end(binding.close)
    return kind(context, binding, group)


BINDING_OPTIONS = ("backend", "interface")
"""Options that only some bindings have a use for."""


def check_binding_options(options: Options, bindings: Sequence[str]) -> None:
    """Raise `UsageError` for an option that none of these bindings uses."""
    given = [name for name in BINDING_OPTIONS if getattr(options, name) is not None]
    known: set[str] = set()
    for one in bindings if given else ():
        with suppress(OmbError):  # one that cannot be here is refused, or left out, when it is made
            known.update(BINDINGS.load(one).own_options)
    for name in given:
        if name not in known:
            raise UsageError(
                f"--{name.replace('_', '-')} has no meaning for binding {', '.join(bindings)}: "
                "leave it out, or choose another binding"
            )


def labelled(options: Options) -> Options:
    """Return the options with the binding's backend as their label, unless they have one.

    The label distinguishes results. A network interface is a property of the machine, not of the
    measurement.
    """
    if options.variant is not None or options.backend is None:
        return options
    return replace(options, variant=f"backend {options.backend}")


def prepare_buffer(options: Options, local_rank: int) -> tuple[Buffer | None, OmbError | None]:
    """Return the buffer, its device chosen; or the error of this rank."""
    try:
        buffer: Buffer = BUFFERS.load(options.buffer)
        return buffer.prepare(local_rank, options.devices), None
    except OmbError as error:
        return None, error


def choose_device_again(options: Options, job: Job) -> Buffer:
    """Return the buffer on the device of this rank's turn, by MPI's ranks; collective."""
    job.note(
        "the launcher sets no local ranks, so devices are chosen after the start of MPI, which "
        "can cost Open MPI its direct copies: set OMB_PY_LOCAL_RANK for each rank"
    )
    again, failure = prepare_buffer(options, job.on_host().rank)
    job.agree(failure)
    assert again is not None
    return again


def measure_in_program(
    benchmark: Benchmark,
    options: Options,
    more_writers: Callable[[], Sequence[Writer[Any]]] = tuple,
) -> tuple[list[dict[str, Any]] | None, dict[str, dict[str, str]]]:
    """Return a benchmark's rows and their runs' metadata on rank 0, None elsewhere; collective.

    Raises what a measurement does, and `UsageError` for what gives no rows here.
    """
    from omb_py.results.writer import Collector

    with failing_together():
        if not benchmark.planned:
            over = "the start of a job, which is over" if benchmark.start_up else "ranks that fail"
            raise UsageError(f"{benchmark.name} measures {over}: run it alone")
    options = replace(options, quiet=True, format="csv")
    collector = Collector()
    with mpi_left_started(options.thread_level), same_environment():
        if options.session:  # ranks without it would not come where the others open it
            launched = {"benchmark": (benchmark.name,), **alike(options)}
            plain = replace(options, session=False)
            _job(plain, Stages(), guest=True).start_together(None, launched)
        with launch(benchmark, options, True, lambda: [collector, *more_writers()]) as context:
            measurement(context).run()
    return (collector.rows, collector.runs) if context.job.rank == 0 else (None, {})


@contextmanager
def failing_together() -> Iterator[None]:
    """Make an error of this rank in the block one of all ranks, once they start in `start_job`."""
    try:
        yield
    except OmbError as error:
        if launcher.is_alone():
            raise
        with mpi_left_started(Options.thread_level):
            _job(Options(), Stages(), guest=True).start_together(error, None)


@contextmanager
def mpi_left_started(thread_level: str) -> Iterator[None]:
    """Leave MPI as mpi4py has it after its import: started, and ended with the program."""
    library = mpi.load()
    started = library.Is_initialized()
    try:
        yield
    finally:
        if not started:
            mpi.initialize(thread_level)
            atexit.register(finalize)


@contextmanager
def same_environment() -> Iterator[None]:
    """Restore the environment variables, but for those with which MPI was started."""
    from omb_py.measure.library_algorithm import STARTED_WITH

    before = dict(os.environ)
    try:
        yield
    finally:
        for name in os.environ.keys() - before.keys() - STARTED_WITH - mpi.THROTTLE.keys():
            del os.environ[name]
        os.environ.update(before)


def finalize() -> None:
    """Finalize MPI at the end of the program, unless the program has done so."""
    from mpi4py import MPI

    if not MPI.Is_finalized():
        MPI.Finalize()

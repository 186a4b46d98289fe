"""A run from top to bottom: check, look at the hosts, measure each case, say what was left out."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from omb_py.benchmarks import Benchmark, Case
from omb_py.bindings import BINDINGS, Binding
from omb_py.core import BEGAN
from omb_py.core.dataclass import dataclass
from omb_py.core.datatypes import Datatype
from omb_py.core.errors import LeftOutError, MissingError, SharedError, UnsupportedError
from omb_py.core.job import Node
from omb_py.core.mpi.startup_timer import seconds_before
from omb_py.core.options import VARIED_WINDOWS, Options
from omb_py.measure import devices
from omb_py.measure.adapted import adapted, check_binding_options
from omb_py.measure.conditions import examine, tick
from omb_py.measure.host_load import HostLoad
from omb_py.measure.launch import Launch
from omb_py.measure.measurement import Kind, Measurement
from omb_py.measure.sizes import Sizes, sizes_by_type
from omb_py.measure.writers import finish_writers, start_writers, takes_metadata
from omb_py.results.writer import Writer

MakeKind: TypeAlias = Callable[[Launch, Benchmark, Options], Kind]
"""Makes the kind of measurement of a benchmark, its bindings made; collective."""

MakeWriters: TypeAlias = Callable[[], Sequence[Writer[Any]]]


def run(
    launch: Launch,
    benchmark: Benchmark,
    options: Options,
    more_writers: MakeWriters = tuple,
    command: str | None = None,
    kind_of: MakeKind | None = None,
) -> None:
    """Measure a benchmark in a launch; collective over its job.

    ``more_writers`` makes writers on rank 0 besides those that the options name; ``command`` is the
    command line that measures this benchmark alone, if it is one of several of the launch;
    ``kind_of`` makes another kind of measurement than the options ask for. Raises `UsageError` or
    `SharedError` on all ranks when it cannot go on; rows written before stay.
    """
    options = adapted(benchmark.name, options, launch)
    if benchmark.recovery is not None:
        from omb_py.measure.recovery import RecoveryMeasurement

        RecoveryMeasurement(launch, benchmark, options, more_writers).run()
    elif benchmark.start_up is not None:
        from omb_py.measure.startup import write_start_up

        write_start_up(launch, benchmark, options, more_writers)
    else:
        kind = (kind_of or kind_of_options)(launch, benchmark, options)
        try:
            measure(kind, more_writers, command)
        except SharedError:  # of all ranks: rows so far stay, and what belongs to them
            kind.finish()
            raise
        kind.finish()


def kind_of_options(launch: Launch, benchmark: Benchmark, options: Options) -> Kind:
    """Return the kind of measurement that the options ask for; collective.

    Raises `UsageError` if the ranks cannot be divided as they say, or the binding lacks an option.
    """
    check_binding_options(options, (options.binding,))
    if options.congestor is not None:
        from omb_py.measure.congestion import kind_of_congestion

        return kind_of_congestion(launch, benchmark, options)
    if options.split is not None:
        from omb_py.measure.groups import kind_of_groups

        return kind_of_groups(launch, benchmark, options)
    from omb_py.measure.benchmark import OneBinding

    binding: Binding = BINDINGS.load(options.binding)(launch.job.communicator, options)
    launch.job.at_end(binding.close)
    return OneBinding(Measurement(launch, benchmark, options, [binding])).kind()


def measure(kind: Kind, more_writers: MakeWriters, command: str | None) -> None:
    """Measure all element types and message sizes; collective, raises like `run`."""
    measurement = kind.measurement
    job, group, options = measurement.job, measurement.group, measurement.options
    # all ranks make all calls that are given the job, the group, the measurement or its kind, in
    # this order; notes, metadata and writers are rank 0's
    (kind.get_ready or measurement.get_ready)()
    sizes = (
        kind.sizes()
        if kind.sizes
        else sizes_by_type(
            measurement.benchmark,
            options,
            measurement.datatypes,
            kind.largest_group or group.ranks,
        )
    )
    left_out = [*dict.fromkeys(words for one in sizes.values() for words in one.left_out)]
    hosts = look_at_hosts(measurement, sizes)
    if job.guest:  # a program gets the rows that there are
        job.note(*(f"left out {words}" for words in left_out))
        left_out = []
    measurement.writers = start_writers(
        measurement.launch,
        options,
        measurement.run_name,
        hosts.nodes,
        lambda: [*kind.writers(), *more_writers()],
        measurement.bindings,
        hosts.metadata | ({} if command is None else {"command": command}) | kind.metadata(),
    )
    kind.prepare()
    if options.sync == "clock":
        from omb_py.core.mpi.clock import SharedClock

        measurement.clock = SharedClock(group.comm_for("--sync clock"))
    # processes that the benchmark starts are no others
    alone = "spawned" not in measurement.benchmark.options
    host_load = HostLoad(job, hosts.threads) if alone else None
    try:
        with measurement.stops:
            left_out += measure_types(kind, sizes)
    except SharedError:  # of all ranks, so that they free together what MPI made
        measurement.close()
        raise
    own_launch = not job.guest and command is None
    costs = durations(measurement.iterating_seconds, own_launch) if job.rank == 0 else {}
    load, busy = host_load.finish() if host_load else ({}, None)
    from omb_py.measure import transport  # loaded by each rank, and not before it is timed

    transported, surprise = transport.used(job, takes_metadata(options))
    measurement.close()
    metadata = load | costs | transported
    finish_writers(job, measurement.writers, measurement.run_name, metadata)
    job.note(busy, surprise)
    if measurement.clock is not None:
        measurement.clock.free()
    measurement.note_clock()
    if left_out:
        raise SharedError(f"left out {'; and '.join(left_out)}", LeftOutError.exit_code)


def measure_types(kind: Kind, sizes: dict[Datatype, Sizes]) -> list[str]:
    """Measure each element type, size and window; return words for those that were left out.

    Collective. An element type of several that is not supported is left out; raises `SharedError`
    if none is supported, or when the run cannot go on.
    """
    measurement, options = kind.measurement, kind.measurement.options
    sized = measurement.benchmark.sized
    windows = VARIED_WINDOWS if options.vary_window else (options.window,)
    measurable = {datatype: found for datatype, found in sizes.items() if found.sizes}
    sizes_left_out: dict[int, str] = {}
    types_left_out: dict[str, str] = {}
    for datatype, found in measurable.items():
        for writer in measurement.writers:
            writer.section(datatype if sized else None)
        try:
            (kind.begin_type or measurement.begin_type)(datatype)
            for size in found.sizes:
                for window in windows:
                    case = measurement.case(datatype, size, window)
                    if (why := measure_or_leave_out(kind, case)) is not None:
                        sizes_left_out.setdefault(size, why)
        except SharedError as error:
            if error.exit_code not in (UnsupportedError.exit_code, MissingError.exit_code):
                raise
            types_left_out[datatype.name] = str(error)
            if len(types_left_out) == len(measurable):
                first = next(iter(types_left_out.values()))
                raise SharedError(first, error.exit_code) from error
            measurement.release()
    words = []
    if sizes_left_out:
        listed = ", ".join(map(str, sizes_left_out))
        what = f"messages of {listed} bytes" if sized else "what was requested"
        words.append(f"{what}: {next(iter(sizes_left_out.values()))}")
    if types_left_out:
        what = "type" if len(types_left_out) == 1 else "types"
        words.append(f"{what} {', '.join(types_left_out)}: {next(iter(types_left_out.values()))}")
    return words


def measure_or_leave_out(kind: Kind, case: Case) -> str | None:
    """Measure a case; return why if others can be measured, but not this one; collective."""
    measurement = kind.measurement
    measurement.launch.progress(f"measuring {measurement.where(case)}")
    why = None
    try:
        kind.measure_case(case)
    except SharedError as error:
        if error.exit_code != LeftOutError.exit_code:
            raise
        why = str(error)
    measurement.release()
    return why


@dataclass(frozen=True)
class Hosts:
    """The nodes of a job, metadata on them, and the threads of all ranks together, if several."""

    nodes: list[Node]
    metadata: dict[str, str]
    threads: int


def look_at_hosts(measurement: Measurement, sizes: dict[Datatype, Sizes]) -> Hosts:
    """Return what hosts are like before the first case, and note what may disturb; collective."""
    job, options = measurement.job, measurement.options
    threads, own_threads = 0, 1
    if "threads" in measurement.benchmark.options:
        threads = options.threads[0] + options.threads[1] * (job.ranks - 1)
        own_threads = options.threads[min(job.rank, 1)]
    device = measurement.launch.buffer.device
    host = examine(job, devices.word(device), device.identity if device else "", own_threads)
    unused = None
    if options.validate and options.sync == "clock":
        unused = "--sync clock has no effect with -c, which keeps ranks together by barriers"
    begins = dict.fromkeys(found.note for found in sizes.values())
    oversubscription = job.oversubscription(host.nodes, threads)
    job.note(*begins, unused, oversubscription, devices.sharing(host.nodes), *host.notes)
    metadata = dict(host.metadata)
    if measurement.group.rank == 0:  # which has the samples of all ranks, to compare it with
        measurement.tick = tick()
    if measurement.tick:
        metadata["clock_tick_ns"] = f"{measurement.tick * 1e9:.0f}"
    return Hosts(host.nodes, metadata, threads)


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

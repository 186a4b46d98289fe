"""The start of the job, as it was timed while it happened: combine the ranks, write the rows."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any

from omb_py.benchmarks import Benchmark, StartUp
from omb_py.core import BEGAN, BEGAN_CPU
from omb_py.core.mpi.startup_timer import (
    INIT,
    INTERPRETER,
    PARTS,
    SESSION,
    TOTAL,
    Stages,
    seconds_before,
)
from omb_py.core.options import Options
from omb_py.measure import devices
from omb_py.measure.launch import Launch
from omb_py.measure.measurement import check_ranks
from omb_py.measure.rows import MICROSECONDS, make_unplanned_row
from omb_py.measure.writers import start_writers
from omb_py.results.columns import new_run
from omb_py.results.destinations import benchmark_writers
from omb_py.results.writer import Writer


def write_start_up(
    launch: Launch,
    benchmark: Benchmark,
    options: Options,
    more_writers: Callable[[], Sequence[Writer[Any]]],
) -> None:
    """Write what the start of this job was, which is over already; collective.

    Raises `UsageError` or `SharedError` on all ranks when it cannot be written.
    """
    job, device, measured = launch.job, launch.buffer.device, benchmark.start_up
    assert measured is not None
    check_ranks(benchmark, options, job)
    devices.check_host_only(options, device)
    parts = measured_parts(launch.stages, measured)
    mine = array("d", parts.values())
    spread = job.mean(mine), job.reduce(mine, "min"), job.reduce(mine, "max")
    nodes = job.nodes(devices.word(device))
    job.note(job.oversubscription(nodes), _unknown(measured))
    run = new_run()
    writers = start_writers(
        launch,
        options,
        run,
        nodes,
        lambda: [*benchmark_writers(benchmark, options), *more_writers()],
    )
    with job.agreement():
        for writer in writers:
            writer.section(None)
            for part, values in zip(parts, zip(*spread, strict=True), strict=True):
                mean, lowest, highest = (seconds * MICROSECONDS for seconds in values)
                found = {
                    "latency_us": mean,
                    "latency_min_us": lowest,
                    "latency_max_us": highest,
                }
                writer.row(make_unplanned_row(run, benchmark, options, part, job.ranks, **found))
            writer.finish()


def measured_parts(stages: Stages, measured: StartUp) -> dict[str, float]:
    """Return the seconds of the requested parts, in the order of `PARTS`."""
    if measured is StartUp.INIT:
        name = SESSION if SESSION in stages.seconds else INIT
        return {name: stages.seconds[name]}
    seconds, before = stages.seconds, seconds_before(BEGAN, BEGAN_CPU)
    if before is not None:
        seconds = {INTERPRETER: before} | seconds
    parts = {name: seconds[name] for name in PARTS if name in seconds}
    total = {TOTAL: sum(parts.values())}
    return total if measured is StartUp.HELLO else parts | total


def _unknown(measured: StartUp) -> str | None:
    """Return a sentence on what this system does not report, if it is requested."""
    if measured is StartUp.INIT or seconds_before(BEGAN, BEGAN_CPU) is not None:
        return None
    return "this system does not report when a process was started: times begin with omb-py's own"

"""The start of the job, as it was timed while it happened: combine the ranks, write the rows."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import partial
from typing import Any

from omb_py.benchmarks import StartUp
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
from omb_py.measure import devices
from omb_py.measure.measurement import RunContext, check_ranks
from omb_py.measure.rows import MICROSECONDS, make_unplanned_row
from omb_py.measure.writers import start_writers
from omb_py.results.columns import Row, new_run
from omb_py.results.output import benchmark_writers


class StartUpMeasurement:
    """The start of this job, which is over already."""

    def __init__(self, context: RunContext, measured: StartUp) -> None:
        self._context = context
        self._measured = measured

    def run(self) -> None:
        """Write what the start of this job was; collective.

        Raises `UsageError` or `SharedError` on all ranks when it cannot be written.
        """
        context, measured = self._context, self._measured
        job, options = context.job, context.options
        check_ranks(context.benchmark, options, job)
        devices.check_host_only(options, context.buffer.device)
        parts = measured_parts(context.stages, measured)
        mine = array("d", parts.values())
        spread = job.mean(mine), job.reduce(mine, "min"), job.reduce(mine, "max")
        nodes = job.nodes(devices.word(context.buffer.device))
        job.note(job.oversubscription(nodes), _unknown(measured))
        run = new_run()
        opened = partial(benchmark_writers, context.benchmark, options)
        writers = start_writers(context, run, nodes, opened)
        with job.agreement():
            for writer in writers:
                writer.section(None)
                for name, values in zip(parts, zip(*spread, strict=True), strict=True):
                    writer.row(_row(context, run, name, values))
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


def _row(context: RunContext, run: str, part: str, spread: Sequence[float]) -> Row:
    """Return the row of a part, from its mean, least and greatest seconds over the ranks."""
    names = ("latency_us", "latency_min_us", "latency_max_us")
    values = (seconds * MICROSECONDS for seconds in spread)
    found: dict[str, Any] = dict(zip(names, values, strict=True))
    benchmark, options = context.benchmark, context.options
    return make_unplanned_row(run, benchmark, options, part, context.job.ranks, **found)

"""Measuring inside somebody's program: their MPI, their ranks, and control comes back."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from omb_py.benchmarks import Benchmark
from omb_py.core import mpi
from omb_py.core.dataclass import replace
from omb_py.core.errors import UsageError
from omb_py.core.options import Options
from omb_py.measure.launch import launch, measurement
from omb_py.results.writer import Collector, Writer

if TYPE_CHECKING:
    from omb_py.measure.progress import Display


def measure(
    benchmark: Benchmark,
    options: Options,
    more_writers: Callable[[], Sequence[Writer[Any]]] = tuple,
    display: Display | None = None,
) -> tuple[list[dict[str, Any]] | None, dict[str, dict[str, str]]]:
    """The rows of a benchmark and their runs' metadata on rank 0, None elsewhere; collective.

    ``display`` is as in `launch`. Raises what a measurement does, and `UsageError` for what gives
    no rows here.
    """
    if not benchmark.planned:
        over = "the start of a job, which is over" if benchmark.start_up else "ranks that fail"
        raise UsageError(f"{benchmark.name} measures {over}: run it alone")
    if options.verify_algorithm:
        raise UsageError("--verify-algorithm counts messages and gives no rows: run it alone")
    options = replace(options, quiet=True, format="csv")
    collector = Collector()
    started = mpi.load().Is_initialized()
    writers = partial(_with_collector, collector, more_writers)
    with launch(benchmark, options, True, writers, display) as context:
        measurement(context).run()
    if not started:
        atexit.register(finalize)
    return (collector.rows, collector.runs) if context.job.rank == 0 else (None, {})


def _with_collector(
    collector: Collector, more_writers: Callable[[], Sequence[Writer[Any]]]
) -> list[Writer[Any]]:
    return [collector, *more_writers()]


def finalize() -> None:
    """End MPI, unless somebody else has."""
    from mpi4py import MPI

    if not MPI.Is_finalized():
        MPI.Finalize()

"""Measuring inside a user's program: its MPI, its ranks, and control comes back.

The program goes on as it was. Only ``--coll-algorithm`` lasts: the MPI library reads it once.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from omb_py.benchmarks import Benchmark
from omb_py.core import mpi
from omb_py.core.dataclass import replace
from omb_py.core.errors import UsageError
from omb_py.core.options import Options
from omb_py.measure.launch import launch, measurement
from omb_py.measure.library_algorithm import STARTED_WITH
from omb_py.results.writer import Collector, Writer


def measure(
    benchmark: Benchmark,
    options: Options,
    more_writers: Callable[[], Sequence[Writer[Any]]] = tuple,
) -> tuple[list[dict[str, Any]] | None, dict[str, dict[str, str]]]:
    """Return a benchmark's rows and their runs' metadata on rank 0, None elsewhere; collective.

    Raises what a measurement does, and `UsageError` for what gives no rows here.
    """
    if not benchmark.planned:
        over = "the start of a job, which is over" if benchmark.start_up else "ranks that fail"
        raise UsageError(f"{benchmark.name} measures {over}: run it alone")
    options = replace(options, quiet=True, format="csv")
    collector = Collector()
    with (
        mpi_left_started(options.thread_level),
        same_environment(),
        launch(benchmark, options, True, lambda: [collector, *more_writers()]) as context,
    ):
        measurement(context).run()
    return (collector.rows, collector.runs) if context.job.rank == 0 else (None, {})


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
    before = dict(os.environ)
    try:
        yield
    finally:
        for name in os.environ.keys() - before.keys() - STARTED_WITH:
            del os.environ[name]
        os.environ.update(before)


def finalize() -> None:
    """Finalize MPI at the end of the program, unless the program has done so."""
    from mpi4py import MPI

    if not MPI.Is_finalized():
        MPI.Finalize()

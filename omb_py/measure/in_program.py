"""A benchmark inside a user's program: MPI and the program are left as they were.

Only ``--coll-algorithm`` lasts: the MPI library reads it once.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from omb_py.benchmarks import Benchmark
from omb_py.core import mpi
from omb_py.core.dataclass import replace
from omb_py.core.errors import OmbError, UsageError
from omb_py.core.mpi import launcher
from omb_py.core.options import Options
from omb_py.measure.launch import launch, start
from omb_py.measure.run import run
from omb_py.results.writer import Collector, Writer


def measure_in_program(
    benchmark: Benchmark,
    options: Options,
    given: Mapping[str, tuple[object, ...]],
    more_writers: Callable[[], Sequence[Writer[Any]]] = tuple,
) -> tuple[list[dict[str, Any]] | None, dict[str, dict[str, str]]]:
    """Return a benchmark's rows and their runs' metadata on rank 0, None elsewhere; collective.

    All ranks must have been ``given`` the same values, by the names of options. Raises what a
    measurement does, and `UsageError` for what gives no rows here.
    """
    with failing_together():
        if not benchmark.planned:
            over = "the start of a job, which is over" if benchmark.start_up else "ranks that fail"
            raise UsageError(f"{benchmark.name} measures {over}: run it alone")
    options = replace(options, quiet=True, format="csv")
    collector = Collector()
    with mpi_left_started(options.thread_level), same_environment():
        if options.session:  # ranks without it would not come where the others open it
            plain = replace(options, session=False)
            job = start(plain, in_program=True)
            job.start_together(None, {"benchmark": (benchmark.name,), **given})
        with launch(benchmark.name, options, given, in_program=True) as launched:
            run(launched, benchmark, options, lambda: [collector, *more_writers()])
    return (collector.rows, collector.runs) if launched.job.rank == 0 else (None, {})


@contextmanager
def failing_together() -> Iterator[None]:
    """Make an error of this rank in the block one of all ranks, once they start in `launch`."""
    try:
        yield
    except OmbError as error:
        if launcher.is_alone():
            raise
        with mpi_left_started(Options.thread_level):
            start(Options(), in_program=True).start_together(error, None)


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

"""Measuring inside somebody's program: their MPI, their ranks, and control comes back."""

from __future__ import annotations

import atexit
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from omb_py.benchmarks import find_benchmark
from omb_py.bindings import BINDINGS
from omb_py.cli.benchmark import in_job
from omb_py.core import mpi
from omb_py.core.errors import UsageError
from omb_py.measure.runner import Run
from omb_py.options.parse import parse, words_of
from omb_py.results.row import Row
from omb_py.results.writer import Collector, Writer

if TYPE_CHECKING:
    from omb_py.measure.walk import Setting


class CollectedRun(Run):
    """A run that writes to memory besides what its options ask for."""

    collector: Collector | None = None

    def open_writers(self) -> list[Writer[Row]]:
        self.collector = Collector()
        return [self.collector, *super().open_writers()]


def measured(
    benchmark: str, options: Mapping[str, Any]
) -> tuple[list[dict[str, Any]] | None, dict[str, dict[str, str]]]:
    """The rows of a benchmark and their runs' metadata on rank 0, None elsewhere; collective.

    Raises `UsageError` for options that do not exist or exclude each other, and what a run does.
    """
    found = find_benchmark(benchmark)
    if found.start_up is not None:
        raise UsageError(f"{found.name} measures the start of a job, which is over: run it alone")
    chosen = parse(found, words_of(found, options))
    chosen = replace(chosen, quiet=True, format="csv")
    runs: list[CollectedRun] = []

    def measure(setting: Setting) -> None:
        binding = BINDINGS.load(chosen.binding)(setting.job.comm, chosen)
        runs.append(CollectedRun(setting, binding))
        runs[0].measure()

    started = mpi.load().Is_initialized()
    in_job(found, chosen, measure, guest=True)
    if not started:
        atexit.register(finalize)
    collector = runs[0].collector
    return (None, {}) if collector is None else (collector.rows, collector.runs)


def finalize() -> None:
    """End MPI, unless somebody else has."""
    from mpi4py import MPI

    if not MPI.Is_finalized():
        MPI.Finalize()

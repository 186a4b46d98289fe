"""One click command per benchmark, made from the benchmark's definition."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from omb_py.benchmarks import LARGE_MESSAGE_BYTES, Benchmark
from omb_py.cli.help import GroupedCommand
from omb_py.measure.launch import launch, measurement
from omb_py.options.parse import make_options
from omb_py.options.table import parameters

if TYPE_CHECKING:
    from omb_py.core.options import Options
    from omb_py.results.writer import Writer

CONTEXT = {"help_option_names": ["-h", "--help"], "show_default": True}


def benchmark_command(benchmark: Benchmark, native: bool = False) -> click.Command:
    """Return the command of ``benchmark``; with all options of the ``native`` program."""
    if native:
        from omb_py.options import native as programs

        native = programs.has_program(benchmark)
    if native:
        benchmark = programs.begun_as_native(benchmark)
    params = programs.program_parameters(benchmark) if native else parameters(benchmark)
    takes_any_option = native and benchmark.start_up is not None

    def callback(**values: Any) -> None:
        options = make_options(programs.translated(values) if native else values)
        with launch(benchmark, options, more_writers=partial(graph_writers, options)) as context:
            measurement(context).run()

    return GroupedCommand(
        benchmark.name,
        callback=callback,
        params=params,
        short_help=benchmark.summary,
        help=describe(benchmark, f"osu_{benchmark.name}" if native else f"omb-py {benchmark.name}"),
        context_settings=CONTEXT | {"ignore_unknown_options": takes_any_option},
    )


def graph_writers(options: Options) -> list[Writer[Any]]:
    """Return the writers of ``-G``'s figures; raises `MissingPackageError` without their
    packages."""
    if not options.graph:
        return []
    from omb_py.analysis.charts.live import GraphWriter

    return [GraphWriter(options.graph, options.force)]


def describe(benchmark: Benchmark, program: str) -> str:
    """Return the help of a benchmark before the options; ``program`` is the program of the
    ranks."""
    defaults = benchmark.defaults
    text = f"{benchmark.summary}\n\nRuns on {benchmark.ranks.value}: mpiexec -n N {program}"
    if benchmark.start_up is not None:
        return f"{text}\n\nEach rank starts once and is one sample."
    text += f"\n\nBy default {defaults.iterations} iterations after {defaults.warmup} for warm-up"
    if not benchmark.sized:
        return f"{text}."
    return (
        f"{text}, above {LARGE_MESSAGE_BYTES} bytes {defaults.large_iterations} after "
        f"{defaults.large_warmup}; messages of {defaults.smallest} to {defaults.largest} bytes."
    )

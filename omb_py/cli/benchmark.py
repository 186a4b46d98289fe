"""One click command per benchmark and per application, made from its definition."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click

from omb_py.benchmarks import LARGE_MESSAGE_BYTES, Benchmark, StartUp
from omb_py.cli.help import GroupedCommand
from omb_py.core.errors import MissingPackageError, OmbError, installing
from omb_py.core.mpi import launcher
from omb_py.measure.launch import launch
from omb_py.measure.run import run
from omb_py.options.parse import make_options
from omb_py.options.table import alike, parameters
from omb_py.results.writer import Collector

if TYPE_CHECKING:
    from omb_py.apps import Application
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
        time_numpy = benchmark.start_up is StartUp.PARTS
        with launch(benchmark.name, options, alike(options), time_numpy=time_numpy) as launched:
            run(launched, benchmark, options, partial(graph_writers, options))

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
    return [GraphWriter(options.graph, options.force)]


def application_command(application: Application[Any]) -> click.Command:
    """Make the command that measures an application, with the options that it declares."""
    from dataclasses import replace

    from omb_py.apps.runtime import math_threads
    from omb_py.measure.adapted import check_binding_options, labelled
    from omb_py.options.application import application_parameters, make_request

    def callback(**values: Any) -> None:
        request = make_request(application, values)
        request = replace(request, options=labelled(request.options))
        math_threads.request_threads(request.settings.threads)
        chosen = vars(request.problem) | vars(request.settings)
        given = {f"--{name.replace('_', '-')}": (value,) for name, value in chosen.items()}
        with launch(application.name, request.options, alike(request.options) | given) as launched:
            from omb_py.apps.runtime.measurement import measure

            with launched.job.agreement():
                check_binding_options(request.options, (request.options.binding,))
            measure(launched, request, partial(graph_writers, request.options))

    text = f"{application.summary}\n\n{application.details}".strip()
    parameters = application_parameters(application)
    arguments = [one.human_readable_name for one in parameters if isinstance(one, click.Argument)]
    example = " ".join(["mpiexec -n N omb-py", application.name, *arguments])
    return GroupedCommand(
        application.name,
        callback=callback,
        params=parameters,
        short_help=application.summary,
        help=f"{text}\n\n{example}",
        context_settings=CONTEXT,
    )


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


PACKAGES = ("pandas", "altair", "vl_convert", "plotext")


class GraphWriter(Collector):
    """Drawing of ``-G``'s figures on rank 0 at the end; drawing libraries are loaded only then."""

    def __init__(self, graphs: tuple[str, ...], force: bool = False) -> None:
        """Raise `MissingPackageError` if a package that draws ``graphs`` is not installed."""
        super().__init__()
        self._graphs, self._force = graphs, force
        for package in PACKAGES:
            if find_spec(package) is None:
                raise MissingPackageError("-G", package, installing("analysis"))

    def finish(self) -> None:
        from omb_py.analysis.charts import figures, terminal
        from omb_py.analysis.table import of_rows

        results = of_rows(self.rows, self.runs)
        try:
            charts = figures.charts(results, figures.requested())
            images = [graph for graph in self._graphs if graph != "tty"]
            for path in figures.write(charts, None, images, force=self._force) if images else ():
                launcher.note(f"drew {path}", rank=0)
            for chart in charts.values() if "tty" in self._graphs else ():
                # some launchers give ranks a terminal of their own, whatever the user has
                print(f"\n{terminal.text(chart, terminal.WIDTH, terminal.HEIGHT)}", flush=True)
        except OmbError as error:  # no reason to call what was measured a failure
            launcher.note(f"-G: {error}", rank=0)

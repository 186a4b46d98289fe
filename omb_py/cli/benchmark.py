"""One click command per benchmark, made from what the benchmark says of itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from omb_py.benchmarks import LARGE_MESSAGE_BYTES, Benchmark, StartUp
from omb_py.bindings import BINDINGS
from omb_py.cli.launched import launched
from omb_py.core.datatypes import find_types
from omb_py.core.memory import Place
from omb_py.core.mpi.startup_timer import Stages
from omb_py.core.options import Options
from omb_py.options.parse import OptionsCommand, make_options
from omb_py.options.table import parameters

if TYPE_CHECKING:
    from omb_py.measure.walk import Setting

CONTEXT = {"help_option_names": ["-h", "--help"], "show_default": True}


def benchmark_command(benchmark: Benchmark) -> click.Command:
    """The command that measures ``benchmark``."""

    def callback(**values: Any) -> None:
        options = make_options(values)

        def measure(setting: Setting) -> None:
            if benchmark.start_up is not None:
                from omb_py.measure.startup import report

                report(setting, benchmark.start_up)
                return
            binding = BINDINGS.load(options.binding)(setting.job.comm, options)
            if options.verify_algorithm:
                from omb_py.measure.proof import Proof

                Proof(setting, binding).measure()
                return
            from omb_py.measure.runner import Run

            Run(setting, binding).measure()

        in_job(benchmark, options, measure)

    return OptionsCommand(
        benchmark.name,
        callback=callback,
        params=parameters(benchmark),
        short_help=benchmark.summary,
        help=describe(benchmark),
        context_settings=CONTEXT,
    )


def describe(benchmark: Benchmark) -> str:
    """What the help of a benchmark says before the options."""
    defaults = benchmark.defaults
    text = (
        f"{benchmark.summary}\n\nRuns on {benchmark.ranks.value}: mpiexec -n N omb-py "
        f"{benchmark.name}"
    )
    if benchmark.start_up is not None:
        return f"{text}\n\nEach rank starts once and is one sample."
    text += f"\n\nBy default {defaults.iterations} iterations after {defaults.warmup} for warm-up"
    if not benchmark.sized:
        return f"{text}."
    return (
        f"{text}, above {LARGE_MESSAGE_BYTES} bytes {defaults.large_iterations} after "
        f"{defaults.large_warmup}; messages of {defaults.smallest} to {defaults.largest} bytes."
    )


def in_job(
    benchmark: Benchmark,
    options: Options,
    action: Callable[[Setting], None],
    guest: bool = False,
) -> None:
    """Start MPI and do ``action``; the device, if any, is chosen before MPI is started.

    As a ``guest`` in somebody's program, MPI and the process go on, and errors are raised.
    """
    stages = stages_of(benchmark)
    default = "mpi_int" if benchmark.reduces else "mpi_char"
    datatypes = find_types(options.types or (default,))
    numpy_apart = benchmark.start_up is StartUp.PARTS
    with launched(benchmark.name, options, stages, guest, numpy_apart) as found:
        from omb_py.measure.walk import Setting

        chosen = options
        if options.window_kind is None:
            # what MPI allocates is on the host
            kind = "allocate" if found.buffer.device is None else "create"
            chosen = replace(chosen, window_kind=kind)
        if chosen.placement and found.buffer.device is None:
            chosen = replace(chosen, placement=())
            if {*options.placement} != {Place.HOST}:
                letters = " ".join(place.value for place in options.placement)
                found.job.note(
                    f"buffer {options.buffer} has no device: {letters} is measured as H H"
                )
        action(
            Setting(
                benchmark,
                chosen,
                datatypes,
                found.buffer,
                found.job,
                found.watchdog,
                found.device_first,
                stages,
            )
        )


def stages_of(benchmark: Benchmark) -> Stages:
    """What times the start; only where its parts are asked for are files looked at."""
    if benchmark.start_up is StartUp.PARTS:
        from omb_py.core import opened_files

        if opened_files.can_be_told():
            return Stages(watch=opened_files.opened)
    return Stages()

"""One click command per benchmark, made from what the benchmark says of itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from omb_py.benchmarks import LARGE_MESSAGE_BYTES, Benchmark, StartUp
from omb_py.bindings import BINDINGS
from omb_py.cli.attached import detach_values
from omb_py.cli.launched import launched
from omb_py.cli.options import options_of
from omb_py.core.datatypes import find_types
from omb_py.core.errors import UsageError
from omb_py.core.memory import Place
from omb_py.core.mpi import launcher
from omb_py.core.mpi.startup_timer import Stages
from omb_py.core.options import Options
from omb_py.results.output import check_output

if TYPE_CHECKING:
    from omb_py.measure.walk import Setting

CONTEXT = {"help_option_names": ["-h", "--help"], "show_default": True}


class BenchmarkCommand(click.Command):
    """A command whose ``-c`` and ``-z`` take a value only when it is attached."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with_value = {
            name[1]
            for parameter in self.params
            if isinstance(parameter, click.Option) and not parameter.is_flag
            for name in parameter.opts
            if len(name) == 2
        }
        return super().parse_args(ctx, detach_values(args, with_value.__contains__))


def benchmark_command(benchmark: Benchmark) -> click.Command:
    """The command that measures ``benchmark``."""

    def callback(**values: Any) -> None:
        options, debug = read_values(benchmark, values)

        def measure(setting: Setting) -> None:
            if benchmark.start_up is not None:
                from omb_py.measure.startup import report

                report(setting, benchmark.start_up)
                return
            binding = BINDINGS.load(options.binding)(setting.job.comm, options)
            if options.prove_algorithm:
                from omb_py.measure.proof import Proof

                Proof(setting, binding).measure()
                return
            from omb_py.measure.runner import Run

            Run(setting, binding).measure()

        in_job(benchmark, options, debug, measure)

    return BenchmarkCommand(
        benchmark.name,
        callback=callback,
        params=options_of(benchmark),
        short_help=benchmark.summary,
        help=describe(benchmark),
        context_settings=CONTEXT,
    )


def read_values(benchmark: Benchmark, values: dict[str, Any]) -> tuple[Options, bool]:
    """The options that click's values stand for, and whether to show tracebacks.

    Raises `UsageError` where two of them exclude each other; what has no effect gets a note.
    """
    debug = values.pop("debug")
    test_calls = values.pop("ignored_test_calls", None)
    options = make_options(values)
    if test_calls is not None:
        text = f"-t has no effect on {benchmark.name}, as in native OMB"
        launcher.note(text, launcher.rank())
    return options, debug


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


def make_options(values: dict[str, Any]) -> Options:
    """The options that click's values stand for.

    Raises `UsageError` where two of them exclude each other.
    """
    values = dict(values)
    smallest, largest = values.pop("message_size", None) or (None, None)
    log = values.pop("validation", None)
    warmup = values.pop("warmup", None)
    placement = tuple(Place(letters) for letters in values.pop("placement", ()))
    values["buffer_per_message"] = values.pop("buffer_num", "single") == "multiple"
    options = Options(
        smallest=smallest,
        largest=largest,
        validate=log is not None,
        validation_log=log or None,
        auto_warmup=warmup == "auto",
        warmup=None if warmup == "auto" else warmup,
        placement=placement,
        **values,
    )
    if options.sizes is not None and (smallest, largest) != (None, None):
        raise UsageError("--sizes and -m exclude each other: leave out one")
    if options.validate and not options.layout.contiguous:
        raise UsageError("-c and -D exclude each other, as in native OMB: leave out one")
    if options.precision is not None and options.iterations is not None:
        raise UsageError("--precision and -i exclude each other: limit it by --max-iterations")
    if options.max_iterations is not None and options.precision is None:
        raise UsageError("--max-iterations limits --precision: name one, or use -i")
    if options.validate and (options.precision, options.max_time) != (None, None):
        raise UsageError("-c and --precision or --max-time exclude each other: leave out one")
    if (options.algorithm, options.segment) != (None, None):
        from omb_py.benchmarks.algorithms import check

        check(options)
    if options.prove_algorithm and options.library_algorithm in (None, "default"):
        raise UsageError("--prove-algorithm proves what --library-algorithm names: name one")
    if options.prove_algorithm and options.output is not None:
        raise UsageError("--prove-algorithm times nothing that --output could keep: leave out one")
    if options.prove_algorithm and options.session:
        raise UsageError("--prove-algorithm cannot count messages in a session: leave out -I")
    if len(placement) not in (0, 2):
        raise UsageError("name both ends' memory, as in 'D D', or neither's")
    if placement and options.managed:
        raise UsageError("--managed and 'D D' exclude each other: managed memory is MD or MH")
    check_output(options.output, options.force)
    return options


def in_job(
    benchmark: Benchmark,
    options: Options,
    debug: bool,
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
    with launched(benchmark.name, options, debug, stages, guest, numpy_apart) as found:
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

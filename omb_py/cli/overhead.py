"""``omb-py overhead BENCHMARK``: the time that each binding adds to the native call."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from omb_py.benchmarks import Benchmark
from omb_py.bindings import BINDINGS, Binding, load_before_mpi
from omb_py.cli.benchmark import CONTEXT, graph_writers
from omb_py.cli.help import GroupedCommand
from omb_py.core.dataclass import replace
from omb_py.core.errors import OmbError, UsageError
from omb_py.core.mpi import launcher
from omb_py.core.options import Options
from omb_py.measure.launch import check_binding_options, launch
from omb_py.options.option import Row
from omb_py.options.parse import make_options
from omb_py.options.table import count, parameters

if TYPE_CHECKING:
    from omb_py.core.job import Job

DEFAULT_BINDINGS = ("native", "buffer", "pickle")
KNOWN_ORDER = ("native", "prebound", "buffer", "array", "persistent", "pickle", "pkl5")
"""The order of ``--bindings all``: the base of the comparison comes first."""

# fmt: off
COMPARED = (
    Row("--bindings", "NAME,…", None, "",
        "Bindings to compare, the first being the base, or all of omb-py's own; by default those "
        f"of {','.join(DEFAULT_BINDINGS)} that apply."),
    Row("--rounds", count(1), 30, "",
        "Turns of each binding; at least 6 for a confidence interval."),
)
# fmt: on


def overhead_command(benchmark: Benchmark) -> click.Command:
    """Return the command that compares bindings on ``benchmark``.

    Raises `UsageError` for one whose calls no binding makes.
    """
    if not benchmark.planned:
        raise UsageError(
            f"{benchmark.name} measures what passes through no binding, so there is nothing to "
            "compare: leave out overhead"
        )

    def callback(bindings: str | None, rounds: int, **values: Any) -> None:
        options = make_options(values)
        names = chosen(bindings)
        optional = bindings in (None, "all")
        load_before_mpi(names)
        if launcher.by_torchrun() and not any(BINDINGS.load(name).needs_mpi for name in names):
            options = replace(options, binding=names[0])
        writers = partial(graph_writers, options)
        compared = {
            "benchmark": f"overhead {benchmark.name}",
            "--bindings": names,
            "--rounds": rounds,
        }
        with launch(benchmark, options, more_writers=writers, more=compared) as context:
            from omb_py.measure.overhead import OverheadMeasurement

            members = load(names, context.job, options, optional)
            OverheadMeasurement(context, members, rounds, optional).run()

    return GroupedCommand(
        benchmark.name,
        callback=callback,
        params=[
            *(row.option("What is compared") for row in COMPARED),
            *parameters(benchmark, overhead=True),
        ],
        short_help=benchmark.summary,
        help=f"What each binding adds to {benchmark.name}, measured alternately in one job.\n\n"
        f"{benchmark.summary} -i and -x count each binding's iterations.",
        context_settings=CONTEXT,
    )


def chosen(text: str | None) -> tuple[str, ...]:
    """Return the bindings of ``--bindings``; raises `UsageError` for fewer than two."""
    if text is None:
        return DEFAULT_BINDINGS
    if text == "all":
        names = BINDINGS.builtin()
        return tuple(sorted(names, key=[*KNOWN_ORDER, *names].index))
    names_given = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    if len(names_given) < 2:
        raise UsageError("--bindings: name at least two, as in native,buffer")
    return names_given


def load(names: tuple[str, ...], job: Job, options: Options, optional: bool) -> list[Binding]:
    """Load the bindings called ``names``; ``optional`` ones that cannot be here get a note."""
    check_binding_options(options, names)
    found = []
    for name in names:
        try:
            with job.agreement():
                made = BINDINGS.load(name)
            # apart: making a binding can be collective, so that none begins unless all can
            with job.agreement():
                binding: Binding = made(job.communicator, options)
        except OmbError as error:
            if not optional:
                raise
            job.note(f"left out: {error}")
        else:
            job.at_end(binding.close)
            found.append(binding)
    return found

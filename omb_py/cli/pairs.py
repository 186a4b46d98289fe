"""``omb-py pairs [BENCHMARK]``: every pair of ranks, and which of them are slow."""

from __future__ import annotations

import sys
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import click

from omb_py.benchmarks import Benchmark, all_benchmarks, find_benchmark
from omb_py.cli.benchmark import CONTEXT, graph_writers
from omb_py.cli.help import GroupedCommand
from omb_py.core.dataclass import replace
from omb_py.core.errors import UsageError
from omb_py.measure.launch import launch
from omb_py.measure.pairs import (
    MOST_ROUNDS,
    UNITS,
    PairsRequest,
    for_pairs,
    has_pairs,
    kind_of_pairs,
)
from omb_py.measure.run import run
from omb_py.options.option import Row
from omb_py.options.parse import make_options
from omb_py.options.table import alike, count, parameters, shared_options

if TYPE_CHECKING:
    from omb_py.core.options import Options
    from omb_py.results.writer import Writer

DEFAULT = "latency"

# fmt: off
WHICH = (
    Row("--by", UNITS, "rank", "",
        "Measure every rank, or the first rank of each node, socket or device."),
    Row("--alone", bool, None, "", "Measure one pair at a time, with all other links idle."),
    Row("--rounds", count(1), None, "",
        f"Partners of each rank at most, evenly spread.  [default: all, up to {MOST_ROUNDS}]"),
    Row("--repeats", count(1), 3, "", "How often all pairs are measured; the median counts."),
)
WORST = Row("--worst", count(0), 10, "", "Slowest pairs to print at each size.")
# fmt: on


def names() -> list[str]:
    """Return the names of the benchmarks of two ranks."""
    return [one.name for one in all_benchmarks() if has_pairs(one)]


class PairCommands(click.Group):
    """One command for each benchmark of two ranks."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return names()

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        return pairs_command(find_benchmark(cmd_name))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        named = args and not args[0].startswith("-")
        if not named and not {"-h", "--help"} & set(args):
            self.check_order(pairs_command(find_benchmark(DEFAULT)), args)
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)

    def check_order(self, usual: click.Command, args: list[str]) -> None:
        """Raise `UsageError` if a benchmark is named behind an option that takes no value."""
        options = [one for one in usual.params if isinstance(one, click.Option)]
        flags = {name for one in options if one.is_flag for name in one.opts}
        for before, word in pairwise(args):
            if (before in flags or not before.startswith("-")) and word in names():
                others = [one for one in args if one != word]
                raise UsageError(
                    f"name the benchmark first: omb-py pairs {word} {' '.join(others)}"
                )


@click.group("pairs", cls=PairCommands, context_settings=CONTEXT)
def command() -> None:
    """Measure every pair of ranks: which link, host or rank is slow.

    \b
    mpiexec -n 64 omb-py pairs latency
    mpiexec -n 64 omb-py pairs bw --by node --output pairs.csv
    """


def pairs_command(benchmark: Benchmark) -> click.Command:
    """Return the command that measures ``benchmark`` on all pairs.

    Raises `UsageError` for one that is not of two ranks which send to each other.
    """
    if not has_pairs(benchmark):
        known = ", ".join(names())
        raise UsageError(f"{benchmark.name} is no benchmark of pairs: choose from {known}")
    changed = for_pairs(benchmark)
    usual = (changed.defaults.smallest, changed.defaults.largest)

    def callback(
        by: Any, alone: bool, rounds: int | None, repeats: int, worst: int, **values: Any
    ) -> None:
        options = make_options(values)
        if options.auto_warmup:
            raise UsageError("-x auto: ranks would decide pair by pair; name a number")
        if (options.sizes, options.smallest, options.largest) == (None, None, None):
            options = replace(options, sizes=usual)
        writers = partial(writers_of, benchmark.title, options, worst)
        given = alike(options) | {
            "benchmark": (f"pairs {changed.name}",),
            "--by": (by,),
            "--alone": (alone,),
            "--rounds": (rounds,),
            "--repeats": (repeats,),
        }
        kind_of = partial(kind_of_pairs, PairsRequest(by, alone, rounds, repeats))
        with launch(changed.name, options, given) as launched:
            run(launched, changed, options, writers, kind_of=kind_of)

    sizes = ", ".join(map(str, usual))
    return GroupedCommand(
        benchmark.name,
        callback=callback,
        params=[
            *(row.option("Which pairs") for row in WHICH),
            WORST.option("Output"),
            *shared_options("binding"),
            *parameters(changed, frozenset({"pairwise"})),
        ],
        short_help=benchmark.summary,
        help=f"{benchmark.title} of every pair of ranks, in rounds of disjoint pairs.\n\n"
        f"{benchmark.summary} Both directions of each pair, of messages of {sizes} bytes unless "
        "-m or --sizes say otherwise. Prints the slowest pairs and what they have in common.",
        context_settings=CONTEXT,
    )


def writers_of(title: str, options: Options, worst: int) -> list[Writer[Any]]:
    """Return writers of the text, unless it is suppressed, and of the figures of ``-G``."""
    drawing = graph_writers(options)
    if options.quiet or options.format != "text":
        return drawing
    from omb_py.analysis.pairs.findings import PairsWriter

    return [PairsWriter(sys.stdout, title, worst), *drawing]

"""``omb-py run``: several benchmarks in one launch."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from omb_py.benchmarks import Benchmark, Ranks, by_family, find_benchmark
from omb_py.bindings import load_before_mpi
from omb_py.cli.benchmark import CONTEXT, graph_writers
from omb_py.cli.help import GroupedCommand
from omb_py.core.dataclass import dataclass, replace
from omb_py.core.errors import UsageError
from omb_py.core.text import files
from omb_py.measure.launch import launch
from omb_py.measure.suite import (
    FAR,
    NEAR,
    Entry,
    odd_ranks,
    run_entries,
    summary_lines,
)
from omb_py.options.option import Option
from omb_py.options.parse import apart, long_words, make_options, named, reader
from omb_py.options.table import OF_A_LAUNCH, alike, common_parameters

if TYPE_CHECKING:
    from omb_py.core.options import Options

SUITES: dict[str, tuple[str, ...]] = {
    "pt2pt": ("point-to-point",),
    "collective": ("collective",),
    "nonblocking": ("non-blocking collective", "non-blocking neighborhood collective"),
    "persistent": (
        *("persistent point-to-point", "persistent collective"),
        "persistent neighborhood collective",
    ),
    "neighborhood": ("neighborhood collective",),
    "onesided": ("one-sided",),
    "partitioned": ("partitioned point-to-point",),
    "congestion": ("congestion",),
    "communicator": ("communicator",),
    "packing": ("packing",),
}
"""The families of benchmarks that a suite has, by its name."""

SUITE = "s:"
"""The prefix of a suite's name."""

ALL = "all"
"""The suite of all suites."""

OWN = ("entries", "pair", "odd", "scale", "summary")
"""Parameters of `omb-py run` that are no options of benchmarks."""

LAUNCH = "What is launched"


def members(word: str) -> list[Benchmark]:
    """Return the benchmarks of a suite, or one by its name; raises `UsageError` for others."""
    if not word.startswith(SUITE):
        return [find_benchmark(word)]
    name = word.removeprefix(SUITE)
    if name not in SUITES and name != ALL:
        known = ", ".join(f"{SUITE}{one}" for one in (*SUITES, ALL))
        raise UsageError(f"there is no suite {word}: choose from {known}")
    families = by_family()
    chosen = SUITES if name == ALL else {name: SUITES[name]}
    return [one for names in chosen.values() for family in names for one in families[family]]


@dataclass(frozen=True)
class CommonOptions:
    """The options of all benchmarks of a launch: all ``values``, and those ``given`` by the user.

    An option of a benchmark's own goes before. ``words`` are the options on the command line.
    """

    values: Mapping[str, Any]
    given: Mapping[str, Any]
    words: tuple[str, ...] = ()


def entries_of(text: str, common: CommonOptions) -> Iterator[Entry]:
    """Yield the entries of ``NAME OPTION…``, as after ``omb-py``; a suite has several.

    Raises `UsageError` for invalid options.
    """
    try:
        word, *words = shlex.split(text) or [""]
    except ValueError as error:
        raise UsageError(f"{text!r}: {error}") from error
    for benchmark in members(word):
        if not benchmark.planned:
            what = "starting a job" if benchmark.start_up else "jobs whose ranks fail"
            raise UsageError(f"{benchmark.name} measures {what}: run it alone")
        name = shlex.join([benchmark.name, *words])
        try:
            yield Entry(
                benchmark,
                options_of(benchmark, words, common),
                name,
                shlex.join(["omb-py", "run", *common.words, name]),
                suite=word if word.startswith(SUITE) else "",
            )
        except UsageError as error:
            raise UsageError(f"{name}: {error}") from error


def options_of(benchmark: Benchmark, words: Sequence[str], common: CommonOptions) -> Options:
    """Return the options of an entry; raises `UsageError` for one that it cannot have by itself."""
    command = reader(benchmark)
    try:
        context = command.make_context(command.name, list(words))
    except click.ClickException as error:
        raise UsageError(error.format_message()) from error
    own = given(context)
    for parameter in command.params:
        name, option = parameter.name, max(parameter.opts, key=len)
        if name in own and option in OF_A_LAUNCH and own[name] != common.values[name]:
            raise UsageError(
                f"all benchmarks of a launch have the same {option}: name it outside of the quotes"
            )
    shared = {name: value for name, value in common.given.items() if name in context.params}
    return make_options(context.params | shared | own)


def given(context: click.Context) -> dict[str, Any]:
    """Return the values that a command line names, by the names of parameters."""
    default = click.core.ParameterSource.DEFAULT
    return {
        name: value
        for name, value in context.params.items()
        if context.get_parameter_source(name) is not default
    }


def scaled(entries: Iterable[Entry], ranks: int) -> Iterator[Entry]:
    """Yield each entry on 2, 4, 8 … ranks, and on all; those of two ranks, once."""
    for entry in entries:
        if entry.benchmark.ranks is not Ranks.TWO:
            number = 2
            while number < ranks:
                yield replace(entry, first_ranks=number)
                number *= 2
        yield entry


def on_odd(entry: Entry, ranks: int) -> Entry:
    """Return an entry on an odd number of the job's ranks, unless it needs two or pairs."""
    if entry.benchmark.ranks in (Ranks.TWO, Ranks.EVEN):
        return entry
    return replace(entry, first_ranks=odd_ranks(entry.first_ranks or ranks))


@click.command(
    "run",
    cls=GroupedCommand,
    context_settings=CONTEXT,
    params=[
        click.Argument(["entries"], nargs=-1, metavar="BENCHMARK…"),
        Option(
            ["--pair"],
            group=LAUNCH,
            default=FAR,
            type=click.Choice([NEAR, FAR]),
            help="Ranks that measure what needs two of more: the first two, or the first and the "
            "last.",
        ),
        Option(
            ["--odd"],
            group=LAUNCH,
            is_flag=True,
            help="Measure other benchmarks on an odd number of ranks: without the last of an even "
            "number.",
        ),
        Option(
            ["--scale"],
            group=LAUNCH,
            is_flag=True,
            help="Measure on the first 2, 4, 8 … ranks, then on all.",
        ),
        Option(
            ["--summary"],
            group=LAUNCH,
            metavar="FILE",
            type=click.Path(),
            help="Keep in this .json file what came of each benchmark.",
            show_default="FILE.summary.json next to --output",
        ),
        *common_parameters(),
    ],
)
@click.pass_context
def command(context: click.Context, /, **values: Any) -> int:
    """Measure several benchmarks in one launch.

    mpiexec -n 64 omb-py run latency bw "allreduce -m 8:1M --binding native" s:collective -m 1024

    BENCHMARK is the name of a benchmark, or of a suite (s:pt2pt; omb-py list), alone or in quotes
    with options of its own. Options outside of quotes are those of all benchmarks that have them.
    MPI is started once. What fails ends its benchmark; the others are measured. The last lines say
    what came of each. The exit code is the worst of all.
    """
    own = {name: values.pop(name) for name in OWN}
    common = {name: value for name, value in given(context).items() if name not in OWN}
    force = values["force"]
    if own["summary"] and not any(values[name] for name in ("output", "graph")):
        values["force"] = common["force"] = False  # it is of the summary alone
    words = option_words(sys.argv[2:], context.command.params)
    shared = CommonOptions(values, common, words)
    entries = [one for text in own["entries"] for one in entries_of(text, shared)]
    if not entries:
        raise UsageError("name a benchmark, or a suite such as s:collective")
    refuse_unused(context, common, entries)
    options = make_options(values)
    path = own["summary"] or beside(options.output)
    for one in (entry.options for entry in entries):
        files.refuse_same({"--summary": path, "--output": one.output, "--samples": one.samples})
    load_before_mpi([options.binding, *(entry.options.binding for entry in entries)])
    with launch("run", options, alike(options) | given_to_ranks(entries, own)) as launched:
        job = launched.job
        if own["odd"]:
            entries = [on_odd(entry, job.ranks) for entry in entries]
        if own["scale"]:
            entries = list(scaled(entries, job.ranks))
        entries = list(cleared_once(entries))
        summary = run_entries(launched, entries, own["pair"], path, force, graph_writers)
        if job.rank == 0 and options.format == "text" and not options.quiet:
            click.echo("\n".join(summary_lines(summary)))
    return summary.exit_code


def option_words(words: Iterable[str], parameters: Sequence[click.Parameter]) -> tuple[str, ...]:
    """Return the options of a command line with their values, as they were typed."""
    found, rest, known = list[str](), [*words], named(parameters)
    while rest and rest[0] != "--":
        left = apart(long_words([rest[0], "VALUE"], parameters), known)[1]
        number = 1 if left else 2
        found += rest[:number] if len(left) < 2 else ()
        del rest[:number]
    return tuple(found)


def given_to_ranks(
    entries: Sequence[Entry], own: Mapping[str, Any]
) -> dict[str, tuple[object, ...]]:
    """Return the values of a launch that all ranks must have alike, by their names."""
    return {
        "BENCHMARK": (own["entries"],),
        "options of a BENCHMARK": (tuple(alike(entry.options) for entry in entries),),
        **{f"--{name}": (own[name],) for name in ("pair", "odd", "scale")},
    }


def beside(output: str | None) -> str | None:
    """Return the summary's file next to that of the results; None if results have no file."""
    if output is None or files.is_special(Path(output)):
        return None
    return f"{os.path.splitext(output)[0]}.summary.json"


def cleared_once(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yield the entries; with ``--force``, only the first entry of a file overwrites it."""
    known: set[str] = set()
    for entry in entries:
        options = entry.options
        own = {os.path.realpath(one) for one in (options.output, options.samples) if one}
        yield replace(entry, options=replace(options, force=options.force and not own & known))
        known |= own


def refuse_unused(
    context: click.Context, common: Mapping[str, Any], entries: Sequence[Entry]
) -> None:
    """Raise `UsageError` for an option of all benchmarks that none of them has."""
    known = {one.name for entry in entries for one in reader(entry.benchmark).params}
    for parameter in context.command.params:
        if parameter.name in common.keys() - known:
            option = max(parameter.opts, key=len)
            raise UsageError(f"{option} is an option of none of these benchmarks: leave it out")

"""``omb-py simulate BENCHMARK|PROFILE``: what many ranks would do, on SimGrid."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from os import sched_getaffinity
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from omb_py.algorithms import MODULES
from omb_py.cli.analysis_options import FORMATS, listed, note, output_options, read, write_table
from omb_py.core.errors import UsageError, needing
from omb_py.core.text.numbers import parse_whole
from omb_py.core.text.units import duration, size_text
from omb_py.core.text.words import count
from omb_py.options.types import SIZE_LIST, WholeNumber

if TYPE_CHECKING:
    from omb_py.core.options import Options
    from omb_py.simulation.engine import Outcome
    from omb_py.simulation.network import Network
    from omb_py.simulation.points import Point
    from omb_py.simulation.report import Result
    from omb_py.simulation.workers import Job

EVERY = "all"
LIBRARIES = {name.lower().replace(" ", ""): name for name in MODULES}
SLOW = 10
"""How many times slower a link is where nobody says."""

SECONDS_PER_MESSAGE = 1e-4
"""About how long a message takes to simulate."""

DEFAULT_SIZES = (8, 1024, 16384, 262144, 1048576)


@dataclass(frozen=True)
class Configuration:
    """What is simulated on each number of ranks: a network, a placement, an algorithm.

    ``name`` says in what it differs from the others; ``variant`` the same but for the algorithm.
    """

    name: str
    variant: str
    network: Network
    placement: str
    options: Options
    library: str


@click.command("simulate", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("target", required=False, metavar="[BENCHMARK|PROFILE]")
@click.option(
    "--ranks",
    "-n",
    metavar="N[,...]",
    help="Numbers of ranks.  [default: those of the PROFILE]",
)
@click.option(
    "--network",
    "networks",
    multiple=True,
    default=("star",),
    show_default=True,
    metavar="FILE|TOPOLOGY",
    help="A file that omb-py model --network has written, or a topology with costs that are round "
    "figures: star, fat-tree:DOWN[:UP[:LINKS]], dragonfly:GROUPS:CHASSIS:ROUTERS:NODES, "
    "torus:4x4x4, platform:FILE.xml; repeatable.",
)
@click.option(
    "--topology", metavar="TOPOLOGY", help="Connect the nodes of a network's FILE otherwise."
)
@click.option(
    "--ranks-per-node", type=WholeNumber(min=1), default=1, show_default=True, help="Ranks a node."
)
@click.option(
    "--placement",
    "placements",
    callback=listed,
    default="packed",
    show_default=True,
    metavar="NAME[,...]",
    help="packed, scattered (neighbouring ranks on different nodes), spread (nodes far apart), "
    "random[:SEED], or nodes in the order in which they are filled, as in 0-7:16-23.",
)
@click.option(
    "--slow",
    "slow_nodes",
    callback=listed,
    metavar="NODE[:FACTOR][,...]",
    help=f"Compare with a network in which the link of a node is slower.  [default: {SLOW} times]",
)
@click.option(
    "--sizes",
    type=SIZE_LIST,
    metavar="SIZE,...",
    show_default=",".join(map(size_text, DEFAULT_SIZES)).replace(" ", ""),
    help="Message sizes.",
)
@click.option(
    "--library",
    type=click.Choice(sorted(LIBRARIES)),
    default="mpich",
    show_default=True,
    help="MPI library that --coll-algorithm is about.",
)
@click.option(
    "--coll-algorithm",
    "library_algorithms",
    callback=listed,
    metavar="NAME[,...]|all",
    help="Algorithms of the MPI library (omb-py list --algorithms).",
)
@click.option(
    "--p2p-algorithm",
    "own_algorithms",
    callback=listed,
    metavar="NAME[,...]|all",
    help="Algorithms of omb-py's own.  [default: the textbook's choice by message size]",
)
@click.option("--root", type=WholeNumber(min=0), default=0, help="Root.  [default: 0]")
@click.option(
    "--window", type=WholeNumber(min=1), default=64, show_default=True, help="Messages in flight."
)
@click.option(
    "--check",
    "measured",
    multiple=True,
    metavar="FILE",
    help="Simulate what a file or folder of results has measured, and write the errors into the "
    "network's FILE; repeatable.",
)
@click.option(
    "--processes", type=WholeNumber(min=1), help="Simulations at a time.  [default: one a core]"
)
@click.option("--debug", is_flag=True, expose_value=False, help="Show tracebacks of errors.")
@output_options("text", "markdown", "csv", "json")
def command(target: str | None, **values: Any) -> None:
    """Simulate benchmarks and profiles on more ranks, on SimGrid.

    \b
    omb-py simulate allreduce --ranks 64,1024,4096 --network fat-tree:64,64
    omb-py simulate bcast --ranks 512 --coll-algorithm all --network cluster.toml
    omb-py simulate --check results/ --network cluster.toml
    """
    with needing("simulate"):
        from omb_py.simulation import workers

    workers.check_installed()
    if values["measured"]:
        check(target, values)
    elif target is None:
        raise UsageError("omb-py simulate needs a benchmark, a profile, or --check with results")
    else:
        write(*simulate_benchmark(target, values), values["kind"], values["output"])


def ranks_of(text: str | None) -> tuple[int, ...]:
    """Numbers of ranks.

    Raises `UsageError` where there is none.
    """
    if text is None:
        raise UsageError("omb-py simulate needs --ranks, as in --ranks 64,1024")
    try:
        found = tuple(dict.fromkeys(parse_whole(part) for part in text.split(",")))
    except ValueError as error:
        raise UsageError(f"--ranks {text!r} is no list of numbers such as 64,1024") from error
    if min(found) < 2:
        raise UsageError(f"--ranks {text}: communication takes 2 ranks or more")
    return found


def configurations_of(target: str, values: dict[str, Any]) -> Iterator[Configuration]:
    """Every combination of networks, slow links, placements and algorithms."""
    networks = list(networks_of(values))
    placements = values["placements"]
    algorithms = list(algorithms_of(target, values))
    library = LIBRARIES[values["library"]]
    for (name, network), placement, (algorithm, options) in product(
        networks, placements, algorithms
    ):
        variant = [*([name] if len(networks) > 1 else []), *([placement] if placements[1:] else [])]
        words = [*variant, *([algorithm] if len(algorithms) > 1 or not variant else [])]
        yield Configuration(
            ", ".join(words), ", ".join(variant), network, placement, options, library
        )


def networks_of(values: dict[str, Any]) -> Iterator[tuple[str, Network]]:
    """Each network by its name, and each of them again with slow links."""
    from omb_py.simulation import network

    for text in values["networks"]:
        found = network.find(text, values["topology"])
        yield Path(text).stem if Path(text).is_file() else text, found
        for slow in values["slow_nodes"] or ():
            node, factor = slow_of(slow)
            yield f"node {node} {factor:g} times slower", replace(found, slow=((node, factor),))


def slow_of(text: str) -> tuple[int, float]:
    """A node, and how many times slower its link is.

    Raises `UsageError` where the text says no such thing.
    """
    node, _, factor = text.partition(":")
    try:
        found = (int(node), float(factor or SLOW))
    except ValueError:
        found = (-1, 0.0)
    if found[0] < 0 or not 0 < found[1] < float("inf"):
        raise UsageError(f"--slow {text}: name a node and how many times slower it is, as in 3:10")
    return found


def algorithms_of(target: str, values: dict[str, Any]) -> Iterator[tuple[str, Options]]:
    """The options of each algorithm, by its name.

    Raises `UsageError` for names that there are not.
    """
    from omb_py.algorithms import function_of, library
    from omb_py.benchmarks.algorithms import TABLE
    from omb_py.benchmarks.algorithms import algorithms as own_algorithms
    from omb_py.core.options import Options
    from omb_py.simulation.checking import SIMULATED
    from omb_py.simulation.points import named

    benchmark = named(target)
    common = Options(binding=SIMULATED, root=values["root"], window=values["window"])
    if not benchmark.collective:
        yield "", common
        return
    function = function_of(benchmark.name)
    theirs = library(LIBRARIES[values["library"]])
    for word in words(values["library_algorithms"], theirs.words(function)):
        found = theirs.algorithm(function, word)
        yield found.word, replace(common, library_algorithm=found.word)
    known = tuple(own_algorithms(benchmark.name)) if benchmark.name in TABLE else ()
    own = values["own_algorithms"]
    if own is None and values["library_algorithms"] is None:
        if not known:
            raise UsageError(
                f"omb-py has no algorithm of its own for {benchmark.name}: name the library's with "
                f"--coll-algorithm ({', '.join(theirs.words(function)) or 'none is known'})"
            )
        own = (TABLE[benchmark.name].default,)
    for word in words(own, known):
        if word not in known:
            raise UsageError(
                f"--p2p-algorithm: {benchmark.name} has no {word!r}: choose from {', '.join(known)}"
            )
        yield f"own {word}", replace(common, algorithm=word)


def words(given: tuple[str, ...] | None, known: Sequence[str]) -> tuple[str, ...]:
    """The words that were given, all that there are for `EVERY`."""
    if given is None:
        return ()
    return tuple(dict.fromkeys(known if EVERY in given else given))


def simulate_benchmark(
    target: str, values: dict[str, Any]
) -> tuple[list[Result], dict[str, str], list[str]]:
    """Every size of every configuration on every number of ranks; metadata, and remarks."""
    from omb_py.results.metadata import process_metadata
    from omb_py.results.row import new_run
    from omb_py.simulation import checking
    from omb_py.simulation.placement import nodes_of
    from omb_py.simulation.points import Point, named
    from omb_py.simulation.report import Result

    numbers = ranks_of(values["ranks"])
    configurations = list(configurations_of(target, values))
    benchmark = named(target)
    sizes = (values["sizes"] or DEFAULT_SIZES) if benchmark.sized else (0,)
    wanted: list[tuple[Configuration, Point, tuple[int, ...]]] = []
    refused: dict[str, None] = {}
    for number, one in product(numbers, configurations):
        nodes = nodes_of(one.placement, number, values["ranks_per_node"], one.network.nodes)
        for size in sizes:
            point = Point(benchmark.name, one.options, one.library, number, size)
            refusal = point.refusal
            if refusal is None:
                wanted.append((one, point, nodes))
            else:
                refused[refusal] = None
    if not wanted:
        raise UsageError(next(iter(refused)))
    for sentence in refused:
        note(f"left out: {sentence}")
    outcomes = simulated(
        [(one.network, nodes, point) for one, point, nodes in wanted], values["processes"]
    )
    metadata = process_metadata(new_run())
    results = [
        Result(one.name, point.row(outcome, metadata["run"], one.variant), outcome.regime)
        for (one, point, _), outcome in zip(wanted, outcomes, strict=True)
    ]
    networks = {id(one.network): one.network for one in configurations}.values()
    remarks = [one.description for one in networks]
    remarks.append(checking.remark(next(iter(networks)).checked, benchmark.name))
    return results, metadata | checking.metadata(networks), remarks


def simulated(
    wanted: Sequence[tuple[Network, tuple[int, ...], Point]], processes: int | None
) -> list[Outcome]:
    """What comes of each point on its network, with the node of each rank; progress is shown."""
    from omb_py.simulation.workers import Job, run_jobs

    processes = processes or len(sched_getaffinity(0))
    groups: dict[tuple[Network, tuple[int, ...]], list[int]] = {}
    for place, (network, nodes, _) in enumerate(wanted):
        groups.setdefault((network, nodes), []).append(place)
    jobs: list[Job] = []
    members: list[list[int]] = []
    for (network, nodes), places in sorted(groups.items(), key=lambda group: -len(group[0][1])):
        for first in range(min(processes, len(places))):
            members.append(places[first::processes])
            tasks = tuple(wanted[place][2].simulate for place in members[-1])
            jobs.append(Job(len(jobs), network, nodes, tasks))
    largest = max(job.memory for job in jobs)
    seconds = sum(point.messages * SECONDS_PER_MESSAGE for _, _, point in wanted)
    note(
        f"{count(len(wanted), 'simulation')}, about {duration(seconds / min(processes, len(jobs)))}"
        f", in {min(processes, len(jobs))} processes of up to {largest / 1e6:.0f} MB each"
    )
    found: dict[int, Outcome] = {}
    with progress_line() as show:

        def line(job: int, task: int, more: str) -> None:
            point = wanted[members[job][task]][2]
            size = f" {size_text(point.size)}" if point.benchmark.sized else ""
            show(f"{len(found)} of {len(wanted)}; {point.title}{size}, {point.ranks} ranks{more}")

        def done(job: int, task: int, outcome: Outcome) -> None:
            found[members[job][task]] = outcome
            line(job, task, "")

        def progress(job: int, task: int, messages: int) -> None:
            line(job, task, f": {messages:,} messages")

        run_jobs(jobs, processes, done, progress)
    return [found[place] for place in range(len(wanted))]


@contextmanager
def progress_line() -> Iterator[Callable[[str], None]]:
    """What shows a line of progress, on a terminal; elsewhere nothing does."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True).status("simulating") as status:
        yield lambda text: status.update(escape(text))


def check(target: str | None, values: dict[str, Any]) -> None:
    """Simulate what was measured; write the errors into the file of the network.

    Raises `UsageError` where nothing that was measured can be simulated, and where the network is
    no file.
    """
    from omb_py.core.text import tables
    from omb_py.simulation import checking, network
    from omb_py.simulation.report import Result

    if len(values["networks"]) != 1 or not Path(values["networks"][0]).is_file():
        raise UsageError("--check is about one network: name its file with --network")
    (path,) = values["networks"]
    checked = network.find(path, values["topology"])
    results = read(values["measured"])
    rows = results.rows if target is None else results.rows[results.rows["benchmark"] == target]
    measured, reasons = checking.points(rows, results.runs)
    for reason in reasons:
        note(f"left out: {reason}")
    if not measured:
        raise UsageError("nothing that was measured can be simulated")
    outcomes = simulated([(checked, one.nodes, one.point) for one in measured], values["processes"])
    compared = [
        checking.Comparison(one, Result(one.point.title, one.point.row(found, ""), found.regime))
        for one, found in zip(measured, outcomes, strict=True)
    ]
    errors = tuple(checking.summaries(compared))
    write_table(
        partial(tables.write, list(checking.sheets(compared, errors))),
        values["kind"],
        values["output"],
    )
    network.write_checked(Path(path), errors)


def write(
    results: Sequence[Result],
    metadata: dict[str, str],
    remarks: Sequence[str],
    kind: str | None,
    output: str | None,
) -> None:
    """Tables for people, rows for programs; rows of a file are added to those that are there."""
    from omb_py.core.text import tables
    from omb_py.results.output import file_writer, standard_output
    from omb_py.results.row import Row
    from omb_py.simulation import report

    kind = kind or (FORMATS.get(Path(output).suffix, "text") if output else "text")
    if kind in ("csv", "json"):
        writer = file_writer(output, Row, False) if output else standard_output(Row, None, kind)
        writer.start(metadata)
        for one in results:
            writer.row(one.row)
        writer.finish()
        for remark in remarks:
            note(remark)
        return
    made = list(report.sheets(results, remarks))
    write_table(partial(tables.write, made), kind, output)

"""``omb-py simulate BENCHMARK``: predictions for many ranks, on SimGrid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from os import sched_getaffinity
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from omb_py.algorithms import MODULES
from omb_py.cli import debug_option
from omb_py.cli.analysis_options import listed, note, output_options, read, refuse_options
from omb_py.cli.show import DATA, write_results
from omb_py.core.errors import UsageError, needing
from omb_py.core.options import PIPELINED
from omb_py.core.text.status import status
from omb_py.core.text.units import parse_whole, size_text
from omb_py.core.text.words import count
from omb_py.options.types import SIZE_LIST, TextType, WholeNumber

if TYPE_CHECKING:
    from omb_py.core.options import Options
    from omb_py.simulation.engine import SimulatedOutcome
    from omb_py.simulation.network import Network
    from omb_py.simulation.points import SimulatedPoint

EVERY = "all"
LIBRARIES = {name.lower().replace(" ", ""): name for name in MODULES}
CHOSEN = (
    *("ranks", "ranks_per_node", "placements", "sizes", "library", "library_algorithms"),
    *("own_algorithms", "segments", "root", "window", "sync"),
)
"""Parameters of what is simulated."""

DEFAULT_SIZES = (8, 1024, 16384, 262144, 1048576)


@dataclass(frozen=True)
class Scenario:
    """A network, and the placement of ranks; ``name`` is its difference from other scenarios."""

    name: str
    network: Network
    placement: str
    ranks_per_node: int

    def nodes(self, ranks: int) -> tuple[int, ...]:
        """Return the node of each rank; raises `UsageError` if there are too few."""
        from omb_py.simulation.topologies import placed

        return placed(self.placement, ranks, self.ranks_per_node, self.network.nodes)


@click.command("simulate")
@click.argument("target", required=False, metavar="[BENCHMARK]")
@click.option(
    "--ranks",
    "-n",
    metavar="N[,...]",
    help="Numbers of ranks.",
)
@click.option(
    "--network",
    "networks",
    multiple=True,
    default=("star",),
    show_default=True,
    metavar="FILE|TOPOLOGY",
    type=click.Path(),
    help="A file that omb-py model --network has written, or a topology with costs that are round "
    "figures: star, fat-tree:DOWN[:UP[:LINKS]], dragonfly:GROUPS:CHASSIS:ROUTERS:NODES, "
    "torus:4x4x4; repeatable.",
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
    type=TextType("NAME[,...]", listed),
    default="packed",
    show_default=True,
    help="packed, or scattered: neighbouring ranks on different nodes.",
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
    help="Library that --coll-algorithm is about.",
)
@click.option(
    "--coll-algorithm",
    "library_algorithms",
    type=TextType("NAME[,...]|all", listed),
    help="Algorithms of the library (omb-py list --algorithms).",
)
@click.option(
    "--p2p-algorithm",
    "own_algorithms",
    type=TextType("NAME[,...]|all", listed),
    help="Algorithms of omb-py's own.  [default: the textbook's choice by message size]",
)
@click.option(
    "--segment",
    "segments",
    type=SIZE_LIST,
    metavar="SIZE[,...]",
    help=f"Segment sizes of --p2p-algorithm {PIPELINED}.  [default: 64K]",
)
@click.option("--root", type=WholeNumber(min=0), default=0, help="Root.  [default: 0]")
@click.option(
    "--window", type=WholeNumber(min=1), default=64, show_default=True, help="Messages in flight."
)
@click.option(
    "--sync",
    type=click.Choice(["barrier", "clock"]),
    default="barrier",
    show_default=True,
    help="Begin iterations as ranks leave a barrier, as measured ones do, or at the same time, "
    "which takes half as long to simulate.",
)
@click.option(
    "--check",
    "measured",
    multiple=True,
    metavar="FILE",
    type=click.Path(),
    help="Simulate what a file or folder of results has measured, and write the errors into the "
    "network's FILE; repeatable.",
)
@click.option(
    "--processes", type=WholeNumber(min=1), help="Simulations at a time.  [default: one a core]"
)
@debug_option
@output_options("text", "markdown", *DATA)
def command(target: str | None, **values: Any) -> None:
    """Simulate benchmarks on more ranks, on SimGrid.

    \b
    omb-py simulate allreduce --ranks 64,1024,4096 --network fat-tree:64,64
    omb-py simulate bcast --ranks 512 --coll-algorithm all --network cluster.toml
    omb-py simulate --check results/ --network cluster.toml
    """
    from omb_py.simulation import check_installed

    with needing("simulate"):
        try:
            from omb_py.simulation import workers  # noqa: F401 - fail now
        except ModuleNotFoundError:
            check_installed()  # its sentence has both
            raise
    refuse_unused(target, bool(values["measured"]))
    check_installed()
    if values["measured"]:
        check(target, values)
    elif target is None:
        raise UsageError("simulate needs a benchmark, or --check with results")
    else:
        simulate_benchmark(target, values)


def refuse_unused(target: str | None, checks: bool) -> None:
    """Raise `UsageError` for options that ``--check`` or the benchmark does not use."""
    from omb_py.simulation.points import named

    if checks:
        refuse_options(CHOSEN, "is that of the measured rows with --check: leave it out")
        refuse_options(["topology"], "is not the file's, which --check writes: use a copy of it")
    elif target is not None:
        benchmark = named(target)
        if not benchmark.collective:
            why = f"is about collectives, and {benchmark.name} is another benchmark: leave it out"
            refuse_options(("library", "library_algorithms", "own_algorithms", "segments"), why)
        if not benchmark.sized:
            refuse_options(["sizes"], f"has no effect: {benchmark.name} has no message sizes")


def ranks_of(text: str | None) -> tuple[int, ...]:
    """Return numbers of ranks.

    Raises `UsageError` if there is none.
    """
    from omb_py.simulation.topologies import MAX_NODES

    if text is None:
        raise UsageError("simulate needs --ranks, as in --ranks 64,1024")
    try:
        found = tuple(dict.fromkeys(parse_whole(part) for part in text.split(",")))
    except ValueError as error:
        raise UsageError(f"--ranks {text!r} is no list of numbers such as 64,1024") from error
    if min(found) < 2:
        raise UsageError(f"--ranks {text}: communication takes 2 ranks or more")
    if max(found) > MAX_NODES:
        raise UsageError(f"--ranks {text}: at most {MAX_NODES} can be simulated")
    return found


def scenarios_of(values: dict[str, Any]) -> list[Scenario]:
    """Return every combination of networks and placements."""
    from omb_py.simulation import network

    networks = [
        (Path(text).stem if Path(text).is_file() else text, network.find(text, values["topology"]))
        for text in values["networks"]
    ]
    placements = values["placements"]
    return [
        Scenario(
            ", ".join([*([name] if networks[1:] else []), *([word] if placements[1:] else [])]),
            found,
            word,
            values["ranks_per_node"],
        )
        for (name, found), word in product(networks, placements)
    ]


def algorithms_of(target: str, values: dict[str, Any]) -> Iterator[tuple[str, Options]]:
    """Yield the options of each algorithm, by its name.

    Raises `UsageError` for names that there are not.
    """
    from omb_py.algorithms import function_of, library
    from omb_py.benchmarks.algorithms import TABLE
    from omb_py.benchmarks.algorithms import algorithms as own_algorithms
    from omb_py.core.options import Options
    from omb_py.simulation.checking import SIMULATED
    from omb_py.simulation.points import named

    benchmark = named(target)
    common = Options(
        binding=SIMULATED, root=values["root"], window=values["window"], sync=values["sync"]
    )
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
    segments = values["segments"]
    if segments and PIPELINED not in words(own, known):
        raise UsageError(
            f"--segment is for --p2p-algorithm {PIPELINED}: choose that, or leave it out"
        )
    if segments and 0 in segments:
        raise UsageError("--segment 0 sends nothing: choose 1 byte or more")
    for word in words(own, known):
        if word not in known:
            raise UsageError(
                f"--p2p-algorithm: {benchmark.name} has no {word!r}: choose from {', '.join(known)}"
            )
        for segment in (segments or (None,)) if word == PIPELINED else (None,):
            of_size = f", segments of {size_text(segment)}" if segment else ""
            yield f"own {word}{of_size}", replace(common, algorithm=word, segment=segment)


def words(given: tuple[str, ...] | None, known: Sequence[str]) -> tuple[str, ...]:
    """Return the words that were given, or all words of the library for `EVERY`."""
    if given is None:
        return ()
    return tuple(dict.fromkeys(known if EVERY in given else given))


def simulate_benchmark(target: str, values: dict[str, Any]) -> None:
    """Simulate every size by every algorithm in every scenario, on every number of ranks."""
    from omb_py.analysis.table import of_rows
    from omb_py.core.text import tables
    from omb_py.measure.measurement import knows_nodes
    from omb_py.results.columns import new_run
    from omb_py.results.metadata import process_metadata
    from omb_py.simulation import checking, report
    from omb_py.simulation.points import SimulatedPoint, named

    numbers, scenarios = ranks_of(values["ranks"]), scenarios_of(values)
    benchmark, algorithms = named(target), list(algorithms_of(target, values))
    library = LIBRARIES[values["library"]]
    sizes = (values["sizes"] or DEFAULT_SIZES) if benchmark.sized else (0,)
    points: list[tuple[str, Scenario, SimulatedPoint]] = []
    refused: dict[str, None] = {}
    for number, scenario, (word, options), size in product(numbers, scenarios, algorithms, sizes):
        if knows_nodes(benchmark, options):
            options = replace(options, node_map=scenario.nodes(number))
        point = SimulatedPoint(benchmark.name, options, library, number, size)
        if (refusal := point.refusal) is None:
            words = [scenario.name] if scenario.name else []
            words += [word] if algorithms[1:] or not words else []
            points.append((", ".join(words), scenario, point))
        else:
            refused[refusal] = None
    if not points:
        raise UsageError(next(iter(refused)))
    for sentence in refused:
        note(f"left out: {sentence}")
    outcomes = simulated(
        [(one.network, one.nodes(point.ranks), point) for _, one, point in points], values
    )
    run = new_run()
    results = [
        report.Result(name, point.row(outcome, run, scenario.name or None), outcome.regime)
        for (name, scenario, point), outcome in zip(points, outcomes, strict=True)
    ]
    remarks = checking.remarks([one.network for one in scenarios], benchmark.name)
    if values["to"].format not in DATA:
        tables.write(values["to"], report.sheets(results, remarks))
        return
    metadata = process_metadata(run) | {"mpi_library": "SimGrid 3, simulated"}
    write_results(of_rows([vars(one.row) for one in results], {run: metadata}), values["to"])
    for remark in remarks:
        note(remark)


def simulated(
    wanted: Sequence[tuple[Network, tuple[int, ...], SimulatedPoint]], values: dict[str, Any]
) -> list[SimulatedOutcome]:
    """Return the results of points, each on a network and with the node of each rank."""
    from omb_py.simulation.workers import Simulation, run_all

    processes = values["processes"] or len(sched_getaffinity(0))
    note(f"{count(len(wanted), 'simulation')}, at most {processes} at a time")
    simulations = [
        Simulation(network, nodes, partial(point.simulate, nodes))
        for network, nodes, point in wanted
    ]
    with status() as say:
        return run_all(
            simulations, processes, lambda done: say(f"{done} of {len(wanted)} simulations")
        )


def check(target: str | None, values: dict[str, Any]) -> None:
    """Simulate measured points; write the errors into the file of the network.

    Raises `UsageError` if no measured point can be simulated, and if the network is not a file.
    """
    from omb_py.core.text import tables
    from omb_py.simulation import checking, network

    if len(values["networks"]) != 1 or not Path(values["networks"][0]).is_file():
        raise UsageError("--check is about one network: name its file with --network")
    (path,) = values["networks"]
    checked = network.find(path)
    results = read(values["measured"])
    rows = results.rows if target is None else results.rows[results.rows["benchmark"] == target]
    measured, reasons = checking.points(rows, results.runs)
    for reason in reasons:
        note(f"left out: {reason}")
    if not measured:
        raise UsageError("nothing that was measured can be simulated")
    outcomes = simulated([(checked, one.nodes, one.point) for one in measured], values)
    compared = checking.compared(measured, outcomes)
    errors = tuple(checking.summaries(compared))
    tables.write(values["to"], checking.sheets(compared, errors), compared)
    network.write_checked(Path(path), errors)

"""``omb-py compare``: results against results, native OMB or other MPI libraries alternately."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from omb_py.cli.analysis_options import (
    input_options,
    name_option,
    note_transports,
    output_options,
    read_to_judge,
    refuse_options,
)
from omb_py.cli.compare_libraries import EVERY, OF_LIBRARIES, library_options
from omb_py.cli.confirm import (
    confirm_options,
    confirmed,
    folder_for,
    refuse_without_jobs,
)
from omb_py.core.errors import UsageError, needing
from omb_py.core.mpi import launcher as launchers
from omb_py.core.text.status import status
from omb_py.core.text.units import parse_bytes
from omb_py.options.parse import apart, named
from omb_py.options.types import (
    BYTES,
    FACTOR,
    PERCENTAGE,
    SIZE_LIST,
    SIZE_RANGE,
    Seconds,
    WholeNumber,
)

if TYPE_CHECKING:
    import pandas as pd

    from omb_py.analysis.conclusion import Conclusion
    from omb_py.benchmarks import Benchmark
    from omb_py.core.text.tables import Sheet
    from omb_py.sweeps.compare_native import Goal

    Judge: TypeAlias = Callable[..., pd.DataFrame]

FORMATS = ("text", "markdown", "csv", "json", "parquet")

USUAL_PRECISION, USUAL_SECONDS = 0.05, 300.0
"""The default limits of rounds with native OMB."""

OF_NATIVE = ("bindings", "ranks", "precision", "max_time", "rounds")
"""Parameters of rounds with native OMB."""

NOT_OF_LIBRARIES = ("where", "assume", "names", "precision", "launcher", "timeout")
"""Parameters that a sweep over libraries has no use for."""

NATIVE = "native"
"""The binding that is compared with native OMB, unless others are named."""


class CompareCommand(click.Command):
    """With ``--native``, options that are not this command's are the benchmarks'.

    ``--libraries`` alone does not take the next word as its value.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        args = [f"--libraries={EVERY}" if word == "--libraries" else word for word in args]
        if any(word.partition("=")[0] == "--native" for word in args):
            # click's own way to let unknown options pass looks for known letters in -Tmpi_int
            ours, theirs = apart(args, named(self.get_params(ctx)))
            args = [*ours, "--", *theirs]
        return super().parse_args(ctx, args)


@click.command("compare", cls=CompareCommand)
@click.argument(
    "arguments", nargs=-1, metavar="BASE OTHER… | BENCHMARK [OPTION]…", type=click.Path()
)
@input_options
@name_option
@click.option(
    "--fail-above",
    type=FACTOR,
    help="The limit for the exit code: 4 if a size or the average is slower than BASE by more than "
    "5% or 1.05x beyond the noise, or if points of BASE are missing; 7 if the noise cannot exclude "
    "that.",
)
@click.option(
    "--launch-spread",
    type=PERCENTAGE,
    help="Stated noise: relative standard deviation between launches on this machine, for points "
    "with too few runs to estimate it.",
)
@click.option(
    "--tolerance",
    type=PERCENTAGE,
    default="5%",
    show_default=True,
    help="The difference that does not matter: a point is equal if its whole interval is within.",
)
@click.option("--tail", is_flag=True, help="Compare 99th percentiles, too.")
@click.option("--summary", is_flag=True, help="Print only the verdicts, no tables.")
@output_options(*FORMATS)
@click.option(
    "--native",
    metavar="DIR|PROGRAM",
    type=click.Path(),
    help="Folder or program of native OMB: run its BENCHMARK and omb-py's, interleaved. Options "
    "not in this list are passed to both.",
)
@click.option(
    "--bindings",
    metavar="NAME,…",
    show_default="native; of --libraries buffer",
    help="Bindings of omb-py to compare, as in native,buffer.",
)
@click.option(
    "-n",
    "--ranks",
    type=WholeNumber(min=1),
    show_default="2; neighborhoods 3",
    help="Ranks of each job.",
)
@click.option(
    "--precision",
    type=PERCENTAGE,
    show_default="5%",
    help="A target: measure rounds until every ratio is known to within ±P % at 95 % confidence.",
)
@click.option(
    "--max-time",
    type=Seconds(min=0, min_open=True),
    show_default="300",
    help="Start no round that would end later.",
)
@click.option(
    "--rounds",
    type=WholeNumber(min=1),
    help="Measure this many rounds; with --precision at most.",
)
@library_options
@confirm_options
@click.pass_context
def command(ctx: click.Context, /, **values: Any) -> None:
    """Compare results, MPI libraries, or omb-py with native OMB.

    omb-py compare before.csv after.csv --fail-above 5%

    omb-py compare --native /opt/omb latency -m 1:65536
    """
    with needing("analysis"):
        from omb_py.analysis.compare.side_by_side import compare

    is_native, of_libraries = values["native"] is not None, values["libraries"] is not None
    if is_native and of_libraries:
        raise UsageError("--native and --libraries exclude each other: name one of them")
    asks_again = values["confirm"] or values["again"]
    if (values["fail_above"] is None or is_native or of_libraries) and asks_again:
        raise UsageError("--confirm is for files with --fail-above: leave it out, or name both")
    if is_native:
        refuse_options(["sizes"], "is none of native OMB's options: name sizes by -m [MIN:]MAX")
    if not of_libraries:
        refuse_options(OF_LIBRARIES, "is for --libraries: add it, or leave it out")
        refuse_without_jobs(is_native or values["confirm"] is not None)
    if values["summary"] and values["to"].path is None:
        refuse_options(["kind"], "is that of the tables: leave out --summary, or name --output")
    judge = partial(
        compare,
        statistic=values["statistic"],
        launch_spread=values["launch_spread"],
        tolerance=values["tolerance"],
        tail=values["tail"],
    )
    way = compare_libraries if of_libraries else compare_with_native if is_native else compare_files
    ctx.exit(write_comparison(way(values, judge), values))


@dataclass(frozen=True)
class Compared:
    """Compared points, their ``base``, and a conclusion if a limit was asked.

    ``passed`` are failures that were not confirmed, ``note`` is the precision of rounds. ``sheet``
    is a table of all others in place of one of each, with its ``sentences``.
    """

    points: pd.DataFrame
    base: str
    conclusion: Conclusion | None
    remarks: list[str]
    passed: Sequence[str] = ()
    note: str = ""
    sheet: Sheet | None = None
    sentences: Sequence[str] = ()


def compare_files(values: dict[str, Any], judge: Judge) -> Compared:
    """Compare results in files; failures are measured again if ``--confirm`` asks for it."""
    from omb_py.analysis.compare import summary
    from omb_py.analysis.failures import only_first
    from omb_py.analysis.hosts import newly_slow
    from omb_py.analysis.judging import rows_to_judge
    from omb_py.analysis.sources import numbers_of

    refuse_options(OF_NATIVE, "is for --native: leave it out with files")
    tables, runs, lost = from_files(values)
    base, *others = tables
    points, allowed = judge(*tables.values(), names=list(tables)), values["fail_above"]
    if allowed is None:
        return Compared(points, base, None, summary.remarks(points))
    for name in others:
        lost += [f"{name}: {one}" for one in newly_slow(tables[base], tables[name], allowed)]
        own = points[points["other"] == name]
        whole = not own["verdict"].isin(summary.MISSING).any()
        if whole and numbers_of(tables[name]) <= numbers_of(tables[base]):
            lost.append(f"{name}: all of its runs are in {base}, too: nothing was compared")
    wrong = [one for table in tables.values() for one in rows_to_judge(table)[1]]
    conclusion = summary.conclusion(points, allowed, wrong, lost)
    remarks = summary.remarks(points, allowed)
    for name, members in points.groupby("other", sort=False):
        judged = summary.cells_of(members[members["slowdown"].notna()])
        remarks += only_first(name, tables[name], runs, conclusion.failed, judged)
    failures, passed, _ = confirmed(values, conclusion.failed, tables, runs)
    return Compared(points, base, replace(conclusion, failed=tuple(failures)), remarks, passed)


def compare_with_native(values: dict[str, Any], judge: Judge) -> Compared:
    """Compare omb-py with native OMB, run alternately."""
    from omb_py.analysis.compare import summary

    refuse_options(["assume"], "is for files: leave it out with --native")
    points, names, note = from_turns(values, judge)
    allowed = values["fail_above"]
    conclusion = None if allowed is None else summary.conclusion(points, allowed)
    return Compared(points, names[0], conclusion, summary.remarks(points, allowed), (), note)


def compare_libraries(values: dict[str, Any], judge: Judge) -> Compared:
    """Compare MPI libraries, measured alternately."""
    from omb_py.analysis import libraries
    from omb_py.analysis.compare import summary
    from omb_py.cli.compare_libraries import measured

    refuse_options(NOT_OF_LIBRARIES, "is not for --libraries: leave it out")
    tables = measured(values)
    points = libraries.compared(tables, judge)
    allowed, base = values["fail_above"], next(iter(tables))
    conclusion = None if allowed is None else summary.conclusion(points, allowed)
    return Compared(
        points,
        base,
        conclusion,
        summary.remarks(points, allowed),
        sheet=libraries.sheet(points, base),
        sentences=list(libraries.sentences(points, base)),
    )


def write_comparison(found: Compared, values: dict[str, Any]) -> int:
    """Write tables, verdicts and the conclusion; return the exit code."""
    from omb_py.analysis.compare import summary
    from omb_py.analysis.conclusion import facts as facts_of
    from omb_py.core.text import tables

    points, to = found.points, values["to"]
    verdicts = [*summary.sentences(found.points).values(), *found.sentences]
    facts: dict[str, Any] = {
        "base": found.base,
        "pairs": tables.records(summary.summary(points)),
        **facts_of(found.conclusion, verdicts, found.remarks),
        "not_confirmed": found.passed,
    }
    if not values["summary"] or to.path is not None:
        made = [found.sheet] if found.sheet else summary.sheets(points, found.base)
        tables.write(to, made, points, summary.endings(points, found.base), facts)
    said = ["", *verdicts, *(f"Note: {one}" for one in found.remarks)]
    said += [f"NOT CONFIRMED: {one}" for one in found.passed]
    said += [] if found.conclusion is None else found.conclusion.lines()
    click.echo("\n".join([*said, *filter(None, [found.note])]), err=to.is_for_program)
    return 0 if found.conclusion is None else found.conclusion.exit_code


def from_files(
    values: dict[str, Any],
) -> tuple[dict[str, pd.DataFrame], dict[str, Mapping[str, str]], list[str]]:
    """Return the rows of each argument by its name, the metadata of all runs, and what was lost."""
    from omb_py.analysis.compare.side_by_side import names_of

    paths = values["arguments"]
    if len(paths) < 2:
        raise UsageError("name a BASE and at least one OTHER: two files or folders of results")
    by_name = {}
    lost: list[str] = []
    for path, name in zip(paths, names_of(paths, values["names"]), strict=True):
        words = [path], values["where"], values["assume"]
        by_name[name], more = read_to_judge(*words, "compare")
        lost += more
    runs = {name: results.runs for name, results in by_name.items()}
    note_transports(runs)
    every = {run: data for own in runs.values() for run, data in own.items()}
    return {name: results.rows for name, results in by_name.items()}, every, lost


def from_turns(values: dict[str, Any], judge: Judge) -> tuple[pd.DataFrame, list[str], str]:
    """Run native OMB and omb-py alternately; return their comparison, their names, and the
    precision.

    Raises `UsageError` for an impossible run, `OmbError` for a run that fails.
    """
    from omb_py.analysis.select import where
    from omb_py.benchmarks import find_benchmark
    from omb_py.bindings import BINDINGS
    from omb_py.options.table import parameters
    from omb_py.sweeps import compare_native

    if launchers.ranks() > 1:
        raise UsageError("compare --native starts jobs itself: run it without a launcher")
    if not values["arguments"] or values["arguments"][0].startswith("-"):
        raise UsageError("name the BENCHMARK first, then its options: compare --native DIR latency")
    name, *options = values["arguments"]
    benchmark = find_benchmark(name)
    if reason := why_not(benchmark):
        raise UsageError(reason)
    if benchmark.start_up is not None and values["bindings"] not in (None, NATIVE):
        raise UsageError(f"{name} passes through no binding: leave out --bindings")
    if any(option.partition("=")[0] == "--binding" for option in options):
        raise UsageError("--binding is omb-py's alone: name bindings with --bindings")
    own = {name for one in parameters(benchmark) for name in one.opts if len(one.opts) == 1}
    words = (option.partition("=")[0] for option in options)
    if alone := next((word for word in words if word.startswith("--") and word in own), None):
        raise UsageError(
            f"native OMB has no {alone}, and options go to both programs: leave it out"
        )
    asked = values["bindings"] or NATIVE
    bindings = tuple(dict.fromkeys(text.strip() for text in asked.split(",")))
    for binding in bindings:
        if binding not in BINDINGS.names():  # loading it would start MPI here
            there = ", ".join(BINDINGS.names())
            raise UsageError(f"--bindings: unknown binding {binding!r}: choose from {there}")
    turns = compare_native.Turns(
        compare_native.find_binary(Path(values["native"]), name),
        name,
        with_plain_sizes(benchmark, options),
        bindings,
        values["ranks"] or (3 if "topology" in benchmark.options else 2),
        compare_native.find_launcher(values["launcher"]),
        values["timeout"],
    )
    goal = goal_of(values)

    def compared(rows: dict[str, pd.DataFrame]) -> pd.DataFrame:
        tables = [where(one, values["where"]) for one in rows.values()]
        return judge(*tables, names=list(values["names"]) or list(rows))

    with folder_for(values["keep"]) as folder, status() as say:
        found = compare_native.measure(turns, goal, folder, compared, say)
    names = list(values["names"]) or list(found.names)
    return found.points, names, compare_native.reached(found, goal)


def why_not(benchmark: Benchmark) -> str | None:
    """Return why a benchmark cannot be compared with native OMB's; None if it can."""
    from omb_py.benchmarks import StartUp
    from omb_py.options.native import has_program

    if not has_program(benchmark):
        return f"native OMB has no {benchmark.name}: compare files of omb-py's own"
    if benchmark.start_up is StartUp.HELLO:
        return "native OMB's hello prints no time: compare init, the time of MPI_Init"
    return None


def goal_of(values: dict[str, Any]) -> Goal:
    """Return the goal: a number of rounds, or else a precision of ratios or a limit of time."""
    from omb_py.sweeps.compare_native import Goal

    rounds, precision, seconds = values["rounds"], values["precision"], values["max_time"]
    if rounds is None:
        precision = precision or USUAL_PRECISION
        seconds = seconds or USUAL_SECONDS
    return Goal(rounds, precision, seconds)


def with_plain_sizes(benchmark: Benchmark, options: Sequence[str]) -> tuple[str, ...]:
    """Return a benchmark's options with sizes in plain bytes: native OMB reads ``1M`` as 1 byte.

    Raises `UsageError` for an invalid size.
    """
    from omb_py.options.table import parameters

    names = {
        name
        for option in parameters(benchmark)
        if option.type in (BYTES, SIZE_RANGE, SIZE_LIST)
        for name in option.opts
    }
    found: list[str] = []
    named: str | None = None
    for word in options:
        option, equals, value = word.partition("=")
        if named is not None:
            word = plain_sizes(named, word)
            named = None
        elif word in names:
            named = word
        elif word.startswith("--") and option in names:
            word = f"{option}{equals}{plain_sizes(option, value)}"
        elif not word.startswith("--") and word[:2] in names:
            word = f"{word[:2]}{plain_sizes(word[:2], word[2:])}"
        found.append(word)
    return tuple(found)


def plain_sizes(option: str, text: str) -> str:
    """Sizes of an option in plain bytes.

    >>> plain_sizes("-m", "1K:1M")
    '1024:1048576'
    """
    try:
        return re.sub(r"[^:,]+", lambda size: str(parse_bytes(size[0])), text)
    except ValueError as error:
        raise UsageError(f"{option} {text}: {error}") from error

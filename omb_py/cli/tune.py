"""``omb-py tune``: rules that make an MPI library take the fastest algorithm, with proof."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from omb_py.cli import debug_option
from omb_py.cli.analysis_options import listed, note
from omb_py.cli.job import machine_option
from omb_py.cli.sweep import seconds_of
from omb_py.core.errors import OmbError, UsageError, needing
from omb_py.core.text.words import count, first_of
from omb_py.options.types import PERCENTAGE, SIZE_LIST, Seconds, TextType, WholeNumber

if TYPE_CHECKING:
    import pandas as pd

    from omb_py.analysis.conclusion import Conclusion
    from omb_py.analysis.tuning import Chosen, Place, Proved
    from omb_py.sweeps.config import Experiment
    from omb_py.sweeps.sweep_job import SweepJob
    from omb_py.sweeps.tuning import Tuning

LAUNCHES = 8
"""Launches of each point by default: they prove one difference among 320."""

TABLE = "table.csv"
ENVIRONMENT = "environment.sh"
FIGURE = "tuning.svg"


@click.command("tune")
@click.argument("functions", nargs=-1, metavar="[FUNCTION]...")
@machine_option(default="local", show_default=True)
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("rules"),
    show_default=True,
    help="Folder of the files of rules, of all measurements and of the table.",
)
@click.option("--ranks", metavar="N[,...]", default="2", show_default=True, help="Ranks in all.")
@click.option("--nodes", type=WholeNumber(min=1), default=1, show_default=True, help="Nodes.")
@click.option("--sizes", metavar="BYTES", help="Message sizes, as 8,64K or 8:1M; by default all.")
@click.option(
    "--sweep",
    metavar="SWEEP",
    help="Take functions, ranks, nodes and sizes from the experiments of a sweep's configuration.",
)
@click.option(
    "--launches",
    type=WholeNumber(min=1),
    default=LAUNCHES,
    show_default=True,
    help="Launches of each algorithm; they take turns.",
)
@click.option(
    "--gain",
    type=PERCENTAGE,
    default="5%",
    show_default=True,
    help="Gain from which an algorithm replaces the library's choice.",
)
@click.option(
    "--segments",
    type=SIZE_LIST,
    default=(),
    help="Further segment sizes of algorithms that cut messages, as 8K,128K.",
)
@click.option(
    "--own-algorithms",
    is_flag=True,
    help="Measure omb-py's own algorithms, too, for information.",
)
@click.option("--buffer", default="numpy", show_default=True, help="Buffer of the benchmarks.")
@click.option(
    "--binding", default="buffer", show_default=True, help="Their binding; nccl tunes NCCL."
)
@click.option(
    "--max-time",
    type=Seconds(min=0, min_open=True),
    default=0.2,
    show_default=True,
    metavar="SECONDS",
    help="Time of a message size in a launch at most.",
)
@click.option("--seed", type=WholeNumber(min=0), default=0, help="Chooses the shuffled orders.")
@click.option(
    "--stop-after",
    type=TextType("DURATION", seconds_of),
    help="Stop after DURATION, as in 25m; exit code 75 if there is more to do.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be measured.")
@click.option(
    "--check",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Measure what the rules of a file do; MPICH's may be two: name both.",
)
@debug_option
def command(functions: tuple[str, ...], check: tuple[Path, ...], **values: Any) -> int:
    """Write rules that make the MPI library take the fastest algorithm.

    omb-py tune allreduce bcast --ranks 4,8 --sizes 8:1M

    Starts launches itself. Each algorithm of the library takes turns with the library's own choice;
    one that is faster beyond noise gets a rule. Then the rules are put in force, and measured: a
    rule that does not help is taken out. Run the same command again after an interruption.

    Exit codes: 0 the rules are nowhere slower than the library, 4 somewhere, or not obeyed, 7
    something cannot be told, 75 stopped with more to do.
    """
    began = time.monotonic()
    with needing("sweep"):
        from omb_py.sweeps import tuning as tunings
        from omb_py.sweeps.sweep_job import find_machine
    with needing("analysis"):
        from omb_py.analysis import tuning as analysis  # noqa: F401

    machine = find_machine(values["machine"])
    build = tunings.library_here(machine, values["binding"])
    tuning = tunings.Tuning(
        values["output"],
        machine,
        values["machine"],
        experiments_of(functions, values),
        values["launches"],
        values["seed"],
        build,
        values["segments"],
        values["own_algorithms"],
    )
    tunings.check_functions(tuning)
    stop = values["stop_after"]
    deadline = None if stop is None else began + stop
    if check:
        return checked(tuning, check, values, deadline)
    return tuned(tuning, values, deadline)


def experiments_of(functions: Sequence[str], values: dict[str, Any]) -> tuple[Experiment, ...]:
    """Return what is measured: by the options, or by the configuration of a sweep.

    Raises `UsageError` if neither or both name functions.
    """
    from omb_py.sweeps import catalog
    from omb_py.sweeps.config import Experiment, Sweep
    from omb_py.sweeps.points import select_benchmarks
    from omb_py.sweeps.toml import read, valid

    shared = {
        "buffers": (values["buffer"],),
        "bindings": (values["binding"],),
        "options": {"max-time": values["max_time"]},
    }
    if values["sweep"] is not None:
        if functions:
            raise UsageError(f"--sweep names the functions: leave out {first_of(functions, 3)}")
        found = []
        for one in read(catalog.find("sweeps", values["sweep"]), Sweep).experiments:
            names = [benchmark.name for benchmark in select_benchmarks(one)]
            kept = {"benchmarks": names, "without": (), "coll_algorithms": None, **shared}
            found.append(Experiment.model_validate({**one.model_dump(), **kept}))
        return tuple(found)
    if not functions:
        raise UsageError("name a collective to tune, as in omb-py tune allreduce --ranks 4")
    try:
        ranks = [int(word) for word in listed(values["ranks"])]
    except ValueError as error:
        raise UsageError(f"--ranks {values['ranks']}: write numbers, as in 4,8") from error
    asked = {
        "benchmarks": [name.replace("-", "_") for name in dict.fromkeys(functions)],
        "ranks": ranks,
        "nodes": [values["nodes"]],
        "sizes": values["sizes"],
    }
    return (valid(Experiment, asked | shared),)


def tuned(tuning: Tuning, values: dict[str, Any], deadline: float | None) -> int:
    """Measure, choose, prove and write; return the exit code."""
    from omb_py.analysis import tuning as analysis
    from omb_py.analysis.verdict import FASTER
    from omb_py.core.text import tables
    from omb_py.sweeps import tuning as tunings

    gain, root = values["gain"], tuning.root
    first = tunings.first_sweep(tuning)
    if values["dry_run"]:
        show_plan(tuning, first)
        return 0
    tell_plan(tuning, first, deadline)
    measured = tunings.measure(first, deadline)
    chosen = analysis.choices(measured, gain)
    rules, boundaries = analysis.rules_of(chosen, measured, tuning.library.algorithm)
    proved: list[Proved] = []
    removed: list[Place] = []
    said: list[str] = []
    if rules:
        texts = tuning.format.write(rules, (), tuning.build)
        name = f"{tunings.PROOF}-{tunings.digest(texts)}"
        files = tunings.files_of(tuning, texts, root / name)
        words = tunings.words_by(rules, measured)
        said = tunings.words_of_library(tuning, files)
        again = tunings.measure(tunings.proof_sweep(tuning, files, words, name), deadline)
        proved = analysis.proofs(again, lambda place: words.get(place, analysis.KEPT))
        removed = [
            one.place
            for one in proved
            if one.word != analysis.KEPT and one.outcome(gain) != "faster"
        ]
        chosen = analysis.without(chosen, removed)
        rules, boundaries = analysis.rules_of(chosen, measured, tuning.library.algorithm)
    texts = tuning.format.write(rules, about_of(tuning), tuning.build)
    files = tunings.files_of(tuning, texts, root)
    sheets = [analysis.choice_sheet(chosen)]
    if tuning.own:
        sheets.append(analysis.own_sheet(measured))
    if proved:
        sheets.append(analysis.proof_sheet(proved, removed, gain))
    tables.write(tables.Target(), sheets)
    points = analysis.table(chosen, proved, gain)
    tables.write(tables.Target("csv", str(root / TABLE), force=True), sheets, points)
    draw(points, root)
    for border in boundaries:
        print(f"boundary of {border.text}")
    for line in said:
        print(f"{tuning.build.text} says: {line}")
    code = report(conclusion_of(chosen, proved, removed, gain))
    helps = any(one.of_kept is not None and one.of_kept.verdict == FASTER for one in chosen)
    show_use(tuning, files, bool(rules) or helps)
    return code


def draw(points: pd.DataFrame, root: Path) -> None:
    """Write the figure of a table into a folder, if what draws figures is there."""
    try:
        with needing("analysis"):
            from omb_py.analysis.charts import tuning as charts
            from omb_py.analysis.charts.figures import write
        for chart in charts.tuning_chart(points):
            list(write({chart.name: chart}, str(root / FIGURE), ("svg",), force=True))
    except OmbError as error:
        note(f"the figure is left out: {error}")


def conclusion_of(
    chosen: Sequence[Chosen], proved: Sequence[Proved], removed: Sequence[Place], gain: float
) -> Conclusion:
    """Return the conclusion on rules: which points with them are slower than without."""
    from omb_py.analysis.conclusion import Conclusion
    from omb_py.analysis.failures import Failure
    from omb_py.analysis.tuning import KEPT

    rules = sum(one.word != KEPT for one in chosen)
    # without any rule, what the second sweep measured is not in force
    of_proof = {one.place: one for one in proved if rules and one.place not in removed}
    failed, undecided, judged = [], [], 0
    for one in chosen:
        proof = of_proof.get(one.place)
        outcome = proof.outcome(gain) if proof is not None else "no difference"
        if one.lost or outcome == "slower":
            how = "slower than" if proof is None else f"{proof.of_rules.text}, beside"
            what = "without a rule" if one.word == KEPT else f"with {one.word}"
            failed.append(Failure(f"{one.place.text}, {what}: {how} the library as it is"))
        elif outcome == "cannot tell":
            undecided.append(one.place.text)
            continue
        judged += 1
    held = f"not slower with the rules, {rules} with an algorithm that is proved faster"
    return Conclusion(judged, tuple(failed), tuple(undecided), (), "point", held)


def checked(
    tuning: Tuning, files: Sequence[Path], values: dict[str, Any], deadline: float | None
) -> int:
    """Measure what given files do; return the exit code."""
    from omb_py.analysis import tuning as analysis
    from omb_py.core.text import files as texts
    from omb_py.core.text import tables
    from omb_py.sweeps import tuning as tunings

    if len(files) > len(tuning.format.files):
        raise UsageError(
            f"--check: {tuning.build.name} takes {count(len(tuning.format.files), 'file')} of "
            f"rules, not {len(files)}"
        )
    paths = [path.resolve() for path in files]
    contents = [texts.read_text(str(path)) for path in paths]
    places = list(tunings.places_of(tunings.default_points(tuning, tunings.PROOF)[0]))
    try:
        words = tunings.words_of_file(tuning, contents, places)
        said = tunings.words_of_library(tuning, paths)
    except OmbError as error:
        return report(conclusion_of_check((), values["gain"], str(error)))
    known = {place: word for place, word in words.items() if word in tuning.words(place.function)}
    name = f"check-{tunings.digest(contents)}"
    job = tunings.proof_sweep(tuning, paths, known, name)
    if values["dry_run"]:
        show_plan(tuning, job)
        return 0
    tell_plan(tuning, job, deadline)
    measured = tunings.measure(job, deadline)
    proved = analysis.proofs(measured, lambda place: words.get(place, analysis.KEPT))
    tables.write(tables.Target(), [analysis.proof_sheet(proved, (), values["gain"])])
    for line in said:
        print(f"{tuning.build.text} says: {line}")
    return report(conclusion_of_check(proved, values["gain"]))


def report(conclusion: Conclusion) -> int:
    """Print a conclusion with its reasons; return its exit code."""
    print(conclusion.sentence)
    for reason in conclusion.reasons:
        print(f"  {reason}")
    return conclusion.exit_code


def conclusion_of_check(
    proved: Sequence[Proved], gain: float, refused: str | None = None
) -> Conclusion:
    """Return the conclusion on given files: which rules help, hurt, do nothing, or are ignored."""
    from omb_py.analysis.conclusion import Conclusion
    from omb_py.analysis.failures import Failure
    from omb_py.analysis.tuning import KEPT

    if refused is not None:
        return Conclusion(1, (Failure(refused),), (), (), "file", "read by the library")
    failed, undecided, counts = [], [], dict.fromkeys(("faster", "no difference"), 0)
    for one in proved:
        outcome = one.outcome(gain)
        named = "without a rule" if one.word == KEPT else one.word
        if outcome in ("slower", "not obeyed"):
            how = one.of_rules.text if outcome == "slower" else "not obeyed"
            failed.append(Failure(f"{one.place.text}, {named}: {how}"))
        elif outcome == "cannot tell":
            undecided.append(f"{one.place.text}, {named}")
        elif one.word != KEPT:
            counts[outcome] += 1
    held = f"not slower: {counts['faster']} rules help, {counts['no difference']} do nothing"
    return Conclusion(
        len(proved) - len(undecided), tuple(failed), tuple(undecided), (), "point", held
    )


def show_plan(tuning: Tuning, job: SweepJob) -> None:
    """Print what would be measured."""
    from omb_py.sweeps import dry_run

    print(plan_text(tuning, job))
    dry_run.show(job)


def plan_text(tuning: Tuning, job: SweepJob) -> str:
    """Return how many launches a sweep takes, as a sentence without its end."""
    options = {(one.variant or one.library_algorithm) for one in job.plan.points}
    return (
        f"{tuning.build.text}: {len(job.plan.points)} launches of {len(options)} options, "
        f"{tuning.launches} of each"
    )


def tell_plan(tuning: Tuning, job: SweepJob, deadline: float | None) -> None:
    """Report the launches to come and about how long they take, by the first one of them."""
    from dataclasses import replace

    from omb_py.analysis.verdict import launches_to_find
    from omb_py.core.text.units import duration
    from omb_py.sweeps import tuning as tunings
    from omb_py.sweeps.folder import Folder
    from omb_py.sweeps.points import SweepPlan
    from omb_py.sweeps.reporter import TimeLeft

    points = job.plan.points
    least = launches_to_find(sum(one.rows for one in points if one.launch == 1))
    if tuning.launches < least:
        note(
            f"with --launches {tuning.launches} a single difference among so "
            f"many comparisons cannot be proved: it takes {least}"
        )
    folder, left = Folder(job.root), TimeLeft()
    if not any(map(folder.measured, points)):
        begin = tuple(one for one in points if one.launch == 1 and one.library_algorithm is None)
        tunings.measure(replace(job, plan=SweepPlan(begin, job.plan.left_out)), deadline)
    for point in points:
        for attempt in folder.state(point).attempts:
            left.add(point, attempt)
    seconds = left.seconds({point: len(folder.missing(point)) for point in points})
    about = f": about {duration(seconds)} left" if seconds else ""
    note(f"{plan_text(tuning, job)}{about}")


def about_of(tuning: Tuning) -> list[str]:
    """Return lines about files of rules: who wrote them, for which machine and library."""
    import platform

    from omb_py.core import VERSION

    return [
        f"written by omb-py {VERSION} on {date.today().isoformat()}",
        f"machine {tuning.machine.name} ({platform.node()}), {tuning.build.text}",
        f"command: {shlex.join(['omb-py', *sys.argv[1:]])}",
        "a rule stands only where it was measured faster twice; it holds there alone",
    ]


def show_use(tuning: Tuning, files: Sequence[Path], helps: bool) -> None:
    """Print how the files are put in force if that helps, and keep it beside them."""
    from omb_py.sweeps.files import write_atomically

    if not helps:
        print(f"no rule: {tuning.build.text} takes its own choice everywhere")
        return
    variables = tuning.environment(files)
    exports = "".join(f"export {name}={shlex.quote(v)}\n" for name, v in variables.items())
    about = "".join(f"# {line}\n" for line in about_of(tuning))
    write_atomically(tuning.root / ENVIRONMENT, about + exports)
    print(f"in force by (kept in {tuning.root / ENVIRONMENT}):\n{exports}", end="")
    print(f"with a launcher: {launcher_words(tuning, variables)}")
    print("in a machine's file, table [environment]:")
    print("".join(f'  {name} = "{value}"\n' for name, value in variables.items()), end="")


def launcher_words(tuning: Tuning, variables: dict[str, str]) -> str:
    """Return a launcher's command line that puts variables in force on all ranks."""
    if tuning.build.name == "Open MPI":
        words = [
            word
            for name, value in variables.items()
            for word in ("--mca", name.removeprefix("OMPI_MCA_"), value)
        ]
    else:
        words = [word for name, value in variables.items() for word in ("-genv", name, value)]
    return shlex.join(["mpiexec", *words, "…"]).replace("'…'", "…")

"""``omb-py overhead BENCHMARK``: the time that each binding adds to the native call."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from omb_py.benchmarks import Benchmark
from omb_py.bindings import BINDINGS, Binding, load_before_mpi
from omb_py.cli.benchmark import CONTEXT, graph_writers
from omb_py.cli.help import GroupedCommand
from omb_py.core.dataclass import replace
from omb_py.core.errors import OmbError, UsageError, needing
from omb_py.core.mpi import launcher
from omb_py.core.options import Options
from omb_py.measure.adapted import check_binding_options
from omb_py.measure.launch import launch
from omb_py.measure.run import run
from omb_py.options.option import Row
from omb_py.options.parse import apart, long_words, make_options
from omb_py.options.table import alike, count, parameters

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

LAUNCHED = (
    Row("--launches", count(2), None, "",
        "Start N launches after each other, without a launcher before omb-py, and print medians, "
        "95 % intervals (from 6 launches on) and ranges over the launches. --timeout limits each "
        "launch (600 s by default)."),
    Row("-n --ranks", count(1), None, "", "Ranks of each of the --launches.",
        show_default="2; neighborhoods 3"),
    Row("--launcher", "COMMAND", None, "",
        "Launcher of the --launches, by default the mpiexec beside this Python."),
)
# fmt: on

OF_ALL = {"--timeout": True, "--output": True, "--format": True, "--force": False} | {
    name: True for row in LAUNCHED for name in row.names
}
"""Options that a single one of the launches does not get, and whether they have a value."""

LAUNCH_SECONDS = 600.0

WORDS = "omb_py.overhead"
"""The key by which a context keeps the words of the command line."""


class OverheadCommand(GroupedCommand):
    """A comparison, which keeps its words for the launches that it may start."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[WORDS] = long_words([*args], self.params)
        return super().parse_args(ctx, args)


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
        of_launches = {name: values.pop(name) for name in ("launches", "ranks", "launcher")}
        options = make_options(values)
        names = chosen(bindings)
        if refusal := why_no_launches(of_launches, options):
            raise UsageError(refusal)
        if of_launches["launches"] is not None:
            _, words = apart(click.get_current_context().meta[WORDS], OF_ALL)
            measure_launches(benchmark, words, of_launches, options)
            return
        optional = bindings in (None, "all")
        load_before_mpi(names)
        if launcher.by_torchrun() and not any(BINDINGS.load(name).needs_mpi for name in names):
            options = replace(options, binding=names[0])
        given = alike(options) | {
            "benchmark": (f"overhead {benchmark.name}",),
            "--bindings": (names,),
            "--rounds": (rounds,),
        }
        with launch(benchmark.name, options, given) as launched:
            from omb_py.measure.overhead import kind_of_bindings

            made = partial(load, names, optional)
            kind_of = partial(kind_of_bindings, made, rounds, optional)
            run(launched, benchmark, options, partial(graph_writers, options), kind_of=kind_of)

    return OverheadCommand(
        benchmark.name,
        callback=callback,
        params=[
            *(row.option("What is compared") for row in COMPARED),
            *(row.option("Several launches") for row in LAUNCHED),
            *parameters(benchmark, frozenset()),
        ],
        short_help=benchmark.summary,
        help=f"What each binding adds to {benchmark.name}, measured alternately in one job.\n\n"
        f"{benchmark.summary} -i and -x count each binding's iterations.",
        context_settings=CONTEXT,
    )


def why_no_launches(of_launches: Mapping[str, Any], options: Options) -> str | None:
    """Return why options of several launches are refused; None if they are not."""
    if of_launches["launches"] is None:
        given = next((name for name in ("ranks", "launcher") if of_launches[name]), None)
        return given and (
            f"--{given} is for --launches: name both, or start a single launch by mpiexec -n RANKS"
        )
    if not launcher.is_alone():
        return (
            "--launches starts jobs itself: run it without a launcher, with -n RANKS, as in omb-py "
            "overhead latency --launches 8 -n 2"
        )
    if options.graph:
        return "--graph draws a single launch: name a file by --output, and use omb-py plot"
    return None


def measure_launches(
    benchmark: Benchmark, words: list[str], of_launches: Mapping[str, Any], options: Options
) -> None:
    """Start the launches after each other, and print their overheads over all of them.

    The rows of each launch are in the file of ``--output`` when it ends. Raises `OmbError` at the
    first launch that fails.
    """
    with needing("analysis"):
        from omb_py.analysis import overhead
        from omb_py.analysis.table import load
        from omb_py.cli.confirm import folder_for
        from omb_py.core.text import tables
        from omb_py.core.text.status import status
        from omb_py.sweeps.compare_native import OMB_PY, find_launcher
        from omb_py.sweeps.compare_native import launch as start

    number = of_launches["launches"]
    ranks = of_launches["ranks"] or (3 if "topology" in benchmark.options else 2)
    command = [
        *find_launcher(of_launches["launcher"]),
        "-n",
        str(ranks),
        *OMB_PY,
    ]
    command += ["overhead", benchmark.name, *words, "--quiet"]
    notes: dict[str, str] = {}
    with folder_for(None) as folder, status() as say:
        file = Path(options.output or folder / "launches.csv")
        before = load(file).runs if file.exists() and not options.force else {}
        for one in range(1, number + 1):
            what, out = f"launch {one} of {number}", folder / f"{one}.txt"
            say(what)
            timeout = options.timeout or LAUNCH_SECONDS
            clear = ["--force"] * (options.force and one == 1)
            start([*command, f"--output={file}", *clear], what, [file], out, timeout)
            for text in out.with_suffix(".stderr").read_text(errors="replace").splitlines():
                kind = "".join(letter for letter in text if not letter.isdigit())
                notes.setdefault(kind, text.replace("note: ", f"note: {what}: ", 1))
        rows = load(file).overhead
    rows = rows[~rows["run"].isin(before)]
    print("\n".join(notes.values()), file=sys.stderr, end="\n" if notes else "")
    if not options.quiet:
        points = overhead.over_launches(rows).drop(columns=["run", "file", "line"])
        points = points.dropna(axis="columns", how="all")
        tables.write(tables.Target(options.format), overhead.sheets(rows), points)


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


def load(names: tuple[str, ...], optional: bool, job: Job, options: Options) -> list[Binding]:
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

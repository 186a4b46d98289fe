"""``omb-py guidelines``: what a sane MPI library satisfies, checked on results or measured."""

from __future__ import annotations

import contextlib
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from omb_py.cli.analysis_options import (
    format_of,
    listed,
    note_others,
    output_options,
    read,
    row_options,
)
from omb_py.core.errors import UsageError, needing
from omb_py.core.mpi import launcher as launchers
from omb_py.core.text import files
from omb_py.core.text.words import count
from omb_py.options.types import PRECISION, SIZE_LIST, NewFolder, WholeNumber

if TYPE_CHECKING:
    import pandas as pd

FOR_PROGRAMS = ("csv", "json")
"""Formats beside which nothing else may stand."""

SIZES = (4, 32, 256, 2048, 16384, 131072, 1048576)
"""Message sizes of the left sides that are measured unless others are named."""

MAX_REASONS = 20
"""Reasons of a failure that are printed; of the others only their number."""


@click.command("guidelines", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("paths", nargs=-1, metavar="[FILE]...")
@click.option(
    "--tolerance",
    type=PRECISION,
    metavar="P%",
    show_default="5%",
    help="By how much a call may be slower before it violates a guideline.",
)
@click.option(
    "--only",
    callback=listed,
    metavar="NAME[,...]",
    help="Only guidelines of these kinds (emulation, non-blocking, persistent, monotony, "
    "splitting) and about these benchmarks, as in allreduce,bcast.",
)
@click.option(
    "--fail-above",
    metavar="P%|Fx",
    help="Exit with code 4 if a guideline is violated by more than 5% or 1.05x beyond the noise; "
    "with code 7 if the noise cannot exclude that.",
)
@row_options
@output_options("text", "markdown", *FOR_PROGRAMS)
@click.option(
    "--measure",
    is_flag=True,
    help="Measure all sides first, by turns; what is there already is kept.",
)
@click.option(
    "-n", "--np", "ranks", type=WholeNumber(min=2), default=2, show_default=True, help="Ranks."
)
@click.option("--nodes", type=WholeNumber(min=1), default=1, show_default=True, help="Nodes.")
@click.option(
    "--rounds",
    type=WholeNumber(min=1),
    default=10,
    show_default=True,
    help="Launches of each benchmark.",
)
@click.option(
    "--sizes",
    type=SIZE_LIST,
    metavar="SIZE,...",
    show_default="4,32,256,2K,16K,128K,1M",
    help="Message sizes of the left sides; the right sides get those that they need.",
)
@click.option("--buffer", default="numpy", show_default=True, help="Buffer library.")
@click.option("--binding", default="native", show_default=True, help="How MPI is called.")
@click.option("--iterations", "-i", type=WholeNumber(min=1), help="Iterations of each size.")
@click.option(
    "--mend",
    is_flag=True,
    help="Then measure the library's algorithms where a guideline is violated.",
)
@click.option(
    "--machine",
    default="local",
    show_default=True,
    metavar="MACHINE",
    help="Machine to run on, as of omb-py sweep.",
)
@click.option(
    "--folder",
    type=NewFolder(),
    metavar="FOLDER",
    help="Folder of what is measured; by default sweeps/guidelines-MACHINE.",
)
@click.pass_context
def command(ctx: click.Context, /, **values: Any) -> None:
    """Check that no MPI call is slower than others that do the same.

    omb-py guidelines results/ --fail-above 20%

    omb-py guidelines --measure -n 4 --mend

    FILE is a file or a folder of results. Allreduce shall not be slower than Reduce and Bcast, a
    small message not slower than a large one; verdicts need several launches of each benchmark.
    """
    with needing("analysis"):
        from omb_py.analysis.compare import verdict
        from omb_py.analysis.guidelines import check, rules, text

    rules.chosen(values["only"])
    tolerance = check.TOLERANCE if values["tolerance"] is None else values["tolerance"]
    allowed = verdict.limit(values["fail_above"]) if values["fail_above"] else None
    failed = False
    if values["measure"]:
        failed = measure(ctx, values, tolerance)
    elif not values["paths"]:
        raise UsageError("name files of results, or measure with --measure")
    elif values["mend"]:
        raise UsageError("--mend measures: add --measure")
    rows = rows_of(values)
    points = check.check(rows, tolerance, values["only"])
    missing = check.not_measured(rows, points, values["only"])
    reasons = [] if allowed is None else text.failures(points, allowed)
    write(points, missing, tolerance, reasons, values["kind"], values["output"])
    if len(reasons) > MAX_REASONS:
        reasons = [*reasons[:MAX_REASONS], f"and {len(reasons) - MAX_REASONS} more"]
    for reason in reasons:
        click.echo(f"FAILED: {reason}", err=True)
    if reasons:
        ctx.exit(verdict.FAILED)
    if failed:
        ctx.exit(1)
    if allowed is not None and (open_points := int((~(points["ratio_high"] <= allowed)).sum())):
        click.echo(
            f"CANNOT TELL: {open_points} of {count(len(points), 'check')} may be more than "
            f"{verdict.factor(allowed)} slower: measure more launches",
            err=True,
        )
        ctx.exit(verdict.UNDECIDED)


def rows_of(values: dict[str, Any]) -> pd.DataFrame:
    """Rows of the files named and of the folder of what was measured."""
    paths = [*values["paths"], *([str(folder_of(values))] if values["measure"] else [])]
    results = read(paths, values["where"], values["assume"])
    note_others(results, "guidelines")
    return results.rows


def folder_of(values: dict[str, Any]) -> Path:
    """Where results are measured into."""
    machine = Path(values["machine"]).stem
    return values["folder"] or Path("sweeps") / f"guidelines-{machine}"


def measure(ctx: click.Context, values: dict[str, Any], tolerance: float) -> bool:
    """Measure what is missing; whether a part of it failed.

    Leaves with the sweep's exit code where that was stopped.
    """
    if launchers.ranks() > 1:
        raise UsageError("--measure starts jobs itself: run omb-py guidelines without a launcher")
    with needing("sweep"):
        from omb_py.sweeps import guidelines as sweeping

    from omb_py.analysis.guidelines import check, rules, text

    sizes = values["sizes"] or SIZES
    chosen = rules.chosen(values["only"])
    failed = run(ctx, values, sweeping.NAME, sweeping.sizes_of(chosen, sizes, values["ranks"]), {})
    if values["mend"]:
        points = check.check(rows_of(values), tolerance, values["only"])
        mine = points[(points["verdict"] == check.VIOLATED) & (points["ranks"] == values["ranks"])]
        words, wanted = {}, {}
        for (mpi, name), members in mine.groupby(["mpi", "benchmark"]):
            if found := text.algorithms(mpi, name):
                words[name] = found
                wanted[name] = tuple(sorted({int(size) for size in members["bytes"].dropna()}))
        if words:
            failed |= run(ctx, values, f"{sweeping.NAME}-mend", wanted, words)
    return failed


def run(
    ctx: click.Context,
    values: dict[str, Any],
    name: str,
    sizes: dict[str, tuple[int, ...]],
    algorithms: dict[str, tuple[str, ...]],
) -> bool:
    """Run a sweep of benchmarks at sizes, with ``algorithms`` of each or the library's choice.

    Whether points failed; leaves with the sweep's exit code where it was stopped.
    """
    from omb_py.bindings import BINDINGS
    from omb_py.buffers import BUFFERS
    from omb_py.sweeps import catalog, config, points, toml
    from omb_py.sweeps import guidelines as sweeping
    from omb_py.sweeps.folder import Folder
    from omb_py.sweeps.machine import Machine
    from omb_py.sweeps.run import run_sweep

    for registry, member in ((BUFFERS, values["buffer"]), (BINDINGS, values["binding"])):
        try:
            config.member(registry, member)
        except ValueError as error:
            raise UsageError(str(error)) from error
    machine = toml.read(catalog.find("machines", values["machine"]), Machine)
    iterations = values["iterations"]
    common = {
        "nodes": values["nodes"],
        "buffers": values["buffer"],
        "bindings": values["binding"],
        "options": {} if iterations is None else {"iterations": iterations},
    }
    sweep = sweeping.sweep(name, sizes, values["ranks"], values["rounds"], common, algorithms)
    plan = points.plan(sweep, machine)
    place = folder_of(values) / ("mend" if algorithms else "")
    with contextlib.redirect_stdout(sys.stderr):
        code = run_sweep(sweep, machine, plan, None, Folder(place), None, "", 1.0)
    if code > 1:
        ctx.exit(code)
    return code == 1


def write(
    points: pd.DataFrame,
    missing: list[str],
    tolerance: float,
    reasons: list[str],
    kind: str | None,
    output: str | None,
) -> None:
    """Tables of violations, the summary and remarks; or all points, for programs.

    Raises `OmbError` when the file cannot be written.
    """
    from omb_py.analysis.guidelines import text
    from omb_py.core.text import tables

    kind = format_of(kind, output)
    summary = text.summary(points, missing)
    if kind == "json":
        document = text.json_document(points, missing, tolerance, reasons)
    elif kind == "csv":
        document = points.to_csv(index=False)
    else:
        out = io.StringIO()
        tables.write(list(text.sheets(points, tolerance)), kind, out)
        lines = [summary, *(f"Note: {remark}" for remark in text.remarks(points))]
        document = out.getvalue() + "\n".join(lines) + "\n"
    if output is None:
        click.echo(document, nl=False)
    else:
        files.write(output, document)
        click.echo(summary)

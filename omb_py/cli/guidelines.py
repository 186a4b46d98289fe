"""``omb-py guidelines``: guidelines that a good MPI library satisfies, checked on results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from omb_py.cli.analysis_options import (
    listed,
    note_others,
    output_options,
    read,
    row_options,
)
from omb_py.core.errors import needing
from omb_py.options.types import FACTOR, PERCENTAGE, TextType

if TYPE_CHECKING:
    from omb_py.core.text.tables import Target


@click.command("guidelines")
@click.argument("paths", nargs=-1, required=True, metavar="FILE...", type=click.Path())
@click.option(
    "--tolerance",
    type=PERCENTAGE,
    show_default="5%",
    help="The difference that does not matter: a call that is slower by more violates a guideline.",
)
@click.option(
    "--only",
    type=TextType("NAME[,...]", listed),
    help="Only guidelines of these kinds (emulation, non-blocking, persistent, monotony, "
    "splitting) and about these benchmarks, as in allreduce,bcast.",
)
@click.option(
    "--fail-above",
    type=FACTOR,
    help="The limit for the exit code: 4 if a guideline is violated by more than 5% or 1.05x "
    "beyond the noise; 7 if the noise cannot exclude that.",
)
@row_options
@output_options("text", "markdown", "csv", "json", "parquet")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    tolerance: float | None,
    only: tuple[str, ...] | None,
    fail_above: float | None,
    where: tuple[str, ...],
    assume: tuple[str, ...],
    to: Target,
) -> None:
    """Check that no MPI call is slower than others that do the same.

    \b
    omb-py sweep guidelines
    omb-py guidelines sweeps/guidelines-local --fail-above 20%

    FILE is a file or a folder of results. Allreduce shall not be slower than Reduce and Bcast, a
    small message not slower than a large one; verdicts need several launches of each benchmark.
    """
    with needing("analysis"):
        from omb_py.analysis.conclusion import facts as facts_of
        from omb_py.analysis.guidelines import check, rules
        from omb_py.analysis.judging import rows_to_judge
        from omb_py.analysis.verdict import MARGIN
        from omb_py.core.text import tables

    rules.chosen(only)
    tolerance = MARGIN if tolerance is None else tolerance
    results = read(paths, where, assume)
    note_others(results, "guidelines")
    rows, wrong = rows_to_judge(results.rows)
    points = check.guidelines(rows, tolerance, only)
    missing = check.not_measured(rows, points, only)
    said = [check.summary(points, missing)]
    remarks = list(check.remarks(points))
    found = (
        None
        if fail_above is None
        else check.conclusion(
            points, check.not_checked(rows, only), wrong, fail_above, results.lost
        )
    )
    facts = {
        "tolerance": tolerance,
        "not_measured": missing,
        **facts_of(found, said, remarks),
    }
    tables.write(to, check.sheets(points), points, remarks, facts)
    said += [] if found is None else found.lines()
    click.echo("\n".join(said), err=to.is_for_program)
    ctx.exit(0 if found is None else found.exit_code)

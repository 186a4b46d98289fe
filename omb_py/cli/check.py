"""``omb-py check``: results against the values that a machine is expected to reach."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from omb_py.cli.analysis_options import (
    input_options,
    note_doubts,
    note_others,
    output_options,
    read,
    refuse_options,
)
from omb_py.cli.confirm import confirm_options, confirmed, refuse_without_jobs
from omb_py.core.errors import UsageError, needing
from omb_py.core.text.words import count
from omb_py.options.types import PERCENTAGE

if TYPE_CHECKING:
    from omb_py.core.text.tables import Target

expected_option = click.option(
    "--expected",
    metavar="FILE|NAME",
    type=click.Path(),
    help="References: a CSV file, a JSON file in ReFrame's form, or a system that omb-py knows.",
)


@click.command("check")
@click.argument("paths", nargs=-1, required=True, metavar="FILE... [EXPECTED]", type=click.Path())
@expected_option
@click.option(
    "--system", metavar="NAME", help="System of the references, if a file has several; of --update."
)
@click.option(
    "--tolerance",
    type=PERCENTAGE,
    metavar="P%",
    help="The difference that does not matter: by how much a value may be worse if its reference "
    "states no limits.  [default: 15% for references from a file; those of systems that omb-py "
    "knows are not judged]",
)
@click.option(
    "--update",
    metavar="FILE",
    type=click.Path(),
    help="Write references from repeated launches, as .csv or, for ReFrame, .json.",
)
@confirm_options
@input_options
@output_options("text", "markdown", "csv", "json", "parquet")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    paths: Sequence[str],
    expected: str | None,
    system: str | None,
    tolerance: float | None,
    update: str | None,
    where: tuple[str, ...],
    assume: tuple[str, ...],
    statistic: str,
    to: Target,
    **values: Any,
) -> None:
    """Check results against expected values: is this machine all right?

    \b
    omb-py check results/ --expected alps-gh200
    omb-py check launches/ --update site.csv
    omb-py check results/ site.csv

    Exit code 4: a value is worse than allowed; 7: a limit could not be judged, or there is none.
    """
    with needing("analysis"):
        import pandas as pd

        from omb_py.analysis import references, references_check, references_learned
        from omb_py.analysis.conclusion import facts as facts_of
        from omb_py.analysis.failures import only_first
        from omb_py.analysis.hosts import refuse_mixture
        from omb_py.analysis.values import value_column
        from omb_py.core.text import tables

    if expected is None and update is None and len(paths) > 1:
        *paths, expected = paths
    if (expected is None) == (update is None):
        raise UsageError("name --expected, the references to check against, or --update")
    if update is not None:
        if to.path is not None:
            raise UsageError("--output is the table of --expected: leave it out with --update")
        unused = ("confirm", "again", "launcher", "timeout", "keep", "tolerance", "kind")
        refuse_options(unused, "is about --expected: leave it out with --update")
        written = tables.target(update, None, ctx.params["force"], ("csv", "json"))
    refuse_without_jobs(values["confirm"] is not None)
    known = None if expected is None else references.load(expected, system)
    results = read(paths, where, assume)
    if known is not None:
        known = references.asked(known, where)
    note_others(results, "check")
    lost = [*results.lost, *note_doubts(results)]
    name = system or Path(expected or update or "").stem
    if known is None:
        refuse_mixture(value_column(results.rows, statistic), results.runs)
        made = references_learned.from_runs(results.rows, name, statistic)
        references.save(made, written)
        allowed = made[["low", "high"]].abs().stack()
        click.echo(
            f"{update}: {count(len(made), 'reference')}, tolerances {allowed.min():.1%} to "
            f"{allowed.max():.1%}"
        )
        click.echo("\n".join(references_learned.sensitivity(made)))
        return
    judge = partial(
        references_check.check,
        expected=known,
        system=name,
        tolerance=tolerance,
        statistic=statistic,
    )
    rows = references_check.told_apart(results.rows)
    checked = judge(rows)
    first = only_first("", rows, results.runs, checked.failures, checked.points)
    failed, passed, new = confirmed(values, checked.failures, {"": rows}, results.runs)
    conclusion = checked.conclude(failed, lost)
    if new:
        checked = judge(pd.concat([rows, *new], ignore_index=True))
    remarks = [*checked.remarks, *first]
    facts = {
        "expected": name,
        "tolerance": checked.tolerance,
        **facts_of(conclusion, [conclusion.sentence], remarks),
        "not_confirmed": passed,
    }
    tables.write(to, [references_check.sheet(checked)], checked.lines, remarks, facts)
    said = [*(f"NOT CONFIRMED: {one}" for one in passed), *conclusion.lines()]
    click.echo("\n".join(said), err=to.is_for_program)
    ctx.exit(conclusion.exit_code)

"""``omb-py check``: results against the values that a machine is expected to reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from omb_py.cli.analysis_options import (
    input_options,
    output_options,
    read_to_judge,
    refuse_options,
)
from omb_py.cli.confirm import confirm_options, confirmed, refuse_without_jobs
from omb_py.core.errors import UsageError, needing
from omb_py.core.text.words import count
from omb_py.options.types import PERCENTAGE

if TYPE_CHECKING:
    import pandas as pd

    from omb_py.analysis.references_check import Checked
    from omb_py.analysis.table import Results
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
        from omb_py.analysis import references, references_check
        from omb_py.core.text import tables

    if expected is None and update is None and len(paths) > 1:
        *paths, expected = paths
    if (expected is None) == (update is None):
        raise UsageError("name --expected, the references to check against, or --update")
    name = system or Path(expected or update or "").stem
    if expected is None:
        if to.path is not None:
            raise UsageError("--output is the table of --expected: leave it out with --update")
        unused = ("confirm", "again", "launcher", "timeout", "keep", "tolerance", "kind")
        refuse_options(unused, "is about --expected: leave it out with --update")
        written = tables.target(update, None, ctx.params["force"], ("csv", "json"))
        results, _ = read_to_judge(paths, where, assume, "check")
        click.echo(update_references(results, written, name, statistic))
        return
    refuse_without_jobs(values["confirm"] is not None)
    known = references.asked(references.load(expected, system), where)
    judge = partial(
        references_check.check,
        expected=known,
        system=name,
        tolerance=tolerance,
        statistic=statistic,
    )
    results, lost = read_to_judge(paths, where, assume, "check")
    ctx.exit(judge_results(results, lost, judge, to, values))


def update_references(results: Results, written: Target, name: str, statistic: str) -> str:
    """Write references from results, and return what they are, in words."""
    from omb_py.analysis import references, references_learned
    from omb_py.analysis.hosts import refuse_mixture
    from omb_py.analysis.values import value_column

    refuse_mixture(value_column(results.rows, statistic), results.runs)
    made = references_learned.from_runs(results.comparable, name, statistic)
    references.save(made, written)
    allowed = made[["low", "high"]].abs().stack()
    said = f"{written.path}: {count(len(made), 'reference')}, tolerances {allowed.min():.1%} to "
    return "\n".join([f"{said}{allowed.max():.1%}", *references_learned.sensitivity(made)])


def judge_results(
    results: Results,
    lost: Sequence[str],
    judge: Callable[[pd.DataFrame], Checked],
    to: Target,
    values: Mapping[str, Any],
) -> int:
    """Write what ``judge`` finds in results, and the conclusion; return the exit code.

    ``values`` are those of `confirm_options`.
    """
    import pandas as pd

    from omb_py.analysis import references_check
    from omb_py.analysis.conclusion import facts as facts_of
    from omb_py.analysis.failures import only_first
    from omb_py.core.text import tables

    rows = references_check.told_apart(results.rows)
    checked = judge(rows)
    first = only_first("", rows, results.runs, checked.failures, checked.points)
    failed, passed, new = confirmed(values, checked.failures, {"": rows}, results.runs)
    conclusion = checked.conclude(failed, lost)
    if new:
        checked = judge(pd.concat([rows, *new], ignore_index=True))
    remarks = [*checked.remarks, *first]
    facts = {
        "expected": checked.name,
        "tolerance": checked.tolerance,
        **facts_of(conclusion, [conclusion.sentence], remarks),
        "not_confirmed": passed,
    }
    tables.write(to, [references_check.sheet(checked)], checked.lines, remarks, facts)
    said = [*(f"NOT CONFIRMED: {one}" for one in passed), *conclusion.lines()]
    click.echo("\n".join(said), err=to.is_for_program)
    return conclusion.exit_code

"""``omb-py history FOLDER...``: changes in months of results."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from omb_py.cli.analysis_options import (
    input_options,
    note,
    note_others,
    note_problems,
    output_options,
)
from omb_py.core.errors import OmbError, needing
from omb_py.core.text.words import count, first_of
from omb_py.options.types import FACTOR

if TYPE_CHECKING:
    from omb_py.core.text.tables import Target


@click.command("history")
@click.argument("paths", nargs=-1, required=True, metavar="FOLDER...", type=click.Path())
@click.option(
    "--fail-above",
    type=FACTOR,
    help="The limit for the exit code: 4 if a point is now slower than at its best by more than 5% "
    "or 1.05x, or its newest data was wrong; 7 if a point cannot be judged.",
)
@click.option(
    "--since",
    metavar="DATE",
    help="Only runs from this date on, as in 2026-11-21: after a change that was accepted.",
)
@input_options
@output_options("text", "markdown", "csv", "json", "parquet", "html")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    fail_above: float | None,
    since: str | None,
    where: tuple[str, ...],
    assume: tuple[str, ...],
    statistic: str,
    to: Target,
) -> None:
    """Find changes in the results of months, and what else changed then.

    \b
    omb-py history nightly/
    omb-py history nightly/ -o history.html
    omb-py history nightly/ --fail-above 5% --since 2026-11-21

    FOLDER has results of many runs, in any format that omb-py reads. Text needs a date in the name
    of its file or folder, as in 2026-11-21.
    """
    with needing("history"):
        from omb_py.analysis import history, history_gate, select, table
        from omb_py.analysis.conclusion import facts as facts_of
        from omb_py.analysis.history_page import page
        from omb_py.core.text import tables

    first = history.since_of(since) if since else None
    results = table.load(paths, select.assumptions(assume))
    note_problems(results.problems)
    rows = select.where(results.rows, where)
    note_others(results, "history")
    found = history.history(replace(results, rows=rows), statistic, first)
    if found.undated:
        note(
            f"{count(len(found.undated), 'file')} without a date left out: "
            f"{first_of(found.undated, 3)}; write the date into the name of the file or of its "
            "folder, as in 2026-11-21"
        )
    if not found.runs:
        if found.left_out:
            raise OmbError(f"--since {since}: all {found.left_out} runs are older")
        raise OmbError("no row has a date and a number: there is no history")
    said = history.summary(found)
    conclusion = None if fail_above is None else history_gate.conclusion(found, fail_above)
    if conclusion is None:
        note_problems([*found.wrong.values()])
    since_text = found.since and history.day(found.since)
    facts = {"since": since_text, "runs": found.runs, **facts_of(conclusion, [said])}
    more = () if conclusion is None else history_gate.sheets(conclusion, to.path is not None)
    if to.format == "html":
        tables.write_content(to, page(found, replace(results, rows=rows), conclusion))
    else:
        tables.write(to, [*history.sheets(found), *more], found.rows, (), facts)
    lines = [said, *([] if conclusion is None else conclusion.lines())]
    click.echo("\n".join(lines), err=to.path is None and to.format not in ("text", "markdown"))
    ctx.exit(0 if conclusion is None else conclusion.exit_code)

"""``omb-py efficiency``: the POP factors of parallel runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from omb_py.cli import debug_option
from omb_py.cli.analysis_options import MAX_NOTES, note, output_options
from omb_py.core.errors import needing

if TYPE_CHECKING:
    from omb_py.core.text.tables import Target


@click.command("efficiency")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path())
@click.option(
    "--strong/--weak",
    "strong",
    default=None,
    help="Whether the work of several runs was the same in total (strong) or per rank (weak)."
    "  [default: strong if the time outside MPI of all ranks did not grow, else none]",
)
@output_options("text", "markdown", "csv", "json", "parquet")
@debug_option
def command(
    runs: tuple[str, ...],
    strong: bool | None,
    to: Target,
) -> None:
    """Break down parallel efficiency into the POP factors.

    RUN is a profile: the folder of omb-py profile, or files of mpitrace. Parallel efficiency is
    load balance times communication efficiency. Several runs are compared with the one on the
    fewest ranks, by --strong or --weak scaling.
    """
    with needing("tables"):
        import pandas as pd

        from omb_py.core.text import tables
        from omb_py.tracing import efficiency

    found = efficiency.series_of(efficiency.load(runs), None if strong is None else not strong)
    notes = list(efficiency.notes(found))
    rows = pd.DataFrame([efficiency.row_of(run, found) for run in found.runs])
    tables.write(to, [efficiency.sheet(found)], rows, notes, efficiency.details(found))
    if to.format == "csv":
        for sentence in notes[:MAX_NOTES]:
            note(sentence)

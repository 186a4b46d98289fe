"""``omb-py traffic``: the traffic of links during a profiled program."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from omb_py.cli import debug_option
from omb_py.cli.analysis_options import output_options
from omb_py.core.errors import needing

if TYPE_CHECKING:
    from omb_py.core.text.tables import Target


@click.command("traffic")
@click.argument("folder", metavar="FOLDER", type=click.Path())
@output_options("text", "markdown", "csv", "json", "parquet")
@debug_option
def command(folder: str, to: Target) -> None:
    """Show the traffic of a profiled run: requests, links, files.

    FOLDER is one that omb-py profile --traffic wrote. Shows what the program requested from rank to
    rank, which paths messages took, and what each link of each host carried.
    """
    with needing("analysis"):
        import pandas as pd

        from omb_py.core.text import tables
        from omb_py.tracing.records.layout import record_paths
        from omb_py.tracing.records.run import open_run
        from omb_py.tracing.traffic import paths, report

    ranks = paths.read_folder(folder)
    found = report.traffic(ranks, open_run(folder) if record_paths(folder) else None)
    rows = pd.DataFrame(report.rows(found), columns=list(report.COLUMNS), dtype=object)
    tables.write(to, report.sheets(found), rows, report.notes(found))

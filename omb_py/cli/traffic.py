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
    """Show the traffic of a profiled run: requests and links.

    FOLDER is one that omb-py profile --traffic wrote. Shows the messages, accesses to windows and
    collective calls that the program requested of MPI, and what each link of each host carried.
    """
    with needing("tables"):
        import pandas as pd

        from omb_py.core.text import tables
        from omb_py.tracing import traffic
        from omb_py.tracing.records.layout import record_paths
        from omb_py.tracing.records.run import open_run

    ranks = traffic.read_folder(folder)
    found = traffic.traffic(ranks, open_run(folder) if record_paths(folder) else None)
    rows = pd.DataFrame(traffic.rows(found), columns=list(traffic.COLUMNS), dtype=object)
    tables.write(to, traffic.sheets(found), rows, traffic.notes(found))

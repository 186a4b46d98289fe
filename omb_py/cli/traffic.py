"""``omb-py traffic``: what the library and its links transferred for a profiled program."""

from __future__ import annotations

from functools import partial

import click

from omb_py.cli.analysis_options import output_options, write_table
from omb_py.core.errors import needing


@click.command("traffic", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("folder", metavar="FOLDER")
@output_options("text", "markdown", "csv")
@click.option("--debug", is_flag=True, expose_value=False, help="Show tracebacks of errors.")
def command(folder: str, kind: str | None, output: str | None) -> None:
    """Show the traffic of a profiled run, and which algorithms ran.

    FOLDER is one that omb-py profile --traffic wrote. Shows what the program requested, what the
    MPI library transferred from rank to rank, and what each link of each host carried.
    """
    with needing("analysis"):
        from omb_py.tracing.records import layout, read_folder
        from omb_py.tracing.traffic import reading, report, text

    ranks = reading.read_folder(folder)
    recorded = layout.record_paths(folder)
    found = report.traffic(ranks, read_folder(folder) if recorded else [])
    write_table(partial(text.write, found), kind, output)

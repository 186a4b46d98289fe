"""``omb-py traffic``: what the library and its links transferred for a profiled program."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import click

from omb_py.core.errors import needing
from omb_py.core.text import files

FORMATS = {".txt": "text", ".md": "markdown", ".csv": "csv"}


@click.command("traffic", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("folder", metavar="FOLDER")
@click.option(
    "--format",
    "kind",
    type=click.Choice(sorted(FORMATS.values())),
    help="Format; by default that of the suffix of --output, else text.",
)
@click.option("--output", "-o", metavar="FILE", help="File to write instead of standard output.")
@click.option("--debug", is_flag=True, expose_value=False, help="Show tracebacks of errors.")
def command(folder: str, kind: str | None, output: str | None) -> None:
    """Show the traffic of a profiled run, and which algorithms ran.

    FOLDER is one that omb-py profile --traffic wrote. Shows what the program requested, what the
    MPI library transferred from rank to rank, and what each link of each host carried.
    """
    kind = kind or (FORMATS.get(Path(output).suffix, "text") if output else "text")
    with needing("analysis"):
        from omb_py.tracing.records import layout, read_folder
        from omb_py.tracing.traffic import reading, report, text

    ranks = reading.read_folder(folder)
    recorded = any(Path(folder).glob(f"rank-*{layout.SUFFIX}"))
    found = report.traffic(ranks, read_folder(folder) if recorded else [])
    if output is None:
        text.write(found, kind, sys.stdout)
        return
    out = io.StringIO()
    text.write(found, kind, out)
    files.write(output, out.getvalue())

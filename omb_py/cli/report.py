"""``omb-py report FILE...``: results as one page for a browser."""

from __future__ import annotations

from pathlib import Path

import click

from omb_py.cli.analysis_options import (
    input_options,
    name_option,
    read,
)
from omb_py.cli.check import expected_option
from omb_py.core.errors import UsageError, needing
from omb_py.core.text import files
from omb_py.core.text.status import status


@click.command("report")
@click.argument("paths", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The page, an HTML file; by default report.html, in FILE if that is a folder.",
)
@click.option("--force", is_flag=True, help="Overwrite the page of --output.")
@expected_option
@click.option("--system", metavar="NAME", help="System of --expected, if its file has several.")
@click.option("--title", help="The page's heading.")
@name_option
@input_options
def command(
    paths: tuple[str, ...],
    output: Path | None,
    force: bool,
    expected: str | None,
    system: str | None,
    title: str | None,
    names: tuple[str, ...],
    where: tuple[str, ...],
    assume: tuple[str, ...],
    statistic: str,
) -> None:
    """Write one HTML page with plots, tables and detected anomalies.

    The page needs no network and no other file. FILE may be a folder. Several FILEs that
    measured the same are side by side.
    """
    if output is None:
        output = (Path(paths[0]) if Path(paths[0]).is_dir() else Path()) / "report.html"
    files.refuse_existing([output], force)
    with needing("analysis"):
        from omb_py.analysis.report.page import report

    if expected is None and system is not None:
        raise UsageError("--system chooses one of --expected: name both, or leave it out")
    results = read(paths, where, assume, names)
    with status() as say:
        say("drawing figures")
        page = report(results, title, statistic, expected, system)
    files.write(output, page, "; name another file with --output")
    click.echo(f"{output}: {len(page.encode()) / 1e6:.1f} MB, open it in a browser", err=True)

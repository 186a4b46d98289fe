"""``omb-py efficiency``: the POP factors of parallel runs."""

from __future__ import annotations

import sys

import click

from omb_py.cli.analysis_options import MAX_NOTES, note, page_options
from omb_py.core.errors import needing


@click.command("efficiency", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "--strong/--weak",
    "strong",
    default=None,
    help="Whether the work of several runs was the same in total (strong) or per rank (weak)."
    "  [default: by the time outside MPI]",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown", "csv", "json"]),
    default="text",
    show_default=True,
    help="Format of the output; csv and json have all digits.",
)
@click.option(
    "--figure",
    "target",
    metavar="DIR|FILE",
    help="Also draw a figure: a .png, .svg or .pdf file, or a folder for a PNG.",
)
@page_options
@click.option("--by-phase", is_flag=True, help="Also for each phase that the program named.")
@click.option("--debug", is_flag=True, expose_value=False, help="Show tracebacks of errors.")
def command(
    runs: tuple[str, ...],
    strong: bool | None,
    form: str,
    target: str | None,
    width: str,
    theme: str,
    by_phase: bool,
) -> None:
    """Break down parallel efficiency into the POP factors.

    RUN is the folder of a run under omb-py profile --timeline: its recorded calls are replayed on
    an ideal network, which separates serialization from transfer time. A profile without a
    timeline (a folder or a file, also of mpitrace) yields load balance and communication
    efficiency. Several runs are compared with the one on the fewest ranks.
    """
    with needing("analysis"):
        from omb_py.core.text import tables
        from omb_py.tracing.efficiency import rows, series, text
        from omb_py.tracing.efficiency import runs as loading

    found = series.series_of(loading.load(runs), None if strong is None else not strong)
    notes = list(series.notes(found))
    sheets = [text.sheet(found)]
    if by_phase:
        sheets += [text.of_phases(point.label, point.run.phases) for point in found.points]
    if form == "text":
        tables.on_console(sheets, notes, sys.stdout)
    elif form == "markdown":
        click.echo(tables.markdown(sheets, notes))
    else:
        click.echo((rows.as_csv if form == "csv" else rows.as_json)(found), nl=False)
    if form == "csv":
        for sentence in notes[:MAX_NOTES]:
            note(sentence)
    if target is None:
        return
    with needing("analysis"):
        from omb_py.analysis.charts import figures
        from omb_py.analysis.charts.spec import Page
        from omb_py.tracing.efficiency import figure

    page = Page.parsed(width, theme)
    targets = figures.targets([figure.NAME], target, [])
    for path in figures.write({figure.NAME: figure.chart(found)}, targets, page):
        click.echo(path, err=form in ("csv", "json"))

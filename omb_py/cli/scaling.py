"""``omb-py scaling``: applications over numbers of ranks, and what that says of more ranks."""

from __future__ import annotations

import sys

import click

from omb_py.analysis.scaling import PUBLISHED_RANKS
from omb_py.apps import divides_work
from omb_py.cli.analysis_options import listed, note_problems, page_options
from omb_py.core.errors import UsageError, needing
from omb_py.options.option import Option
from omb_py.options.types import WholeNumber

SPEEDUP = "speedup"


@click.command("scaling", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--predict-ranks",
    "ranks",
    cls=Option,
    old_names=["--ranks"],
    type=WholeNumber(min=2),
    default=PUBLISHED_RANKS,
    show_default="those of OMB-Py's paper: 224",
    metavar="N",
    help="Number of ranks to predict for.",
)
@click.option(
    "--figure",
    cls=Option,
    old_names=["--output", "-o"],
    metavar="DIR|FILE",
    help="Also draw figures into a folder, or one into a file.",
)
@click.option(
    "--format",
    "formats",
    type=click.Choice(["png", "svg", "pdf"]),
    multiple=True,
    help="Format of figures; repeatable.  [default: that of FILE, else png]",
)
@click.option(
    "--rows",
    callback=listed,
    metavar="NAME[,...]",
    help="Compare options in one table instead: a row for each value of these.",
)
@click.option(
    "--columns", callback=listed, metavar="NAME[,...]", help="a column for each of these,"
)
@click.option(
    "--value",
    default=SPEEDUP,
    show_default=True,
    metavar="COLUMN",
    help="The number whose medians that table has.",
)
@click.option(
    "--where",
    multiple=True,
    metavar="NAME=VALUE[,...]",
    help="Only runs with these values in that table.",
)
@page_options
@click.option("--debug", is_flag=True, expose_value=False, help="Show tracebacks of errors.")
def command(
    files: tuple[str, ...],
    ranks: int,
    figure: str | None,
    formats: tuple[str, ...],
    rows: tuple[str, ...] | None,
    columns: tuple[str, ...] | None,
    value: str,
    where: tuple[str, ...],
    width: str,
    theme: str,
) -> None:
    """Show how applications scale; predict more ranks.

    FILE is a table that omb-py APPLICATION --output FILE.csv wrote, on several numbers of ranks,
    or a folder of such. Speed-ups are those over one rank that each job measured by turns, or
    over a job of one rank. Amdahl's law (Gustafson's for weak scaling) is fitted to those whose
    ranks had cores of their own; what a prediction rests on stands below it.

    --rows and --columns compare options: names of a problem's options (model, batch, strategy,
    allreduce) or of columns (ranks, mpi, binding).
    """
    with needing("analysis"):
        from omb_py.analysis.scaling import pivot, series, text
        from omb_py.analysis.scaling.rows import load
        from omb_py.core.text.tables import on_console

    loaded = load(files)
    note_problems(loaded.problems)
    if rows or columns or where or value != SPEEDUP:
        if not rows or not columns:
            raise UsageError("a table has rows and columns: give --rows and --columns")
        if figure or formats:
            raise UsageError("a table of options has no figure: leave out --figure and --format")
        on_console((pivot.sheet(loaded.runs, rows, columns, value, where),), (), sys.stdout)
        return
    every = series.series_of(loaded.runs, divides_work)
    on_console(tuple(text.sheets(every, ranks)), tuple(text.notes(every, ranks)), sys.stdout)
    if figure is None and not formats:
        return
    with needing("analysis"):
        from omb_py.analysis.plots import files as figure_files
        from omb_py.analysis.plots.style import Page
        from omb_py.analysis.scaling import figure as drawing

    page = Page.parsed(width, theme)
    named = drawing.names_of(every)
    targets = figure_files.targets(list(named), figure, formats)
    for path in figure_files.write_figures(
        lambda name: drawing.draw(named[name], ranks, page), targets
    ):
        click.echo(path)

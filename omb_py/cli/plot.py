"""``omb-py plot``: figures of results."""

from __future__ import annotations

import sys
from dataclasses import replace

import click

from omb_py.cli.analysis_options import (
    input_options,
    listed,
    name_option,
    note,
    note_problems,
    read,
    refuse_options,
)
from omb_py.core.errors import OmbError, UsageError, needing
from omb_py.core.text.words import behind, first_of
from omb_py.options.types import TextType

TEXT = "text"
FORMATS = ("png", "svg", "pdf", TEXT)
KINDS = ("auto", "size", "ranks", "overhead", "parts", "pairs", "hosts")
OF_APPLICATIONS = ("speedup", "phases")

OF_FILES = ("width", "theme", "no_caption", "force")
"""Parameters about files of figures."""

UNUSED = {
    "phases": ("lines", "names", "sizes", "value", "assume", "statistic"),
    "speedup": ("names", "sizes", "assume", "statistic"),
    **dict.fromkeys(("overhead", "pairs"), ("lines", "names", "value", "statistic")),
    "hosts": ("lines", "names", "value"),
}
"""Parameters that do not change the figures of a kind."""


@click.command("plot")
@click.argument("paths", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@click.option(
    "--kind",
    type=click.Choice([*KINDS, *OF_APPLICATIONS]),
    default="auto",
    help="Over message sizes, over ranks, what omb-py overhead found, bars of numbers without "
    "sizes and of the parts of the start, or all pairs of ranks; auto: all that apply. All hosts "
    "against the median host. Of files of applications: the speed-up over ranks, or the phases.",
)
@click.option(
    "--lines",
    type=TextType("COLUMN[,...]", listed),
    help="Columns that distinguish lines, as in buffer,binding or file; others make separate "
    "figures. By default all that differ.",
)
@name_option
@click.option(
    "--sizes",
    type=TextType("SIZE[,...]", listed),
    help="Only these message sizes, as in 8,64K,1M.",
)
@click.option(
    "--value",
    default="auto",
    metavar="NAME",
    help="Another number than the benchmark's own: latency, bandwidth, rate, algbw, busbw, slowest "
    "(rank), event, overall, overlap, p99 or p999; of --kind speedup sequential_speedup.",
)
@click.option(
    "-o",
    "--output",
    metavar="DIR|FILE",
    type=click.Path(),
    help="Folder of the figures, or file of the only one; by default BENCHMARK.png in this folder, "
    "for up to 20 figures.",
)
@click.option(
    "--format",
    "formats",
    type=click.Choice(FORMATS),
    multiple=True,
    help="Format of figures; text draws lines in the terminal, without files if alone; "
    "repeatable.  [default: png]",
)
@click.option(
    "--width",
    default="17.5cm",
    show_default=True,
    metavar="LENGTH",
    help="Width that figures are printed at, as in 8.5cm (a column) or 17.5cm (a page); in cm "
    "without a unit. "
    "Text is 7 to 9 pt at every width.",
)
@click.option(
    "--theme",
    type=click.Choice(["light", "dark"]),
    default="light",
    show_default=True,
    help="Figures for white or for dark pages and slides.",
)
@click.option("--no-caption", is_flag=True, help="Leave the caption out of files, as for print.")
@click.option("--force", is_flag=True, help="Overwrite figures that are there.")
@input_options
def command(
    paths: tuple[str, ...],
    kind: str,
    lines: tuple[str, ...] | None,
    names: tuple[str, ...],
    sizes: tuple[str, ...] | None,
    value: str,
    output: str | None,
    formats: tuple[str, ...],
    width: str,
    theme: str,
    no_caption: bool,
    force: bool,
    statistic: str,
    where: tuple[str, ...],
    assume: tuple[str, ...],
) -> None:
    """Draw figures of results, in files or in the terminal.

    FILE is a file or a folder of any suite that omb-py reads. Prints the names of the files that
    it writes.
    """
    refuse_options(UNUSED.get(kind, ()), f"has no effect on --kind {kind}: leave it out")
    images = [word for word in dict.fromkeys(formats) if word != TEXT]
    in_terminal = TEXT in formats
    if in_terminal and not images and output is None:
        refuse_options(OF_FILES, "is for files: --format text alone writes none")
    with needing("analysis"):
        from omb_py.analysis.charts import figures, terminal
        from omb_py.analysis.charts.spec import Page
    page = Page.parsed(width, theme)
    chosen = {"kind": kind, "lines": lines, "value": value, "statistic": statistic}
    request = figures.requested(sizes or (), **chosen)
    if kind in OF_APPLICATIONS:
        from omb_py.analysis import speedup
        from omb_py.analysis.charts.bars import application_charts, charted, scales
        from omb_py.apps import divides_work

        runs, problems = speedup.load(paths, where)
        note_problems(problems)
        found = speedup.speedups(runs, divides_work)
        quantity = "speedup" if value == "auto" else value
        charts = figures.by_name(application_charts(found, kind, lines, quantity))
        if kind == "speedup":
            alone = [name for name, rows in charted(found, lines) if not scales(rows, quantity)]
            lacking = f"{quantity} of {first_of(alone)} is not known on two numbers of ranks"
            hint = " (with --no-references never)" if quantity != "speedup" else ""
            why = f"{lacking}{hint}: run it on others"
            if not charts:
                raise OmbError(why)
            if alone:
                note(why)
    else:
        results = read(paths, where, assume, names)
        charts = figures.charts(results, request)
        for sentence in figures.left_out(results, request, charts):
            note(sentence)
    if in_terminal:
        size, colored = terminal.terminal_size(), terminal.uses_color()
        if others := [name for name, chart in charts.items() if chart.along is None]:
            sentence = f"a terminal shows lines, not {first_of(others)}: name another --format"
            if not images and len(others) == len(charts):
                raise UsageError(sentence)
            note(sentence)
        for chart in charts.values():
            if chart.along is not None:
                click.echo(terminal.text(chart, *size, colored) + "\n", behind(sys.stdout))
    if no_caption:
        charts = {name: replace(chart, caption=()) for name, chart in charts.items()}
    if images or not in_terminal or output is not None:
        for path in figures.write(charts, output, images, page, force):
            click.echo(path)

"""``omb-py plot``: figures of results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from omb_py.cli.analysis_options import (
    bounds_option,
    find_bounds,
    input_options,
    listed,
    name_option,
    note,
    page_options,
    read,
)
from omb_py.core.errors import needing
from omb_py.options.option import Option
from omb_py.options.types import Graphs

if TYPE_CHECKING:
    from omb_py.analysis.plots.figures import Picture

IMAGES = ("png", "svg", "pdf")
KINDS = ("auto", "size", "ranks", "heat", "winner", "overhead", "parts", "pairs")
SAMPLE_KINDS = ("samples", "ecdf", "violin", "drift")


@click.command("plot")
@click.argument("paths", metavar="FILE...", nargs=-1, required=True)
@click.option(
    "--kind",
    type=click.Choice([*KINDS, *SAMPLE_KINDS]),
    default="auto",
    help="Over message sizes, over ranks, both as a heat map or as a map of who is best, what "
    "omb-py overhead found, bars of numbers without sizes and of the parts of the start, or all "
    "pairs of ranks; auto: all that apply but maps. Of files of --samples: every iteration by "
    "time, the distribution as ecdf or violin, or the running median (drift).",
)
@click.option(
    "--lines",
    callback=listed,
    metavar="COLUMN[,...]",
    help="Columns that distinguish lines, as in buffer,binding, or file; others make separate "
    "figures. By default all that differ.",
)
@name_option
@click.option(
    "--sizes",
    callback=listed,
    metavar="SIZE[,...]",
    help="Only these message sizes, as in 8,64K,1M.",
)
@click.option(
    "--value",
    default="auto",
    metavar="NAME",
    help="Another number than the benchmark's own: latency, bandwidth, rate, algbw, busbw, slowest "
    "(rank), event, overall, overlap, p99 or p999.",
)
@click.option(
    "--ratio",
    metavar="COLUMN=A/B",
    help="A heat map of rows with A divided by those with B, as in binding=buffer/native.",
)
@click.option(
    "--units",
    type=click.Choice(["decimal", "binary"]),
    default="decimal",
    help="Rates in MB/s and GB/s, or in MiB/s and GiB/s.",
)
@click.option(
    "--figure",
    cls=Option,
    old_names=["--output", "-o"],
    metavar="DIR|FILE",
    help="Folder of the figures, or file of the only one; by default BENCHMARK.png in this folder.",
)
@click.option(
    "--format",
    "formats",
    type=click.Choice(IMAGES),
    multiple=True,
    help="Format of figures; repeatable.  [default: png]",
)
@bounds_option
@page_options
@click.option(
    "-G",
    "--graph",
    type=Graphs(),
    default=(),
    metavar="tty,png,svg,pdf",
    help="Formats as a list; tty draws in the terminal, without files if alone.",
)
@input_options
def command(
    paths: tuple[str, ...],
    kind: str,
    lines: tuple[str, ...] | None,
    names: tuple[str, ...],
    sizes: tuple[str, ...] | None,
    value: str,
    ratio: str | None,
    units: str,
    figure: str | None,
    formats: tuple[str, ...],
    bounds_file: str | None,
    width: str,
    theme: str,
    graph: tuple[str, ...],
    statistic: str,
    where: tuple[str, ...],
    assume: tuple[str, ...],
) -> None:
    """Draw figures of results, in files or in the terminal.

    FILE is a file or a folder of any suite that omb-py reads. Prints the names of the files that
    it writes.
    """
    images = list(dict.fromkeys([*formats, *(word for word in graph if word != "tty")]))
    in_terminal = "tty" in graph
    with needing("analysis"):
        from omb_py.analysis.plots import figures
        from omb_py.analysis.plots import files as figure_files
        from omb_py.analysis.plots.heat import Ratio
        from omb_py.analysis.plots.style import Page

        if in_terminal:
            from omb_py.analysis.plots import terminal as terminal_plot
    page = Page.parsed(width, theme)
    request = figures.Request(
        kind,
        lines,
        figures.message_sizes(iter(sizes or ())),
        value,
        statistic,
        None if ratio is None else Ratio.parsed(ratio),
        find_bounds(bounds_file, paths),
    )
    pictures: Mapping[str, Picture]
    if kind in SAMPLE_KINDS:
        from omb_py.analysis.plots.samples import sample_plots
        from omb_py.analysis.samples.series import load

        pictures = sample_plots(load(paths, where), kind, request.sizes)
    else:
        results = read(paths, where, assume, names)
        pictures = figures.pictures(results, request)
        for sentence in figures.left_out(results, request, pictures):
            note(sentence)
    binary = units == "binary"
    if in_terminal:
        size = terminal_plot.terminal_size()
        colored = terminal_plot.uses_color()
        for picture in pictures.values():
            click.echo(terminal_plot.text(picture, *size, colored, binary) + "\n")
    if images or not in_terminal or figure is not None:
        files = figure_files.targets(list(pictures), figure, images)
        for path in figure_files.write(pictures, files, binary, page):
            click.echo(path)

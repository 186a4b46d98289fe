"""``omb-py show``: what was read, as a table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from omb_py.cli.analysis_options import (
    bounds_option,
    find_bounds,
    format_of,
    input_options,
    listed,
    name_option,
    output_options,
    read,
    write_table,
)
from omb_py.core.errors import UsageError, needing
from omb_py.core.text import files
from omb_py.options.types import PRECISION, Seconds

if TYPE_CHECKING:
    from omb_py.analysis.table import Results

DATA = ("csv", "json", "parquet")
"""Formats of whole results, as of `omb-py convert`."""


def rows_of(_: click.Context, __: click.Parameter, text: str) -> int | None:
    """A number of rows, None for ``all``."""
    if text == "all":
        return None
    if not text.isdecimal():
        raise click.BadParameter(f"{text} is no number of rows: write one, or all")
    return int(text)


def runs_of(results: Results) -> dict[str, Mapping[str, str]]:
    """The metadata of runs, of a sweep's with the seconds from the start of their launcher on.

    A sweep records them where the point was launched once (`omb_py.sweeps.folder.Attempt`).
    """
    runs = dict(results.runs)
    for file, run in results.rows[["file", "run"]].drop_duplicates().itertuples(index=False):
        point = Path(str(file))
        try:
            state = json.loads((point.parents[1] / "state" / f"{point.stem}.state").read_bytes())
            (attempt,) = state["attempts"]
            seconds = str(float(attempt["seconds"]))
        except (OSError, ValueError, LookupError, TypeError):
            continue
        if "launch_seconds" in runs.get(run, {}):
            runs[run] = {**runs[run], "launch_seconds": seconds}
    return runs


def write_results(results: Results, kind: str, output: str | None) -> None:
    """Write all rows as a file of one of `DATA`, or print them."""
    from omb_py.analysis import export

    content = export.content(results, f".{kind}")
    if output is not None:
        files.write(output, content)
    elif kind == "parquet":
        raise UsageError("--format parquet is no text: name a file with --output")
    else:
        click.echo(content, nl=False)


@click.command("show")
@click.argument("paths", metavar="FILE...", nargs=-1, required=True)
@click.option(
    "--columns",
    callback=listed,
    metavar="COLUMN[,...]",
    help="Columns to show; by default those that tell rows apart and the main numbers.",
)
@click.option(
    "--rows",
    callback=rows_of,
    default="1000",
    show_default=True,
    metavar="N|all",
    help="Rows of each table.",
)
@click.option(
    "--across",
    callback=listed,
    metavar="COLUMN[,...]",
    help="A column for each value of these instead, as in binding, and which is best.",
)
@click.option("--base", metavar="VALUE", help="What --across has ratios to.  [default: buffer]")
@click.option(
    "--launches",
    "by_launches",
    is_flag=True,
    help="Variance within and between repeated launches, and how many launches and iterations are "
    "best in the same time.",
)
@click.option(
    "--max-time",
    type=Seconds(min=0, min_open=True),
    metavar="SECONDS",
    help="With --launches: which are best in this time.",
)
@click.option(
    "--precision",
    type=PRECISION,
    metavar="P%",
    help="With --launches: which are enough for intervals of ±P %.",
)
@bounds_option
@name_option
@output_options("text", "markdown", *DATA)
@input_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    columns: tuple[str, ...] | None,
    rows: int | None,
    across: tuple[str, ...] | None,
    base: str | None,
    by_launches: bool,
    max_time: float | None,
    precision: float | None,
    bounds_file: str | None,
    names: tuple[str, ...],
    kind: str | None,
    output: str | None,
    where: tuple[str, ...],
    assume: tuple[str, ...],
    statistic: str,
) -> None:
    """Show results as aligned tables in readable units.

    FILE is a file or a folder of any suite that omb-py reads, compressed or not; - is standard
    input. Each benchmark has a table, above which stands what all of its rows share. CSV, JSON and
    Parquet have all rows and columns of the results.
    """
    with needing("analysis"):
        from omb_py.analysis import contest, launches, listing
        from omb_py.core.text import tables

    if across is None and base is not None:
        raise UsageError("--base is for --across: say what to compare, as in --across binding")
    if not by_launches and (max_time, precision) != (None, None):
        raise UsageError("--max-time and --precision are for --launches: add it")
    if max_time is not None and precision is not None:
        raise UsageError("--max-time and --precision exclude each other: leave out one")
    format_ = format_of(kind, output)
    if format_ in DATA:
        for name in ("columns", "rows", "across", "by_launches", "bounds_file", "statistic"):
            if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT:
                option = next(one.opts[0] for one in ctx.command.params if one.name == name)
                raise UsageError(
                    f"{option} is for tables: a file of format {format_} has all rows and columns "
                    "as they were measured"
                )
        write_results(read(paths, where, assume, names or None), format_, output)
        return
    results = read(paths, where, assume, names or (None if by_launches else ()))
    if by_launches:
        found = launches.launches(results.rows, runs_of(results), statistic)
        made = list(launches.sheets(found, max_time, precision))
        write_table(partial(tables.write, made), kind, output)
        return
    if across is not None:
        made = list(contest.sheets(results.rows, across, base, statistic))
        if not made:
            raise UsageError(f"no benchmark was measured with several {', '.join(across)}")
        write_table(partial(tables.write, made), kind, output)
        return
    known = find_bounds(bounds_file, paths)
    made = list(listing.sheets(results, columns, rows, known))
    write_table(partial(tables.write, made), kind, output)

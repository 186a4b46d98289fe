"""``omb-py show``: results of any suite as tables, or converted into one file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from omb_py.cli.analysis_options import (
    input_options,
    listed,
    name_option,
    note,
    note_doubts,
    note_problems,
    output_options,
    read,
    refuse_options,
)
from omb_py.core.errors import UsageError, needing
from omb_py.core.text.words import count
from omb_py.options.types import TextType

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from omb_py.analysis.table import Results
    from omb_py.core.text.tables import Target

DATA = ("csv", "json", "parquet")
"""Formats of whole results."""


REQUIRED = ("run", "benchmark", "bytes", "ranks")
"""Columns that a file of results must have."""


def rows_of(text: str) -> int | None:
    """Return a number of rows, None for ``all``; raise `ValueError` for another text."""
    if text == "all":
        return None
    if not text.isdecimal():
        raise ValueError(f"{text} is no number of rows: write one, or all")
    return int(text)


def write_results(results: Results, to: Target) -> None:
    """Write all rows, as they were measured, with the metadata of their runs."""
    from omb_py.core.text.tables import write_content

    write_content(to, content(results, to.format))
    if to.path is not None:
        rows = sum(map(len, (results.rows, results.overhead, results.pairs)))
        note(f"{to.path}: {count(rows, 'row')}")


def content(results: Results, form: str) -> bytes:
    """Return all rows and the metadata of their runs, in a format of `DATA`.

    Columns without any value are left out. Raises `UsageError` if a Parquet file would have rows of
    two kinds.
    """
    from omb_py.results.arrow import to_csv, to_json, to_parquet

    kinds = (results.rows, results.overhead, results.pairs)
    tables = [as_table(rows) for rows in kinds if len(rows)]
    runs = {  # in CSV names of metadata have small letters
        run: {name.lower(): value for name, value in data.items()}
        for run, data in results.runs.items()
    }
    if form == "parquet":
        if len(tables) > 1:
            raise UsageError(
                "these files have rows of different kinds (benchmarks, omb-py overhead, omb-py "
                "pairs), which are no one table: convert them one by one, or to CSV"
            )
        return to_parquet(tables[0], runs)
    if form == "json":
        return to_json(tables, runs)
    return to_csv(tables, runs)


def as_table(rows: pd.DataFrame) -> pa.Table:
    """Return rows as a pyarrow table, without columns about the files that they were read from.

    The ``source`` that distinguishes rows of different files becomes their ``variant``.
    """
    import pyarrow as pa

    from omb_py.results.columns import LOADED, ORIGIN

    if "source" in rows and rows["source"].notna().any():
        both = rows["variant"].str.cat(rows["source"], ", ")
        rows = rows.assign(variant=both.fillna(rows["variant"]).fillna(rows["source"]))
    names = [
        name
        for name in rows
        if name in REQUIRED
        or ((name not in LOADED or name in ORIGIN) and bool(rows[name].notna().any()))
    ]
    return pa.Table.from_pandas(rows[names], preserve_index=False)


def show_speedup(
    paths: tuple[str, ...],
    columns: tuple[str, ...] | None,
    across: tuple[str, ...] | None,
    where: tuple[str, ...],
    to: Target,
) -> None:
    """Write the speed-ups of applications."""
    with needing("analysis"):
        from omb_py.analysis import speedup
    from omb_py.apps import divides_work
    from omb_py.core.text import tables

    runs, problems = speedup.load(paths, where)
    note_problems(problems)
    if across is None:
        found = speedup.speedups(runs, divides_work)
        tables.write(to, speedup.sheets(found), found)
        return
    if to.format in DATA:
        raise UsageError(f"--across is for people: a file of format {to.format} has all runs")
    if columns is not None and len(columns) != 1:
        raise UsageError("--across of applications has one number: name one with --columns")
    tables.write(to, speedup.across(runs, across, (columns or ("speedup",))[0]))


@click.command("show")
@click.argument("paths", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@click.option(
    "--columns",
    type=TextType("COLUMN[,...]", listed),
    help="Columns to show; by default those that tell rows apart and the main numbers.",
)
@click.option(
    "--rows",
    type=TextType("N|all", rows_of),
    default="1000",
    show_default=True,
    help="Rows of each table.",
)
@click.option(
    "--across",
    type=TextType("COLUMN[,...]", listed),
    help="A column for each value of these instead, as in binding, and which is best.",
)
@click.option("--base", metavar="VALUE", help="What --across has ratios to.  [default: buffer]")
@click.option(
    "--speedup",
    is_flag=True,
    help="Of applications: time, speed-up, efficiency and phases over ranks. With --across NAME: "
    "a column for each value of an option, as in strategy, of the speed-up or the COLUMN of "
    "--columns.",
)
@name_option
@output_options("text", "markdown", "latex", *DATA)
@input_options
def command(
    paths: tuple[str, ...],
    columns: tuple[str, ...] | None,
    rows: int | None,
    across: tuple[str, ...] | None,
    base: str | None,
    speedup: bool,
    names: tuple[str, ...],
    where: tuple[str, ...],
    assume: tuple[str, ...],
    statistic: str,
    to: Target,
) -> None:
    """Show results of any suite as tables, or convert them.

    \b
    omb-py show results/ --across binding
    omb-py show osu_latency.txt -o latency.csv
    omb-py show kmeans.csv --speedup

    FILE is a file or a folder of results, compressed or not; - is standard input. Each benchmark
    has a table, above which stands what all of its rows share. CSV, JSON and Parquet have all rows
    and columns of the results: python3 -c 'import omb_py; help(omb_py.load)' describes them.
    """
    with needing("analysis" if across or speedup or to.format == "latex" else "tables"):
        from omb_py.analysis import listing
        from omb_py.core.text import tables

        if across:
            from omb_py.analysis import across as side_by_side
            from omb_py.analysis import overhead

    if speedup:
        unused = ("rows", "base", "names", "assume", "statistic")
        refuse_options(unused, "has no effect with --speedup: leave it out")
        if across is None:
            refuse_options(["columns"], "of --speedup needs --across: name both, or leave it out")
        show_speedup(paths, columns, across, where, to)
        return
    if across is None and base is not None:
        raise UsageError("--base is for --across: say what to compare, as in --across binding")
    if to.format in DATA:
        refuse_options(
            ("columns", "rows", "across", "statistic"),
            f"is for tables: a file of format {to.format} has all rows and columns as they were "
            "measured",
        )
        write_results(read(paths, where, assume, names or None), to)
        return
    if across is None:
        refuse_options(["statistic"], "is for --across: a table has each column as it was measured")
    else:
        refuse_options(("columns", "rows"), "has no effect with --across: leave it out")
    results = read(paths, where, assume, names or ())
    note_doubts(results)
    if across is not None:
        of_overhead = across == ("binding",) and len(results.overhead) > 0
        if of_overhead and not len(results.rows):
            made = list(overhead.across(results.overhead, base))
        else:
            made = list(side_by_side.sheets(results.rows, across, base, statistic))
            made += list(overhead.across(results.overhead)) if of_overhead else []
        if not made:
            raise UsageError(
                f"no benchmark was measured with several values of {', '.join(across)}"
            )
    else:
        made = list(listing.sheets(results, columns, rows))
    tables.write(to, made)

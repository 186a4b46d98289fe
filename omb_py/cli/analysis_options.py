"""What the commands that read results have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from omb_py.core.errors import needing
from omb_py.options.types import PRECISION

if TYPE_CHECKING:
    from omb_py.analysis.table import Results

Command = TypeVar("Command", bound=Callable[..., Any])

MAX_NOTES = 5
"""Problems with files that are printed; of the others only their number."""


launch_spread_option = click.option(
    "--launch-spread",
    type=PRECISION,
    metavar="P%",
    help="Relative standard deviation between launches on this machine, for points with too few "
    "runs to estimate it.",
)


def input_options(command: Command) -> Command:
    """``--where``, ``--assume`` and ``--statistic``; and ``--debug``, which `main` reads."""
    for option in (
        click.option(
            "--debug", is_flag=True, expose_value=False, help="Show tracebacks of errors."
        ),
        click.option(
            "--statistic",
            type=click.Choice(["auto", "median", "mean"]),
            default="auto",
            help="Statistic of a row; auto: the median where all rows have it, else the mean.",
        ),
        click.option(
            "--assume",
            multiple=True,
            metavar="COLUMN=VALUE",
            help="Value of a column in files that lack it, as in ranks=8.",
        ),
        click.option(
            "--where",
            multiple=True,
            metavar="COLUMN=VALUE[,...]",
            help="Only rows with these values, as in buffer=numpy,cupy.",
        ),
    ):
        command = option(command)
    return command


def read(paths: Iterable[str], where: Iterable[str] = (), assume: Iterable[str] = ()) -> Results:
    """The results in files and folders; what was left out of them is said on stderr.

    Raises `OmbError` when a file cannot be read or no row is left, `UsageError` for options that
    mean nothing, `MissingPackageError` where the extra for analysis is not installed.
    """
    with needing("analysis"):
        from omb_py.analysis import select, sources, table

    results = table.load(paths, select.assumptions(assume))
    for problem in results.problems[:MAX_NOTES]:
        note(str(problem))
    if len(results.problems) > MAX_NOTES:
        note(f"and {len(results.problems) - MAX_NOTES} more such lines")
    rows, notes = sources.label_sources(select.where(results.rows, where))
    for sentence in notes:
        note(sentence)
    return replace(
        results,
        rows=rows,
        overhead=select.where(results.overhead, where),
        notes=tuple(notes),
    )


def note_overheads(results: Results, command: str) -> None:
    """Say that rows of ``omb-py overhead`` are no part of what a command does."""
    if count := len(results.overhead):
        note(f"{count} rows of omb-py overhead are left out: omb-py {command} is about benchmarks")


def note(text: str) -> None:
    """One line on stderr; where that cannot be written results are not lost for it."""
    with suppress(OSError):
        click.echo(f"omb-py: note: {text}", err=True)

"""Measuring again what fails, for the commands that judge results: options, folder and progress."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from omb_py.cli.analysis_options import options, refuse_options
from omb_py.core.errors import UsageError
from omb_py.core.mpi import launcher as launchers
from omb_py.core.text.files import make_folder
from omb_py.core.text.status import status
from omb_py.core.text.words import count
from omb_py.options.types import Seconds, WholeNumber
from omb_py.results.metadata import Runs

if TYPE_CHECKING:
    import pandas as pd

    from omb_py.analysis.failures import Failure
    from omb_py.sweeps.confirming import Confirmed

confirm_options = options(
    click.option(
        "--confirm",
        type=WholeNumber(min=1),
        metavar="N",
        help="Measure again N times what fails, and judge the median.",
    ),
    click.option(
        "--again",
        metavar="COMMAND",
        help="Command of --confirm, as in 'mpiexec -n {ranks} osu_{benchmark} -m {min}:{max}'; "
        "{sizes} is a list. By default the command of the results.",
    ),
    click.option(
        "--launcher", metavar="COMMAND", help="By default the mpiexec beside this Python."
    ),
    click.option(
        "--timeout",
        type=Seconds(min=0, min_open=True),
        default=600.0,
        show_default=True,
        metavar="SECONDS",
        help="Time limit of a single run.",
    ),
    click.option(
        "--keep",
        metavar="DIR",
        type=click.Path(),
        help="Keep the output of all runs in this folder.",
    ),
)
"""The options of measuring again, and those of every job that a command starts."""


def confirmed(
    values: Mapping[str, Any],
    failures: Sequence[Failure],
    tables: Mapping[str, pd.DataFrame],
    runs: Runs,
) -> Confirmed:
    """Return the failures that stand, after measuring again if ``--confirm`` asks for it.

    ``tables`` has the rows by their side. Raises `UsageError` for options that exclude each other,
    and as `confirming.confirm` does.
    """
    from omb_py.sweeps import confirming

    times = values["confirm"]
    if times is None and values["again"] is not None:
        raise UsageError("--again is the command of --confirm: name both")
    if values["again"] is not None and not values["again"].strip():
        raise UsageError("--again is empty: name the command that measures again, or leave it out")
    if times is not None and launchers.ranks() > 1:
        raise UsageError("--confirm starts jobs itself: run it without a launcher")
    if times is None or not failures:
        return confirming.Confirmed([*failures], [], [])
    with folder_for(values["keep"]) as folder, status() as say:
        say(f"measuring {count(len(failures), 'failure')} again")
        way = confirming.Way(times, values["timeout"], values["again"], values["launcher"], folder)
        return confirming.confirm(failures, tables, runs, way)


def refuse_without_jobs(starts: bool) -> None:
    """Raise `UsageError` for options of jobs, unless the command ``starts`` some."""
    if not starts:
        unused = ("launcher", "timeout", "keep")
        refuse_options(unused, "is for jobs, and none is started: add --confirm, or leave it out")


@contextmanager
def folder_for(keep: str | None) -> Iterator[Path]:
    """Yield the folder of the runs: the named one, which must be empty, or a temporary one.

    Raises `UsageError` if the named folder is not empty.
    """
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="omb-py-") as folder:
            yield Path(folder)
        return
    path = Path(keep)
    try:
        make_folder(path)
        if any(path.iterdir()):
            raise UsageError(f"--keep {keep}: this folder is not empty")
    except OSError as error:
        raise UsageError(f"--keep {keep}: {error.strerror or error}") from error
    yield path

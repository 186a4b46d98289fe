"""``omb-py dask``: applications as programs of Dask, to compare with those of ranks."""

from __future__ import annotations

import os
from dataclasses import fields
from typing import Any

import click

from omb_py.apps import APPLICATIONS, Application, ApplicationRequest, RunSettings
from omb_py.cli import LazyGroup
from omb_py.cli.analysis_options import listed
from omb_py.core.errors import UsageError, ValidationError
from omb_py.core.mpi import launcher
from omb_py.core.options import Options
from omb_py.options.application import CHOICES, MEASURING, preset_option, problem_parameter
from omb_py.options.table import shared_options
from omb_py.options.types import WholeNumber

MEASURED = ("--scaling", "--repeats", "--warmup-repeats", "--check/--no-check")
"""What applications have and that means the same here."""

WIDTHS = (12, 9, 12, 12, 12, 12, 7)


class Applications(LazyGroup):
    """The applications that have a form for Dask."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.names())

    def names(self) -> dict[str, str]:
        found = {name: APPLICATIONS.load(name) for name in APPLICATIONS.names()}
        return {name: one.summary for name, one in found.items() if one.over_dask is not None}

    def find(self, name: str) -> click.Command:
        if not APPLICATIONS.has(name) or APPLICATIONS.load(name).over_dask is None:
            raise UsageError(f"{name} has no form for Dask: choose from {', '.join(self.names())}")
        return application_command(APPLICATIONS.load(name))


@click.group("dask", cls=Applications, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Measure applications as Dask runs them.

    A scheduler and workers are started on this node, without mpiexec. The problem, its options and
    the check are those of omb-py APPLICATION, and so are the rows: compare the files of both.

    \b
    omb-py dask transpose_sum --workers 4 --preset dask-cuda -o dask.csv
    mpiexec -n 4 omb-py transpose_sum --preset dask-cuda --binding coroutine -o dask.csv
    omb-py show dask.csv --speedup --across binding --columns time_s
    """


def application_command(application: Application[Any]) -> click.Command:
    """The command that measures ``application`` over Dask."""
    problem = [one for one in fields(application.problem) if one.name != "exchange"]

    def callback(
        workers: int | None, protocols: tuple[str, ...] | None, output: str | None, **values: Any
    ) -> None:
        options = Options(output=output, force=values.pop("force"))
        values.pop("debug")
        settings = {one.name for one in fields(RunSettings)} & values.keys()
        chosen = RunSettings(**{name: values.pop(name) for name in settings})
        request = ApplicationRequest(application, application.problem(**values), chosen, options)
        run(request, workers or os.cpu_count() or 1, protocols or ("tcp",))

    return click.Command(
        application.name,
        callback=callback,
        short_help=application.summary,
        help=f"{application.summary}\n\nomb-py dask {application.name} --workers N",
        context_settings={"help_option_names": ["-h", "--help"]},
        params=[
            click.Option(
                ["--workers"],
                type=WholeNumber(min=1),
                metavar="N",
                help="Processes of one thread each.  [default: cores]",
            ),
            click.Option(
                ["--protocol", "protocols"],
                callback=listed,
                metavar="NAME[,...]",
                help="What moves data between workers: tcp, ucxx; several take turns.  "
                "[default: tcp]",
            ),
            *([preset_option(application.presets)] if application.presets else ()),
            *map(problem_parameter, problem),
            *(row.option(MEASURING) for row in CHOICES if row.names[0] in MEASURED),
            *shared_options(frozenset({"output", "force", "debug"})),
        ],
    )


def run(request: ApplicationRequest, workers: int, protocols: tuple[str, ...]) -> None:
    """Measure, print a table, and write rows; raises `ValidationError` for a wrong result."""
    from omb_py.apps.runtime import over_dask
    from omb_py.results.application import ApplicationRow
    from omb_py.results.metadata import process_metadata
    from omb_py.results.output import check_output, file_writer

    if unknown := [name for name in protocols if name not in over_dask.PROTOCOLS]:
        raise UsageError(
            f"--protocol: there is no {unknown[0]}: choose from {', '.join(over_dask.PROTOCOLS)}"
        )
    if launcher.ranks() > 1:
        raise UsageError("dask starts its workers itself: leave out mpiexec, use --workers")
    options = request.options
    check_output(options.output, options.force)
    versions = over_dask.versions()
    writer = None
    if options.output is not None:
        writer = file_writer(options.output, ApplicationRow, options.force)
    click.echo(f"# omb-py dask {request.application.name}: distributed {versions['distributed']}")
    line("binding", "workers", "time(s)", "min(s)", "max(s)", request.application.unit, "check")
    rows = list(over_dask.measure(request, workers, protocols))
    for row in rows:
        times = (f"{value:.4f}" for value in (row.time_s, row.time_low_s, row.time_high_s))
        line(row.binding, str(row.ranks), *times, f"{row.value:.4g}", row.check or "-")
        if writer is not None:
            writer.start(process_metadata(row.run) | versions)
            writer.row(row)
    if writer is not None:
        writer.finish()
    wrong = [row.binding for row in rows if row.check == "Fail"]
    if wrong:
        raise ValidationError(f"{request.application.name} over {wrong[0]}: the result is wrong")


def line(*cells: str) -> None:
    """A line of the table."""
    left, *others = zip(cells, WIDTHS, strict=True)
    click.echo(left[0].ljust(left[1]) + "".join(cell.rjust(width) for cell, width in others))

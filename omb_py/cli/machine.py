"""``omb-py machine``: machine files: those that come with omb-py, and one for your machine."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

from omb_py.cli.analysis_options import note
from omb_py.core.errors import UsageError, needing
from omb_py.core.text import files


@click.group("machine")
def command() -> None:
    """Describe machines: nodes, launcher, scheduler and queues.

    omb-py machine new mycluster --like generic-slurm    writes a file to be edited
    """


@command.command("list")
def list_command() -> None:
    """The machines that come with omb-py."""
    with needing("sweep"):
        from omb_py.core.text.tables import Sheet, on_console
        from omb_py.sweeps import catalog, toml
        from omb_py.sweeps.machine import Machine

    heads = ("name", "scheduler", "launcher", "nodes", "cores", "GPUs", "description")
    rows = []
    for name in catalog.names("machines"):
        one = toml.read(catalog.find("machines", name), Machine)
        numbers = (one.nodes, one.cores_per_node or "-", one.gpus_per_node)
        words = (one.name, one.scheduler, one.launcher)
        rows.append((*words, *map(str, numbers), one.description))
    title = "machines that come with omb-py"
    on_console([Sheet(title, heads, tuple(rows), left=len(heads))], (), sys.stdout)


@command.command("show")
@click.argument("name")
def show_command(name: str) -> None:
    """Print the file of machine NAME, to be copied and edited.

    omb-py machine show polaris > mine.toml
    """
    with needing("sweep"):
        from omb_py.sweeps import catalog

    click.echo(catalog.machine_text(name), nl=False)


@command.command("check")
@click.argument("machine", metavar="MACHINE")
@click.option("--queue", help="The queue that a job goes to.")
def check_command(machine: str, queue: str | None) -> None:
    """Check a machine file, and show what its largest job requests."""
    with needing("sweep"):
        from omb_py.core.text.words import count
        from omb_py.sweeps import batch, catalog, render, toml
        from omb_py.sweeps.config import Sweep
        from omb_py.sweeps.schedulers import SCHEDULERS

    where = batch.find_machine(machine, queue=queue)
    if where.unknown_queue:
        note(where.unknown_queue)
    cores = where.own_cores or "as many cores as are there"
    cores = count(cores, "core") if isinstance(cores, int) else cores
    title = SCHEDULERS[where.scheduler].title if where.scheduler in SCHEDULERS else "no scheduler"
    click.echo(
        f"{where.name}: {title}, launcher {where.launcher}, {count(where.max_nodes, 'node')} of "
        f"{cores} and {count(where.gpus, 'GPU')}"
    )
    if where.scheduler in SCHEDULERS:
        sweep = toml.read(catalog.find("sweeps", "quick"), Sweep)
        batch.check(where)
        where.check_walltime(where.max_nodes)
        job = batch.BatchJob(sweep, where, "quick", machine)
        click.echo("\n".join(render.directives(job)))


@command.command("new")
@click.argument("name")
@click.option("--like", metavar="MACHINE", required=True, help="The machine to begin with.")
@click.option("--force", is_flag=True, help="Overwrite the file if it is there.")
def new_command(name: str, like: str, force: bool) -> None:
    """Write NAME.toml, a machine file to be edited.

    omb-py machine new mycluster --like generic-slurm
    """
    with needing("sweep"):
        from pydantic import TypeAdapter, ValidationError

        from omb_py.sweeps import catalog
        from omb_py.sweeps.field_types import NAME, PERMITTED, Name

    try:
        TypeAdapter(Name).validate_python(name)
    except ValidationError as error:
        raise UsageError(f"no machine is called {name!r}: use {PERMITTED[NAME][1]}") from error
    path = Path(f"{name}.toml")
    files.refuse_existing([path], force)
    files.write(path, catalog.machine_text(like, name))
    click.echo(path)
    click.echo(f"next: edit it, then omb-py machine check {shlex.quote(f'./{path}')}", err=True)

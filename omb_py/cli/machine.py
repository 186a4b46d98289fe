"""``omb-py machine``: the machine files that come with omb-py, and a check of any."""

from __future__ import annotations

import sys

import click

from omb_py.cli.analysis_options import note
from omb_py.core.errors import needing


@click.group("machine")
def command() -> None:
    """Describe machines: nodes, launcher, scheduler and queues.

    omb-py machine show generic-slurm > mycluster.toml    a file to be edited
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

    omb-py machine show generic-slurm > mycluster.toml

    Edit the lines that end in "# yours", then: omb-py machine check ./mycluster.toml
    """
    with needing("sweep"):
        from omb_py.core.text import files
        from omb_py.sweeps import catalog

    click.echo(files.read_text(catalog.find("machines", name)), nl=False)


@command.command("check")
@click.argument("machine", metavar="MACHINE")
@click.option("--queue", help="The queue that a job goes to.")
def check_command(machine: str, queue: str | None) -> None:
    """Check a machine file, and show what its largest job requests."""
    with needing("sweep"):
        from omb_py.core.text.words import count
        from omb_py.sweeps import catalog, render, sweep_job, toml
        from omb_py.sweeps.config import Sweep
        from omb_py.sweeps.schedulers import SCHEDULERS

    where = sweep_job.find_machine(machine, queue=queue)
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
        sweep_job.check(where)
        where.check_walltime(where.max_nodes)
        job = sweep_job.SweepJob(sweep, where, "quick", machine)
        click.echo("\n".join(render.directives(job)))

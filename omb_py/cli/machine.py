"""``omb-py machine``: machine files: those that come with omb-py, and one for your machine."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import click

from omb_py.cli.machine_bounds import bounds_command
from omb_py.core.errors import UsageError, needing
from omb_py.core.text import files
from omb_py.options.types import WholeNumber

HELP = {"help_option_names": ["-h", "--help"]}


@click.group("machine", context_settings=HELP)
def command() -> None:
    """Describe machines: nodes, launcher, scheduler and queues.

    omb-py machine new    asks a few questions and writes a file for this cluster
    """


@command.command("list")
def list_command() -> None:
    """The machines that come with omb-py."""
    with needing("sweep"):
        from omb_py.sweeps import catalog, toml
        from omb_py.sweeps.machine import Machine

    heads = ("name", "scheduler", "launcher", "nodes", "cores", "GPUs", "description")
    rows: list[tuple[str, ...]] = [heads]
    for name in catalog.names("machines"):
        one = toml.read(catalog.find("machines", name), Machine)
        counts = (one.nodes, one.cores_per_node or "-", one.gpus_per_node)
        numbers = tuple(str(number) for number in counts)
        rows.append((one.name, one.scheduler, one.launcher, *numbers, one.description))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        click.echo("  ".join(cells).rstrip())


@command.command("show")
@click.argument("name")
def show_command(name: str) -> None:
    """Print the file of machine NAME, to be copied and edited.

    omb-py machine show polaris > mine.toml
    """
    with needing("sweep"):
        from omb_py.sweeps import catalog, machine_files

    click.echo(machine_files.copy(catalog.find("machines", name)), nl=False)


@command.command("check")
@click.argument("machine", metavar="MACHINE")
@click.option("--queue", help="The queue that a job goes to.")
def check_command(machine: str, queue: str | None) -> None:
    """Check a machine file, and show what its largest job requests."""
    with needing("sweep"):
        from omb_py.core.text.words import count
        from omb_py.sweeps import batch, catalog, machine_files, toml
        from omb_py.sweeps.config import Sweep
        from omb_py.sweeps.machine import Machine
        from omb_py.sweeps.schedulers import SCHEDULERS

    where = toml.read(catalog.find("machines", machine), Machine)
    if queue is not None:
        where = batch.with_settings(where, {"queue": queue})
    if where.unknown_queue:
        click.echo(f"omb-py: note: {where.unknown_queue}", err=True)
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
        batch.check_walltime(where, where.max_nodes)
        job = batch.Job(sweep, where, "quick", machine, where.max_nodes, (where.max_nodes,))
        click.echo("\n".join(machine_files.asked_for(job)))


@command.command("keys")
@click.option(
    "--format",
    "kind",
    type=click.Choice(["text", "markdown"]),
    default="text",
    help="markdown: the tables of the documentation.",
)
def keys_command(kind: str) -> None:
    """All keys of a machine file: what each means, its type and default, and an example."""
    with needing("sweep"):
        from omb_py.sweeps import machine_files

    click.echo(machine_files.markdown() if kind == "markdown" else machine_files.text(), nl=False)


@command.command("schema")
@click.option("--sweep", is_flag=True, help="That of sweeps.")
def schema_command(sweep: bool) -> None:
    """Print the JSON schema by which editors complete and check machine files."""
    with needing("sweep"):
        from omb_py.sweeps.config import Sweep
        from omb_py.sweeps.machine import Machine
        from omb_py.sweeps.machine_files import schema

    click.echo(schema(Sweep if sweep else Machine), nl=False)


QUESTIONS = {
    "name": "Name of the machine",
    "scheduler": "Scheduler (none, pbs, torque, cobalt, slurm, lsf, flux)",
    "nodes": "The most nodes that one job may take",
    "cores_per_node": "Cores of a node",
    "gpus_per_node": "NVIDIA GPUs of a node",
    "launcher": "Launcher (auto, mpich, openmpi, intel, pals, srun, aprun, jsrun, flux)",
    "queue": "Queue or partition (empty: the default one)",
    "account": "Account to charge (empty: none)",
    "walltime": "Walltime of a job",
}
OF_JOB = ("queue", "account", "walltime")
NUMBERS = ("nodes", "cores_per_node", "gpus_per_node")


@command.command("new")
@click.option("--name", help="The machine's name.  [default: that of the file, or mycluster]")
@click.option("--scheduler", help="pbs, torque, cobalt, slurm, lsf, flux, or none.")
@click.option("--nodes", type=WholeNumber(min=1), help="The most nodes that one job may take.")
@click.option("--cores-per-node", type=WholeNumber(min=1), help="Cores of a node.")
@click.option("--gpus-per-node", type=WholeNumber(min=0), help="NVIDIA GPUs of a node.")
@click.option("--launcher", help="mpich, openmpi, intel, pals, srun, aprun, jsrun, flux, or auto.")
@click.option("--account", help="The account (allocation) to charge.")
@click.option("--queue", help="The queue, Slurm's partition.")
@click.option("--walltime", help="How long each job may run, as in 30m or 0:30:00.")
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file to write.  [default: NAME.toml]",
)
@click.option("--force", is_flag=True, help="Overwrite the file if it is there.")
def new_command(output: Path | None, force: bool, **given: Any) -> None:
    """Write a machine file for this cluster.

    omb-py machine new -o mycluster.toml

    The scheduler, its nodes and the launcher are detected. On a terminal, questions are asked for
    what no option says, with what was detected as the answer that Enter gives.
    """
    with needing("sweep"):
        from omb_py.sweeps import detection, machine_files

    said = {key: value for key, value in given.items() if value is not None}
    form = Form(said, sys.stdin.isatty())
    name = form.ask("name", None if output is None else output.stem, "mycluster")
    path = output or Path(f"{name}.toml")
    if path.exists() and not force:
        raise UsageError(f"{path} is there already: overwrite it by --force, or name another -o")
    if not {"scheduler", *NUMBERS} <= said.keys():
        click.echo("detecting the scheduler and its nodes ...", err=True)
    wanted = said.get("scheduler")
    form.check("scheduler", wanted or "none")
    found = detection.detect(wanted)
    scheduler = form.ask("scheduler", found.scheduler)
    if scheduler != found.scheduler:
        found = detection.detect(scheduler)
    form.ask("nodes", found.nodes)
    form.ask("cores_per_node", found.cores)
    form.ask("gpus_per_node", found.gpus)
    form.ask("launcher", detection.launcher(scheduler))
    if scheduler != "none":
        form.ask("queue", found.queue, "")
        form.ask("account", None, "")
        form.ask("walltime", machine_files.walltime(found))
    values, job = form.answers()
    text = machine_files.new(machine_files.completed(values), job, notes(found, said))
    files.write(path, text)
    click.echo(path)
    word = shlex.quote(f"./{path}" if not path.is_absolute() else str(path))
    then = "sweep quick" if scheduler == "none" else "job submit quick"
    click.echo(f"next: omb-py {then} --machine {word} --dry-run", err=True)


def notes(found: Any, said: dict[str, Any]) -> dict[str, str]:
    """Comments for what was detected: who says so, and what to look at."""
    own = f"detected {found.source}"
    others = f"; {found.others} more nodes are of other kinds" if found.others else ""
    threads = ", which may count hardware threads" if found.scheduler == "pbs" else ""
    by = {"nodes": f"{own}{others}", "cores_per_node": f"{own}{threads}"}
    return {} if found.nodes is None else {key: by[key] for key in by if key not in said}


class Form:
    """Answers to questions: from options, from the terminal, or what was detected."""

    def __init__(self, given: dict[str, Any], terminal: bool) -> None:
        self.given = given
        self.terminal = terminal
        self.found: dict[str, Any] = {}

    def ask(self, key: str, *proposals: Any) -> Any:
        """The answer for a key; the first of the proposals that is not None is the default.

        Raises `UsageError` when there is no answer, or not a right one.
        """
        proposal = next((value for value in proposals if value is not None), None)
        value = self.given.get(key)
        if value is None and self.terminal:
            value = click.prompt(
                QUESTIONS[key],
                default=proposal,
                value_proc=lambda text: self.check(key, text),
                err=True,
                show_default=proposal != "",
            )
        elif value is None:
            value = proposal
        if value is None:
            option = f"--{key.replace('_', '-')}"
            raise UsageError(f"{option} cannot be detected here: name it ({QUESTIONS[key]})")
        self.found[key] = self.check(key, value)
        return self.found[key]

    def check(self, key: str, value: Any) -> Any:
        """A value as a configuration takes it; raises `click.UsageError` otherwise."""
        from omb_py.sweeps import machine_files

        if key in NUMBERS and isinstance(value, str):
            value = WholeNumber().convert(value, None, None)
        if key in ("queue", "account") and value == "":
            return value
        of_job = key in OF_JOB
        wrong = machine_files.fault({} if of_job else {key: value}, {key: value} if of_job else {})
        if wrong is not None:
            raise click.UsageError(f"--{key.replace('_', '-')}: {wrong[1]}")
        return value

    def answers(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The answers that are not empty, for the machine and for its jobs."""
        found = {key: value for key, value in self.found.items() if value != ""}
        job = {key: found.pop(key) for key in OF_JOB if key in found}
        return found, job


command.add_command(bounds_command)

"""``omb-py job``: a sweep as batch jobs: their scripts, and submitting them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from omb_py.cli.analysis_options import note, options
from omb_py.core.errors import UsageError, needing
from omb_py.options.types import Number, WholeNumber

if TYPE_CHECKING:
    from omb_py.sweeps.sweep_job import SweepJob

machine_option = partial(
    click.option,
    "--machine",
    metavar="MACHINE",
    help="Machine to run on: one of omb-py machine list, or a .toml file (omb-py machine show).",
)
MACHINE = machine_option()
FOLDER = click.option(
    "--folder",
    metavar="FOLDER",
    type=click.Path(file_okay=False, path_type=Path),
    help="The sweep's folder; by default sweeps/SWEEP-MACHINE.",
)
PARTS = options(
    click.option("--nodes", type=WholeNumber(min=1), help="Only the job on this number of nodes."),
    click.option(
        "--one-job", is_flag=True, help="One job for all points, on the most nodes needed."
    ),
    click.option("--account", help="Account (allocation) to charge."),
    click.option("--queue", help="Queue (Slurm: partition), whose limits select the points."),
    click.option("--filesystems", help="File systems that the job needs, as in home,eagle."),
    click.option("--walltime", help="Time limit of each job, as in 30m or 0:30:00."),
    click.option(
        "--chain",
        type=click.Choice(["resubmit", "none"]),
        help="How to continue after the time limit: each job submits the next, or none does.  "
        "[default: resubmit]",
    ),
)


@click.group("job")
def command() -> None:
    """Run a sweep as batch jobs.

    omb-py job submit scaling --machine polaris --account PROJECT

    A job that is out of time submits itself again until the sweep is complete.
    """


@command.command("render")
@click.argument("sweep")
@MACHINE
@PARTS
@FOLDER
@click.option(
    "-o",
    "--output",
    metavar="DIR|FILE.sh",
    type=click.Path(path_type=Path),
    help="Folder for the scripts, or .sh file for the only one.",
)
@click.option("--force", is_flag=True, help="Overwrite an edited script.")
def render_command(output: Path | None, force: bool, **wishes: Any) -> None:
    """Print or write the batch scripts of SWEEP, one for each number of nodes."""
    with needing("sweep"):
        from omb_py.sweeps import jobs, render

    made = [(job, render.script(job)) for job in scripts(**wishes)]
    warn(made[0][0], refuse_no_account=False)
    single = output is None or output.suffix == ".sh"
    if single and len(made) > 1:
        raise UsageError(
            f"there are {len(made)} scripts, one for each number of nodes: write them into a "
            "folder by --output DIR, choose one by --nodes, or take one job by --one-job"
        )
    if output is None:
        click.echo(made[0][1], nl=False)
        return
    written = {output if single else output / job.file_name: text for job, text in made}
    for path, text in written.items() if not force else ():
        jobs.check_edited(path, text, "name another --output, or overwrite it by --force")
    for path, text in written.items():
        jobs.write(path, text)
        click.echo(path, err=True)


@command.command("submit")
@click.argument("sweep")
@MACHINE
@PARTS
@FOLDER
@click.option(
    "--force",
    is_flag=True,
    help="Submit even if no row is missing or an edited script is overwritten.",
)
@click.option("--dry-run", is_flag=True, help="Write the scripts and show the commands.")
def submit_command(force: bool, dry_run: bool, **wishes: Any) -> None:
    """Submit the jobs of SWEEP, and print their numbers.

    The scripts are written into the sweep's folder, from where each submits itself again. Those
    without missing rows are left out.
    """
    with needing("sweep"):
        from omb_py.sweeps import jobs

    wanted = scripts(**wishes)
    warn(wanted[0], refuse_no_account=not dry_run)
    jobs.submit(wanted, force, dry_run, click.echo, note)


def warn(job: SweepJob, refuse_no_account: bool) -> None:
    """Report on standard error the points left out of a sweep's jobs, and a missing account."""
    from omb_py.sweeps import sweep_job

    for left_out in job.plan.left_out:
        click.echo(left_out.describe(), err=True)
    if why := sweep_job.without_account(job.machine):
        if refuse_no_account:
            raise UsageError(why)
        note(why)


@command.command("continue", hidden=True)
@click.argument("number", metavar="JOB")
@click.argument("sweep")
@MACHINE
@click.option("--queue")
@click.option("--nodes", type=WholeNumber(min=1))
@FOLDER
@click.option("--chain", type=click.Choice(["resubmit", "none"]), required=True)
@click.option("--signalled", is_flag=True)
@click.option("--seconds", type=Number(), default=0.0)
def continue_command(
    number: str,
    chain: str,
    signalled: bool,
    seconds: float,
    nodes: int | None,
    **words: Any,
) -> int:
    """Let another job go on, or say why none does and how to go on; a job's script calls it."""
    with needing("sweep"):
        from omb_py.sweeps import jobs, sweep_job
        from omb_py.sweeps.folder import Folder

    job = replace(sweep_job.find(**words), nodes=nodes)
    try:
        following = jobs.go_on(job, number, chain, signalled, seconds)
    except jobs.ChainEndError as end:
        there, planned = sum(map(Folder(job.root).there, job.points)), job.plan.on(nodes).rows
        how = "" if isinstance(end, jobs.NothingLeftError) else f"; to go on: {job.submit_command}"
        click.echo(f"omb-py: the chain of jobs ends here: {end}")
        click.echo(f"omb-py: {there} of {planned} rows are there{how}")
        return end.exit_code
    click.echo(f"job {following} goes on")
    return 0


def scripts(sweep: str, nodes: int | None, one_job: bool, **wishes: Any) -> list[SweepJob]:
    """Return the jobs that the command line asks for."""
    from omb_py.sweeps import sweep_job

    job = sweep_job.find(sweep, **wishes)
    if job.machine.unknown_queue:
        note(job.machine.unknown_queue)
    found = sweep_job.divide(job, nodes, one_job)
    if len(job.plan.node_counts) > 1 == len(found) and nodes is None and not one_job:
        note(f"queue {job.machine.job.queue} takes fewer jobs of a user: one job for all")
    return found

"""``omb-py job``: a sweep as batch jobs: scripts, submitting them, and how far they are."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from omb_py.core.errors import UsageError, needing
from omb_py.core.text import files
from omb_py.core.text.folders import make_folder
from omb_py.options.types import NewFolder, WholeNumber

if TYPE_CHECKING:
    from omb_py.sweeps.batch import Job
    from omb_py.sweeps.jobs import ChainEndError, JobRecord, Submission

Function = TypeVar("Function", bound=Callable[..., Any])


def options(*chosen: Callable[[Function], Function]) -> Callable[[Function], Function]:
    """Several options at once."""

    def decorate(function: Function) -> Function:
        for option in reversed(chosen):
            function = option(function)
        return function

    return decorate


machine_option = partial(
    click.option,
    "--machine",
    metavar="MACHINE",
    help="Machine to run on: one of omb-py machine list, or a .toml file (see omb-py machine new).",
)
MACHINE = machine_option()
FOLDER = click.option(
    "--folder",
    metavar="FOLDER",
    type=NewFolder(),
    help="The sweep's folder; by default sweeps/SWEEP-MACHINE.",
)
PROFILE = click.option(
    "--profile",
    is_flag=True,
    help="Profile applications by the library in MPITRACE, or else by omb-py's recorder.",
)
PARTS: Callable[[Any], Any] = options(
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
    PROFILE,
)


@click.group("job", context_settings={"help_option_names": ["-h", "--help"]})
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
def render_command(output: Path | None, **wishes: Any) -> None:
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
    for job, text in made:
        if output is None:
            click.echo(text, nl=False)
        else:
            path = output if single else output / job.file_name
            with files.failing("write", path):
                make_folder(path.parent)
            jobs.write(path, text)
            click.echo(path, err=True)


@command.command("submit")
@click.argument("sweep", metavar="SWEEP | SCRIPT...", nargs=-1, required=True)
@MACHINE
@PARTS
@FOLDER
@click.option(
    "--force",
    is_flag=True,
    help="Submit even if a job of the script waits or runs, no row is missing, or an edited script "
    "is overwritten.",
)
@click.option("--dry-run", is_flag=True, help="Write the scripts and show the commands.")
def submit_command(sweep: tuple[str, ...], force: bool, dry_run: bool, **wishes: Any) -> None:
    """Submit the jobs of SWEEP, or batch scripts, and print the jobs' numbers.

    The scripts are written into the sweep's folder, from where each submits itself again. Those
    without missing rows are left out.
    """
    with needing("sweep"):
        from omb_py.sweeps import jobs, render

    if all(word.endswith(".sh") for word in sweep):
        if any(wishes.values()):
            raise UsageError("a script has its own options: leave out all others")
        made = [of_script(Path(word)) for word in sweep]
    elif len(sweep) > 1:
        raise UsageError("name one sweep, or scripts that end in .sh")
    else:
        wanted = scripts(sweep[0], **wishes)
        warn(wanted[0], refuse_no_account=not dry_run)
        made = [jobs.Submission(job, job.script, render.script(job)) for job in wanted]
    jobs.submit(made, force, dry_run, click.echo, note)


def of_script(path: Path) -> Submission:
    """A script that is there, which names its sweep."""
    from omb_py.sweeps import jobs

    words = re.search(r"^sweep=\((.+)\)$", jobs.text_of(path), re.MULTILINE)
    if words is None:
        raise UsageError(
            f"{path} is no script of omb-py job render: submit it by the scheduler's own command"
        )
    given = ["-", *shlex.split(words[1])]
    job = IN_A_SCRIPT.main(given, prog_name="omb-py job submit", standalone_mode=False)
    return jobs.Submission(job, path)


def warn(job: Job, refuse_no_account: bool) -> None:
    """Say on standard error what none of a sweep's jobs measures, and that they need an account."""
    from omb_py.sweeps import batch

    for left_out in job.plan.left_out:
        click.echo(left_out.describe(), err=True)
    if why := batch.without_account(job.machine):
        if refuse_no_account:
            raise UsageError(why)
        note(why)


def note(text: str) -> None:
    """Say something that ends nothing."""
    click.echo(f"omb-py: note: {text}", err=True)


IN_JOB: Callable[[Any], Any] = options(
    click.argument("number", metavar="JOB"),
    click.argument("sweep"),
    MACHINE,
    click.option("--queue"),
    click.option("--nodes", type=WholeNumber(min=1)),
    PROFILE,
    FOLDER,
)
"""What every command that a script calls is told."""


@command.command("begin", hidden=True)
@IN_JOB
@click.option(
    "--at-most", type=WholeNumber(min=0), required=True, help="Seconds, from the script's begin."
)
@click.option(
    "--elapsed", type=WholeNumber(min=0), required=True, help="Seconds since the script's begin."
)
def begin_command(number: str, at_most: int, elapsed: int, **words: Any) -> int:
    """Print the seconds that the sweep in a job may take; its script calls it."""
    with needing("sweep"):
        from omb_py.sweeps import jobs

    job = in_job(number, **words)
    try:
        seconds, why = jobs.begin(job, number, at_most, elapsed)
    except jobs.ChainEndError as end:
        return say_end(job, end, err=True)
    if why:
        note(why)
    click.echo(seconds)
    return 0


@command.command("continue", hidden=True)
@IN_JOB
@click.argument("kept", nargs=-1)
@click.option("--chain", type=click.Choice(["resubmit", "none"]), required=True)
@click.option("--signalled", is_flag=True)
def continue_command(
    number: str, kept: tuple[str, ...], chain: str, signalled: bool, **words: Any
) -> int:
    """Let another job go on, or say why none does and how to go on; a job's script calls it."""
    with needing("sweep"):
        from omb_py.sweeps import jobs

    job = in_job(number, **words)
    try:
        following = jobs.go_on(job, number, chain, signalled, kept)
    except jobs.ChainEndError as end:
        return say_end(job, end)
    click.echo(f"job {following} goes on")
    return 0


def in_job(number: str, nodes: int | None, **words: Any) -> Job:
    """The running job that the command line is about."""
    from omb_py.sweeps import batch

    return replace(batch.find(**words), nodes=nodes)


IN_A_SCRIPT = click.command("sweep")(IN_JOB(in_job))
"""Reads the words by which a script names its sweep."""


def say_end(job: Job, end: ChainEndError, err: bool = False) -> int:
    """Say that no other job goes on, why, and what does, on stdout as the sweep; the exit code."""
    from omb_py.sweeps.folder import Folder
    from omb_py.sweeps.jobs import NothingLeftError

    planned = sum(point.rows for point in job.points)
    there = sum(map(Folder(job.root).there, job.points))
    click.echo(f"omb-py: the chain of jobs ends here: {end}", err=err)
    how = "" if isinstance(end, NothingLeftError) else f"; to go on: {job.submit_command}"
    click.echo(f"omb-py: {there} of {planned} rows are there{how}", err=err)
    return end.exit_code


@command.command("status")
@click.argument("sweep")
@MACHINE
@click.option("--queue", help="The queue of the jobs, where it is not the machine's usual one.")
@FOLDER
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
def status_command(as_json: bool, **wishes: Any) -> int:
    """Show how many rows of SWEEP are there, what the scheduler says of its jobs, and what to do.

    Of each script it names the job that waits or runs, otherwise the last one. Where the scheduler
    has forgotten a job, FOLDER/jobs/record says how its script ended.

    \b
    Exit codes:
      0   every row is there that can be measured
      75  rows are missing, and a job waits, is held or runs
      69  rows are missing, and the scheduler does not answer
      1   rows are missing, and no job waits or runs
    """
    with needing("sweep"):
        from omb_py.sweeps import batch, status

    job = batch.find(**wishes)
    found = status.status(job)
    if as_json:
        import json

        click.echo(json.dumps(asdict(found), indent=1))
    else:
        status.show(found, job.scheduler.title)
    return found.exit_code


@command.command("cancel")
@click.argument("sweep")
@click.argument("numbers", metavar="[JOB]...", nargs=-1)
@MACHINE
@click.option("--nodes", type=WholeNumber(min=1), help="Only the jobs on so many nodes.")
@FOLDER
def cancel_command(numbers: tuple[str, ...], nodes: int | None, **wishes: Any) -> int:
    """Cancel the jobs of SWEEP that wait, are held or run; of these only JOB..., if given.

    Jobs that they submit in that moment are cancelled too. Only jobs of the sweep's own record
    are ever cancelled. Rows that are there stay, and 'omb-py job submit' goes on from them.

    Exit codes: 0 none waits or runs any more, 1 the scheduler refuses or jobs have not ended.
    """
    with needing("sweep"):
        from omb_py.sweeps import batch, jobs, scheduler

    job = batch.find(**wishes)
    known = {scheduler.short(one.number) for one in jobs.read_record(job.scheduler, job.root)}
    wanted = {scheduler.short(number) for number in numbers}
    if strange := wanted - known:
        raise UsageError(
            f"{', '.join(sorted(strange))} is not a job of {job.root}: 'omb-py job status' lists "
            "its jobs"
        )

    def chosen(one: JobRecord) -> bool:
        name = scheduler.short(one.number)
        named = not wanted or name in wanted or name not in known  # submitted in this moment
        return named and nodes in (None, batch.node_count(job.sweep, one.script))

    return jobs.cancel(job.scheduler, job.root, chosen, click.echo)


def scripts(sweep: str, nodes: int | None, one_job: bool, **wishes: Any) -> list[Job]:
    """The jobs that the command line asks for."""
    from omb_py.sweeps import batch

    job = batch.find(sweep, **wishes)
    if job.machine.unknown_queue:
        note(job.machine.unknown_queue)
    found = batch.divide(job, nodes, one_job)
    if len(job.plan.node_counts) > 1 == len(found) and nodes is None and not one_job:
        note(f"queue {job.machine.job.queue} does not take so many jobs of a user: one job for all")
    return found

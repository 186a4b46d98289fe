"""``omb-py job``: a sweep as batch jobs: scripts, submitting them, and how far they are."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from omb_py.core.errors import UsageError, needing
from omb_py.core.text import files
from omb_py.core.text.folders import make_folder
from omb_py.options.types import NewFolder, WholeNumber

if TYPE_CHECKING:
    from omb_py.sweeps.batch import Job
    from omb_py.sweeps.chain import ChainEndError, Link
    from omb_py.sweeps.record import JobRecord
    from omb_py.sweeps.submission import Submission

Function = TypeVar("Function", bound=Callable[..., Any])


def options(*chosen: Callable[[Function], Function]) -> Callable[[Function], Function]:
    """Several options at once."""

    def decorate(function: Function) -> Function:
        for option in reversed(chosen):
            function = option(function)
        return function

    return decorate


MACHINE = click.option(
    "--machine",
    metavar="MACHINE",
    help="Machine to run on: one of omb-py machine list, or a .toml file (see omb-py machine new).",
)
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
        type=click.Choice(["resubmit", "depend", "none"]),
        help="How to continue after the time limit: resubmit: each job submits the next; depend: "
        "several jobs are queued, each after the one before; none: by hand.  [default: resubmit]",
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
    "--dir",
    "output",
    metavar="DIR|FILE.sh",
    type=click.Path(path_type=Path),
    help="Folder for the scripts, or .sh file for the only one.",
)
def render_command(output: Path | None, **wishes: Any) -> None:
    """Print or write the batch scripts of SWEEP, one for each number of nodes."""
    with needing("sweep"):
        from omb_py.sweeps import jobs, render

    wanted = scripts(**wishes)
    made = [(job, render.script(job)) for job in wanted]
    name_left_out(wanted)
    check_account(wanted, note)
    single = output is None or output.suffix == ".sh"
    if single and len(made) > 1:
        raise UsageError(
            f"there are {len(made)} scripts, one for each number of nodes: write them into a "
            "folder by --dir DIR, choose one by --nodes, or take one job by --one-job"
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
    "--jobs",
    "length",
    type=WholeNumber(min=1),
    help="Number of jobs with --chain depend; by default as many as the sweep may take.",
)
@click.option(
    "--force",
    is_flag=True,
    help="Submit even if a job of the script waits or runs, no row is missing, or an edited script "
    "is overwritten.",
)
@click.option("--dry-run", is_flag=True, help="Write the scripts and show the commands.")
def submit_command(
    sweep: tuple[str, ...], length: int | None, force: bool, dry_run: bool, **wishes: Any
) -> None:
    """Submit the jobs of SWEEP, or batch scripts, and print the jobs' numbers.

    The scripts are written into the sweep's folder, from where each submits itself again. Those
    without missing rows are left out. A SCRIPT keeps the account and queue of its last job.
    """
    with needing("sweep"):
        from omb_py.sweeps import batch, render, submission

    if all(word.endswith(".sh") for word in sweep):
        if any(wishes.values()):
            raise UsageError("a script has its own options: leave out all others")
        made = [of_script(Path(word), length) for word in sweep]
    elif len(sweep) > 1:
        raise UsageError("name one sweep, or scripts that end in .sh")
    else:
        wanted = scripts(sweep[0], **wishes)
        name_left_out(wanted)
        check_account(wanted, note if dry_run else refuse)
        made = [
            of_job(job, render.script(job), length, batch.most_at_once(job, len(wanted)))
            for job in wanted
        ]
    made = submission.worthwhile(made, force, note)
    if dry_run:
        submission.check_edited([] if force else made)
        for one in made:
            one.write()
            click.echo("\n".join(one.commands()))
        return
    submission.check(made, force, note)
    submission.submit(made, click.echo)


def of_job(job: Job, text: str, length: int | None, most: int) -> Submission:
    """A sweep's job, whose script is to be made: as many jobs as are asked for or needed.

    Those needed are at most ``most``.
    """
    from omb_py.sweeps import chain, record, submission

    path = job.root / "jobs" / f"{job.name}.sh"
    link = chain.Link(job, path, "", job.nodes if job.only else None)
    number = length or min(link.jobs_needed(text), most)
    kept = record.path_of(path)
    return submission.Submission(job.scheduler, path, kept, number, text, len(link.missing))


def of_script(path: Path, length: int | None) -> Submission:
    """A script that is there; how many jobs it takes is known of omb-py's own alone."""
    from omb_py.sweeps import jobs, submission

    text = jobs.text_of(path)
    words = re.search(r"^sweep=\((.+)\)$", text, re.MULTILINE)
    number, missing = length or 1, None
    if words:
        given = [str(path), "-", *shlex.split(words[1])]
        link = LINKED.main(given, prog_name="omb-py job submit", standalone_mode=False)
        number, missing = length or link.jobs_needed(text), len(link.missing)
    scheduler, kept = jobs.scheduler_of(path), jobs.record_of(path)
    return submission.Submission(scheduler, path, kept, number, missing=missing)


def name_left_out(jobs: list[Job]) -> None:
    """Say on standard error what none of a sweep's jobs measures, and why."""
    for left_out in jobs[0].plan.left_out:
        click.echo(left_out.describe(), err=True)


def check_account(jobs: list[Job], tell: Callable[[str], None]) -> None:
    """Tell that the scheduler will refuse the jobs, which name no account."""
    from omb_py.sweeps import batch

    if why := batch.without_account(jobs[0].machine):
        tell(why)


def refuse(text: str) -> None:
    """Raise `UsageError`."""
    raise UsageError(text)


def note(text: str) -> None:
    """Say something that ends nothing."""
    click.echo(f"omb-py: note: {text}", err=True)


IN_JOB: Callable[[Any], Any] = options(
    click.argument("script", type=click.Path(path_type=Path)),
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
@click.option("--start", help="Names this start of the job in its record.")
def begin_command(at_most: int, elapsed: int, start: str | None, **words: Any) -> int:
    """Print the seconds that the sweep in a job may take; its script calls it."""
    with needing("sweep"):
        from omb_py.sweeps import chain

    link = replace(linked(**words), start=start)
    try:
        seconds, why = chain.begin(link, at_most, elapsed)
    except chain.ChainEndError as end:
        return say_end(link, end, err=True)
    if why is not None:
        note(why)
    click.echo(seconds)
    return 0


@command.command("continue", hidden=True)
@IN_JOB
@click.option("--chain", "kind", type=click.Choice(["resubmit", "depend", "none"]), required=True)
@click.option("--signalled", is_flag=True)
def continue_command(kind: str, signalled: bool, **words: Any) -> int:
    """Let another job go on, or say why none does and how to go on; a job's script calls it."""
    with needing("sweep"):
        from omb_py.sweeps import chain

    link = linked(**words)
    try:
        number = chain.go_on(link, kind, signalled)
    except chain.ChainEndError as end:
        return say_end(link, end)
    click.echo(f"job {number} goes on")
    return 0


def linked(script: Path, number: str, nodes: int | None, **words: Any) -> Link:
    """The running job that the command line is about."""
    from omb_py.sweeps.chain import Link

    return Link(described(**words), script, number, nodes)


LINKED = click.command("sweep")(IN_JOB(linked))
"""Reads the words by which a script names its sweep."""


def say_end(link: Link, end: ChainEndError, err: bool = False) -> int:
    """Say that no other job goes on, why, and what does, on stdout as the sweep; the exit code."""
    planned = sum(point.rows for point in link.points)
    click.echo(f"omb-py: the chain of jobs ends here: {end}", err=err)
    how = f"; to go on: {end.command}" if end.command else ""
    click.echo(f"omb-py: {link.rows} of {planned} rows are there{how}", err=err)
    return end.exit_code


@command.command("status")
@click.argument("sweep")
@MACHINE
@click.option("--queue", help="The queue of the jobs, where it is not the machine's usual one.")
@FOLDER
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
def status_command(as_json: bool, **wishes: Any) -> int:
    """Show what became of the jobs of SWEEP, how many rows are there, and why points failed.

    What the scheduler says of a job counts together with what the job recorded in
    FOLDER/jobs/NAME.record. Where the scheduler has forgotten a job, the record says how it ended.

    \b
    Exit codes:
      0   every row is there that can be measured
      75  rows are missing, and a job waits, is held or runs
      69  rows are missing, and the scheduler does not answer
      1   rows are missing, and no job waits or runs
    """
    with needing("sweep"):
        from omb_py.sweeps import status

    job = described(**wishes)
    found = status.status(job)
    if as_json:
        import json

        click.echo(json.dumps(status.as_json(found), indent=1))
    else:
        status.show(found)
    if found.trouble:
        click.echo(f"omb-py: {found.trouble}", err=True)
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
        from omb_py.sweeps import batch, cancelling

    job = described(**wishes)

    def chosen(one: JobRecord) -> bool:
        return nodes in (None, batch.node_count(job.sweep, one.script))

    return cancelling.cancel(job.scheduler, job.root, chosen, numbers, click.echo)


def scripts(sweep: str, nodes: int | None, one_job: bool, **wishes: Any) -> list[Job]:
    """The jobs that the command line asks for."""
    from omb_py.sweeps import batch

    job = described(sweep, **wishes)
    if job.machine.unknown_queue:
        note(job.machine.unknown_queue)
    found = batch.jobs(job, nodes, one_job)
    if len(job.counts) > 1 == len(found) and nodes is None and not one_job:
        note(f"queue {job.machine.job.queue} does not take so many jobs of a user: one job for all")
    return found


def described(
    sweep: str,
    machine: str | None,
    folder: Path | None,
    account: str | None = None,
    queue: str | None = None,
    filesystems: str | None = None,
    walltime: str | None = None,
    chain: str | None = None,
    profile: bool = False,
) -> Job:
    """A sweep on a machine, as a job has to know it.

    Raises `UsageError` for what cannot be.
    """
    from omb_py.sweeps import batch, catalog, profiling, toml
    from omb_py.sweeps.config import Sweep
    from omb_py.sweeps.machine import RECORDER, Machine

    if machine is None:
        raise UsageError("say where it runs: --machine MACHINE")
    plan = toml.read(catalog.find("sweeps", sweep), Sweep)
    where = toml.read(catalog.find("machines", machine), Machine)
    wished = {"account": account, "queue": queue, "walltime": walltime, "chain": chain}
    wished["filesystems"] = filesystems
    given = {name: value for name, value in wished.items() if value is not None}
    words = [word for name, value in given.items() for word in (f"--{name}", value)]
    lists = {"filesystems": filesystems.replace(":", ",").split(",")} if filesystems else {}
    where = batch.with_settings(where, {**given, **lists})
    words += ["--folder", str(folder)] if folder is not None else []
    words += ["--profile"] if profile else []
    named = profiling.with_profile(where, os.environ).profile if profile else None
    points = batch.plan_jobs(plan, where)
    return batch.Job(
        sweep=plan,
        machine=where,
        sweep_word=batch.argument(sweep),
        machine_word=batch.argument(machine),
        nodes=max(points.node_counts),
        counts=points.node_counts,
        folder=folder,
        wishes=tuple(words),
        queue=queue if where.queue is not None else None,
        profile=profile,
        library=None if named in (where.profile, RECORDER) else named,
        plan=points,
    )

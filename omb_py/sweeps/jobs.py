"""Jobs of a sweep: submitted by the scheduler's own commands, recorded and continued.

``jobs/record`` in the sweep's folder has a line for each job that omb-py submitted, ``TIME JOB
SCRIPT``, with the number of the job that submitted it where one did.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from omb_py.core.errors import OmbError, UsageError
from omb_py.core.text import files
from omb_py.core.text.words import count
from omb_py.sweeps import render
from omb_py.sweeps.commands import nodes_here
from omb_py.sweeps.files import locked, moment, write_atomically, writing
from omb_py.sweeps.folder import Folder
from omb_py.sweeps.points import split
from omb_py.sweeps.schedulers import SCHEDULERS, ask, hand_over, hand_over_in_job
from omb_py.sweeps.stop import UNFINISHED
from omb_py.sweeps.sweep_job import SweepJob


class ChainEndError(OmbError):
    """The end of a chain of jobs; the text gives the reason."""

    exit_code = UNFINISHED


class NothingLeftError(ChainEndError):
    """No other job can go on either: there is nothing that a person could submit by the script."""


# The record.


def read_record(folder: Path) -> dict[str, str | None]:
    """Return the number of each job of a sweep's folder, and of the job that submitted it.

    Incomplete lines are left out. Raises `OmbError` when the record cannot be read.
    """
    path = folder / "jobs" / "record"
    with files.failing("read", path):
        text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    found: dict[str, str | None] = {}
    for line in text.split("\n")[:-1]:
        match line.split():
            case [_, number, _]:
                found[number] = None
            case [_, number, _, before]:
                found[number] = before
    return found


def append(folder: Path, number: str, script: str, *before: str) -> None:
    """Add a job in one write, so that lines of several processes stay whole.

    Raises `OmbError` when it cannot be written.
    """
    path = folder / "jobs" / "record"
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab", buffering=0) as file:
            file.write(f"{' '.join([moment(), number, script, *before])}\n".encode())


def states(folder: Path) -> dict[str, str]:
    """Return the last job of each chain of a sweep with its state, where Slurm tells it."""
    known = read_record(folder)
    found = dict.fromkeys((one for one in known if one not in known.values()), "submitted")
    with suppress(OmbError):
        said = ask(SCHEDULERS["slurm"].in_job, ["squeue", "-h", "-o", "%i %T"]) if found else None
        if said and said.returncode == 0:
            queue = dict(line.lower().split() for line in said.stdout.splitlines())
            found = {number: queue.get(number, "ended") for number in found}
    return found


# Submitting.


def write(path: Path, text: str) -> None:
    """Write a script that can be run; raises `OmbError` when that cannot be done."""
    write_atomically(path, text)
    with writing(path):
        path.chmod(0o755)


def submit(
    wanted: Sequence[SweepJob],
    force: bool,
    dry_run: bool,
    tell: Callable[[str], None],
    note: Callable[[str], None],
) -> None:
    """Write and submit the scripts that have missing rows; print each job's number and script.

    With ``dry_run`` the submitting commands are only printed. Raises `UsageError`, unless
    ``force``, for an edited script, before any is submitted; `OmbError` if the scheduler refuses
    one, with the accepted ones.
    """
    chosen = [job for job in wanted if force or job.missing]
    for job in wanted:
        if job not in chosen:
            note(f"no row of {job.script} is missing: it is not submitted")
    texts = {job.script: render.script(job) for job in chosen}
    for job in chosen if not force else []:
        advice = f"submit it unchanged by {job.by_hand}, or overwrite it by --force"
        check_edited(job.script, texts[job.script], advice)
    for script, text in texts.items():
        write(script, text)
    taken: list[str] = []
    for job in chosen:
        if dry_run:
            tell(job.by_hand)
            continue
        try:
            number = hand_over(job.scheduler, job.script)
        except OmbError as error:
            if not taken:
                raise
            raise OmbError(
                f"{error}; submitted so far: {', '.join(taken)}; submit the rest later by "
                f"{job.by_hand}, or cancel these and take one job for all "
                "numbers of nodes by --one-job"
            ) from error
        append(job.root, number, job.name)
        taken.append(f"{number} {job.script}")
        tell(taken[-1])


def check_edited(script: Path, text: str, advice: str) -> None:
    """Raise `UsageError`, with ``advice``, if another ``text`` would overwrite an edited script."""
    if not script.is_file():
        return
    there = files.read(script).decode(errors="replace")
    if there != text and render.is_edited(there):
        raise UsageError(f"{script} was edited: {advice}")


# In a job.


def go_on(job: SweepJob, number: str, chain: str, signalled: bool, seconds: float = 0.0) -> str:
    """Submit the next job if this one made progress; return its number.

    ``signalled`` is true if a signal has stopped this one, which may run for ``seconds``. Raises
    `ChainEndError` if the chain ends.
    """
    scheduler, most = job.scheduler, job.machine.job.max_jobs
    if signalled and starts_again(number):
        raise NothingLeftError(f"{scheduler.title} starts this job again")
    if signalled:
        raise ChainEndError(
            "a signal stopped this job before its time was over, so that it goes on only if "
            f"{scheduler.title} starts it again"
        )
    check_left(job)
    if chain == "none":
        raise ChainEndError("its jobs do not submit others (chain = none)")
    length = jobs_of_chain(read_record(job.root), number)
    if length >= most:
        raise ChainEndError(f"it has had {count(length, 'job')} (job.max_jobs = {most})")
    try:
        following = hand_over_in_job(scheduler, job.script, seconds)
    except OmbError as error:
        raise ChainEndError(str(error)) from error
    with suppress(OmbError):  # on a full disk: the next job is there nevertheless
        append(job.root, following, job.name, number)
    return following


def starts_again(number: str) -> bool:
    """Return whether Slurm has put this job back into its queue."""
    with suppress(OmbError, OSError):
        said = ask(SCHEDULERS["slurm"].in_job, ["scontrol", "show", "job", number]).stdout
        again = re.search(r"\bRestarts=(\d+)", said)
        return again is not None and again[1] != os.environ.get("SLURM_RESTART_COUNT", "0")
    return False


def jobs_of_chain(known: Mapping[str, str | None], number: str) -> int:
    """Return the number of jobs of a chain up to this one; a person's submission begins a chain."""
    found = [number]
    while (before := known.get(found[-1])) and before not in found:
        found.append(before)
    return len(found)


def check_left(job: SweepJob) -> None:
    """Raise `ChainEndError` if another job like this one could measure none of the missing rows.

    It needs more nodes than the job has, or other processes measure it.
    """
    here, folder = None, Folder(job.root)
    with suppress(OmbError):  # then the sweep has said so
        here = nodes_here(job.machine)
    fitting, larger = split(job.missing, here)
    for point in fitting:
        with locked(folder.lock(point.name)) as ours:
            if ours and folder.missing(point):
                return
    if fitting:
        raise NothingLeftError("another job measures what is left, or has measured it")
    if larger:
        raise NothingLeftError(job.shortage(larger, here))

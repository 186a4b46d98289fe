"""Jobs of a sweep: submitted by the scheduler's own commands, recorded, continued and cancelled.

``jobs/record`` in the sweep's folder has a line for each event, ``TIME JOB SCRIPT EVENT KEY=VALUE
...``. Batch scripts add to it as well, so that it is there where omb-py cannot be started.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from omb_py.core.errors import OmbError, UsageError
from omb_py.core.text import files
from omb_py.core.text.words import count
from omb_py.sweeps import render
from omb_py.sweeps.allocation import nodes_here, shortage, split
from omb_py.sweeps.batch import BatchJob
from omb_py.sweeps.files import locked, write_atomically, writing
from omb_py.sweeps.folder import Folder
from omb_py.sweeps.quoting import plain
from omb_py.sweeps.runner import UNFINISHED
from omb_py.sweeps.scheduler import (
    Said,
    Scheduler,
    ask,
    hand_over,
    hand_over_in_job,
    said_of,
    words_of,
)


class ChainEndError(OmbError):
    """The end of a chain of jobs; the text gives the reason."""

    exit_code = UNFINISHED


class NothingLeftError(ChainEndError):
    """No other job can go on either: there is nothing that a person could submit by the script."""


# The record.


@dataclass(frozen=True)
class JobRecord:
    """The record of a job.

    ``script`` is the name of its script without its ending, ``after`` the job that submitted it.
    ``exit_code`` is its script's, None until one is recorded; ``signalled`` is true if a signal
    came before its time was over.
    """

    number: str
    script: str
    after: str | None = None
    began: bool = False
    exit_code: int | None = None
    signalled: bool = False
    cancelled: bool = False

    @property
    def may_be_active(self) -> bool:
        """Return whether it may wait or run: a job that a signal stopped may be queued again."""
        return self.exit_code is None or self.signalled


LINE = re.compile(r"\S+ (\S+) (\S+) (\w+)((?: \w+=\S*)*)", re.ASCII)
EXIT_CODE = re.compile(r"-?\d{1,6}", re.ASCII)


def read_record(scheduler: Scheduler, folder: Path) -> list[JobRecord]:
    """Return the jobs of a sweep's folder, in the order in which they were submitted or began.

    Incomplete lines, and lines of other jobs, are left out. Raises `OmbError` when the record
    cannot be read.
    """
    path = folder / "jobs" / "record"
    with files.failing("read", path):
        text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    found: dict[str, JobRecord] = {}
    for line in text.split("\n")[:-1]:
        parts = LINE.fullmatch(line)
        if parts is not None and scheduler.number.fullmatch(parts[1]):
            values = dict(word.split("=", 1) for word in parts[4].split())
            known = found.get(parts[1]) or JobRecord(parts[1], parts[2])
            found[parts[1]] = with_event(scheduler, known, parts[3], values)
    return list(found.values())


def with_event(
    scheduler: Scheduler, job: JobRecord, event: str, values: Mapping[str, str]
) -> JobRecord:
    """Return a job after an event: ``submitted``, ``began``, ``ended`` or ``cancelled``."""
    if event == "submitted" and scheduler.number.fullmatch(values.get("after", "")):
        return replace(job, after=values["after"])
    if event == "began":  # a scheduler may start a job again
        return replace(job, began=True, exit_code=None, signalled=False)
    if event == "ended" and EXIT_CODE.fullmatch(values.get("exit", "")):
        return replace(job, exit_code=int(values["exit"]), signalled="signalled" in values)
    return replace(job, cancelled=True) if event == "cancelled" else job


def append(folder: Path, number: str, script: str, *words: str) -> None:
    """Add an event in one write, so that lines of several processes stay whole.

    Raises `OmbError` when it cannot be written.
    """
    path = folder / "jobs" / "record"
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab", buffering=0) as file:
            file.write(f"{' '.join([moment, number, script, *words])}\n".encode())


def active(
    scheduler: Scheduler,
    known: Collection[JobRecord],
    script: str | None = None,
) -> list[tuple[JobRecord, Said]]:
    """Return the recorded jobs of a script, or of all, that wait or run; raises as `said_of`."""
    some = [job for job in known if job.may_be_active and script in (None, job.script)]
    said = said_of(scheduler, [job.number for job in some])
    return [(job, said[job.number]) for job in some if scheduler.is_active(said.get(job.number))]


# Submitting.


def write(path: Path, text: str) -> None:
    """Write a script that can be run; raises `OmbError` when that cannot be done."""
    write_atomically(path, text)
    with writing(path):
        path.chmod(0o755)


def submit(
    wanted: Sequence[BatchJob],
    force: bool,
    dry_run: bool,
    tell: Callable[[str], None],
    note: Callable[[str], None],
) -> None:
    """Write and submit the scripts that have missing rows; print each job's number and script.

    With ``dry_run`` the submitting commands are only printed. Raises `UsageError`, unless
    ``force``, for a script with a waiting or running job and for an edited script, before any is
    submitted; `OmbError` if the scheduler refuses one, with the accepted ones.
    """
    chosen = [job for job in wanted if force or job.missing]
    for job in wanted:
        if job not in chosen:
            note(f"no row of {job.script} is missing: it is not submitted")
    texts = {job.script: render.script(job) for job in chosen}
    for job in chosen if not force else []:
        if not dry_run:
            check_active(job, note)
        check_edited(job, texts[job.script])
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
        append(job.root, number, job.name, "submitted")
        taken.append(f"{number} {job.script}")
        tell(taken[-1])


def check_active(job: BatchJob, note: Callable[[str], None]) -> None:
    """Raise `UsageError` if a job of the script waits or runs; print a note if that is unknown."""
    try:
        found = active(job.scheduler, read_record(job.scheduler, job.root), job.name)
    except OmbError as error:
        note(f"whether a job of {job.script} waits or runs is not known: {error}")
        return
    for one, said in found:
        raise UsageError(
            f"job {one.number} of {job.script} is {said} and goes on by itself: wait for its end, "
            "or submit another by --force"
        )


def check_edited(job: BatchJob, text: str) -> None:
    """Raise `UsageError` when the script was edited and another ``text`` would overwrite it."""
    if not job.script.exists():
        return
    with files.failing("read", job.script):
        there = job.script.read_text(encoding="utf-8", errors="replace")
    if there != text and render.is_edited(there):
        raise UsageError(
            f"{job.script} was edited: submit it unchanged by {job.by_hand}, "
            "or overwrite it by --force"
        )


# In a job.


def go_on(job: BatchJob, number: str, chain: str, signalled: bool, kept: Sequence[str]) -> str:
    """Submit the next job if this one made progress and none waits or runs; return its number.

    ``signalled`` is true if a signal has stopped this one, ``kept`` are options from its own
    submission. Raises `ChainEndError` if the chain ends.
    """
    scheduler, most = job.scheduler, job.machine.job.max_jobs
    known = {one.number: one for one in read_record(scheduler, job.root)}
    if signalled or (number in known and known[number].cancelled):
        raise ChainEndError(
            "a signal stopped this job before its time was over, so that it goes on only if "
            f"{scheduler.title} starts it again"
        )
    check_left(job)
    if chain == "none":
        raise ChainEndError("its jobs do not submit others (chain = none)")
    others = [one for one in known.values() if one.number != number]
    with suppress(OmbError):
        for other, _ in active(scheduler.in_job, others, job.name):
            return other.number
    length = jobs_of_chain(known, number)
    if length >= most:
        raise ChainEndError(f"it has had {count(length, 'job')} (job.max_jobs = {most})")
    try:
        for word in kept:
            plain(word.lstrip("-"))
        following = hand_over_in_job(scheduler, job.script, kept)
    except OmbError as error:
        raise ChainEndError(str(error)) from error
    known = {}
    with suppress(OmbError):  # on a full disk: the next job is there nevertheless
        append(job.root, following, job.name, "submitted", f"after={number}")
        known = {one.number: one for one in read_record(scheduler, job.root)}
    if number in known and known[number].cancelled:
        append(job.root, following, job.name, "cancelled")
        ask(scheduler.in_job, [*scheduler.cancel, following])
        raise ChainEndError("it was cancelled while it submitted the next, which is cancelled, too")
    return following


def jobs_of_chain(known: Mapping[str, JobRecord], number: str) -> int:
    """Return the number of jobs of a chain up to this one; a person's submission begins a chain."""
    found = [number]
    while (job := known.get(found[-1])) and job.after and job.after not in found:
        found.append(job.after)
    return len(found)


def check_left(job: BatchJob) -> None:
    """Raise `ChainEndError` if another job like this one could measure none of the missing rows.

    It needs more nodes than the job has, or other processes measure it.
    """
    here, folder = None, Folder(job.root)
    with suppress(OmbError):  # then the sweep has said so
        here = nodes_here(job.machine)
    fitting, larger = split(job.missing, here)
    for point in fitting:
        with locked(folder.lock(point.name)) as ours:
            if ours:
                return
    if fitting:
        raise NothingLeftError("another job measures what is left")
    if larger:
        raise NothingLeftError(shortage(larger, here, job))


# Cancelling.


def cancel(scheduler: Scheduler, folder: Path, tell: Callable[[str], None]) -> int:
    """Cancel a folder's recorded jobs that wait or run, the last submitted first.

    Each is recorded as cancelled before the scheduler is asked, so that it submits no other.
    The exit code: 1 if the scheduler refuses. Raises `OmbError` when it does not answer.
    """
    left = active(scheduler, read_record(scheduler, folder))
    refused: dict[str, str] = {}
    for job, said in reversed(left):
        append(folder, job.number, job.script, "cancelled")
        answer = ask(scheduler, [*scheduler.cancel, job.number])
        if answer.returncode == 0:
            tell(f"{job.number} {job.script}: cancelled ({said} before)")
        else:
            refused[job.number] = words_of(answer)
    still = active(scheduler, [job for job, _ in left if job.number in refused]) if refused else []
    for job, _ in still:  # others ended before they could be cancelled
        tell(f"{job.number} {job.script}: {scheduler.title} refuses: {refused[job.number]}")
    if not left:
        tell(f"nothing to cancel: no job in {folder} waits or runs")
    return 1 if still else 0

"""Chains of jobs: what a job may do when it begins, and how the sweep goes on after it."""

from __future__ import annotations

import math
import os
import re
import shlex
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from omb_py.core.errors import OmbError
from omb_py.core.text.words import count
from omb_py.sweeps import jobs, record
from omb_py.sweeps.allocation import nodes_here, split
from omb_py.sweeps.batch import Job
from omb_py.sweeps.estimate import remaining
from omb_py.sweeps.files import locked
from omb_py.sweeps.folder import Folder
from omb_py.sweeps.job_files import fate
from omb_py.sweeps.points import Point
from omb_py.sweeps.runner import UNFINISHED
from omb_py.sweeps.scheduler import ACTIVE, CANCELLED, RESTARTED
from omb_py.sweeps.submission import DEPENDS, as_options, unsaid

USEFUL_SECONDS = 10
"""Less than this is not worth the start of a sweep."""

TIME_LEFT_SECONDS = 15.0
"""What a scheduler's command may take to say how much time is left."""

MADE_BY = re.compile(r"^# Made by: omb-py job render (.+)$", re.MULTILINE)


class ChainEndError(OmbError):
    """No other job goes on; the text says why. ``command`` does go on, if a person has to."""

    exit_code = UNFINISHED

    def __init__(self, why: str, command: str) -> None:
        super().__init__(why)
        self.command = command


@dataclass(frozen=True)
class Link:
    """A running job of a chain: its number, its script, and the part of a sweep it measures.

    ``nodes`` are those of its points; None for all. ``start`` is the one of `record.Event`.
    """

    job: Job
    script: Path
    number: str
    nodes: int | None
    start: str | None = None

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """The points that this script measures."""
        return self.job.plan.on(self.nodes).points

    @cached_property
    def folder(self) -> Folder:
        """The sweep's."""
        return Folder(self.job.root)

    @property
    def missing(self) -> list[Point]:
        """Those of which a row is missing."""
        return [point for point in self.points if self.folder.missing(point)]

    def jobs_needed(self, script: str) -> int:
        """How many jobs to submit at once: one that submits the next, or all that wait."""
        return jobs_needed(self.points, self.job) if DEPENDS in script else 1

    @property
    def rows(self) -> int:
        """How many rows are there."""
        return sum(point.rows - len(self.folder.missing(point)) for point in self.points)

    @property
    def path(self) -> Path:
        """The record of the script's jobs."""
        return record.path_of(self.script)

    @cached_property
    def jobs(self) -> dict[str, record.JobRecord]:
        """The jobs that the record has so far, by number."""
        return {job.number: job for job in record.jobs_in(self.path, self.job.scheduler)}

    @property
    def before(self) -> list[str]:
        """The chain's earlier jobs, the last one first; a person's submission begins a chain."""
        after = {job.number: job.after for job in self.jobs.values()}
        found: list[str] = []
        number = after.get(self.number)
        while number and number not in found:
            found.append(number)
            number = after.get(number)
        return found

    @property
    def later(self) -> Iterator[str]:
        """The jobs that were submitted to begin after this one."""
        number = self.number
        for job in self.jobs.values():
            if job.after == number:
                number = job.number
                yield number

    def submit_command(self, *words: str) -> str:
        """The command by which a person goes on with the script as it is."""
        return in_this_folder(shlex.join(["omb-py", "job", "submit", *words, str(self.script)]))

    def made_with(self, *words: str) -> str:
        """The command that submits a script made like this one, but for its nodes."""
        header = MADE_BY.search(jobs.text_of(self.script))
        usual = [self.job.sweep_word, "--machine", self.job.machine_word]
        made = shlex.split(header[1], comments=True) if header else usual
        if "--nodes" in made:
            place = made.index("--nodes")
            del made[place : place + 2]
        made = [word for word in made if word != "--one-job"]
        return in_this_folder(shlex.join(["omb-py", "job", "submit", *made, *words]))

    @cached_property
    def kept(self) -> dict[str, str]:
        """What the job was submitted with and its script does not say."""
        scheduler = self.job.scheduler
        given = {name: os.environ.get(at, "") for name, (_, at) in scheduler.kept.items()}
        text = jobs.text_of(self.script) if self.script.exists() else ""
        return unsaid(scheduler, text, given)


def in_this_folder(text: str) -> str:
    """A command for a shell elsewhere."""
    return f"cd {shlex.quote(str(Path.cwd()))} && {text}"


def begin(link: Link, at_most: float, elapsed: float) -> tuple[int, str | None]:
    """The whole seconds that the job's sweep may take, and a note where the scheduler says nothing.

    At most ``at_most`` less ``elapsed``, both since the script began, and what the scheduler says
    is left less ``job.reserve``. What is known goes into the record. Raises `ChainEndError` when
    the job has nothing to do here or not the time for it.
    """
    left, note = time_left(link, elapsed)
    now = time.time()
    until = [] if left is None else [f"until={round(now + left)}"]
    start = [] if link.start is None else [f"start={link.start}"]
    kept = [f"{name}={value}" for name, value in link.kept.items()]
    record.append(link.path, link.number, [*until, f"rows={link.rows}", *kept, *start])
    settings = link.job.machine.job
    found = [at_most - elapsed, *([] if left is None else [left - settings.reserve])]
    seconds = math.floor(min(found))
    if not link.missing:
        return max(1, seconds), note
    stop_if_idle(link)
    if seconds < USEFUL_SECONDS:
        raise ChainEndError(
            f"only {max(0, seconds)} s of the walltime are left beside job.reserve = "
            f"{settings.reserve:g} s, too few to measure anything: ask for more",
            link.submit_command(),
        )
    return seconds, note


def stop_if_idle(link: Link) -> None:
    """Raise `ChainEndError` when the chain was cancelled or its last jobs added no row."""
    before = [link.jobs[number] for number in link.before if number in link.jobs]
    cancelled = next((job for job in before if job.ended and was_cancelled(link, job)), None)
    if cancelled is not None:
        raise ChainEndError(
            f"job {cancelled.number} of this chain was cancelled", link.submit_command()
        )
    idle, rows = 0, link.rows
    for job in before:
        if job.rows not in (None, rows):
            break
        idle += job.began is not None
    most = link.job.machine.job.max_idle_jobs
    if idle >= most:
        raise ChainEndError(
            f"the last {count(idle, 'job')} of this chain added no row (job.max_idle_jobs = "
            f"{most}): see why in {link.folder.root}/logs",
            link.submit_command(),
        )


def was_cancelled(link: Link, job: record.JobRecord) -> bool:
    """Whether somebody cancelled a job of the chain; what the scheduler says of it is kept."""
    if job.signalled and not job.cancelled and fate(link.job, job) == CANCELLED:
        record.append(link.path, job.number, [record.CANCELLED])
        return True
    return job.cancelled


def time_left(link: Link, elapsed: float) -> tuple[float | None, str | None]:
    """The seconds of walltime that are left, or why the scheduler does not say."""
    scheduler, why = link.job.scheduler, "there is no time limit in its answer"
    for source in scheduler.time_left:
        text = os.environ.get(source.variable, "") if source.variable else ""
        if source.command and scheduler.number.fullmatch(link.number):
            words = [*source.command, *([link.number] if source.numbered else [])]
            try:
                answer = jobs.ask(scheduler, words, patience=TIME_LEFT_SECONDS)
            except (OmbError, OSError) as error:
                why = str(error)
                continue
            text = answer.stdout
            if answer.returncode != 0:
                why = jobs.words_of(answer)
        seconds = source.read(text, time.time(), elapsed)
        if seconds is not None:
            return seconds, None
    return None, (
        f"{scheduler.title} does not say how much time is left, so the script's own walltime "
        f"holds: {why}"
    )


def go_on(link: Link, chain: str, signalled: bool) -> str:
    """Let another job go on after this one, which came further: the other's number.

    It is this one's own where a signal has stopped it (``signalled``) and it starts again. Raises
    `ChainEndError` when none does.
    """
    settings, scheduler = link.job.machine.job, link.job.scheduler
    if signalled:
        own = link.jobs.get(link.number) or record.JobRecord(link.script.stem, link.number)
        found = fate(link.job, own)
        if found == RESTARTED:
            return link.number
        if found == CANCELLED:
            record.append(link.path, link.number, [record.CANCELLED])
            raise ChainEndError("this job was cancelled", link.submit_command())
        if chain != "depend":
            raise ChainEndError(
                "a signal stopped this job before its time was over, and only if "
                f"{scheduler.title} starts it again it goes on by itself",
                link.submit_command(),
            )
    check_left(link)
    if chain == "depend":
        return waiting_job(link)
    if chain == "none":
        raise ChainEndError("its jobs do not submit others (chain = none)", link.submit_command())
    length = len(link.before) + 1
    if length >= settings.max_jobs:
        raise ChainEndError(
            f"it has had {count(length, 'job')} (job.max_jobs = {settings.max_jobs})",
            link.submit_command(),
        )
    try:
        number = jobs.submit_in_job(scheduler, link.script, as_options(scheduler, link.kept))
    except jobs.NoProgramError as error:
        raise ChainEndError(
            f"{str(error).split(':')[0]}, so that no job can submit another: with --chain depend "
            "several are submitted at once",
            link.submit_command(),
        ) from error
    except OmbError as error:
        raise ChainEndError(str(error), link.submit_command()) from error
    with suppress(OmbError):  # on a full disk: the next job is there all the same
        record.append(link.path, number, [record.SUBMITTED, f"after={link.number}"])
    return number


def check_left(link: Link) -> None:
    """Raise `ChainEndError` when another job like this one could measure nothing of what is left.

    It needs more nodes than the job has, or other jobs measure it.
    """
    try:
        here = nodes_here(link.job.machine)
    except OmbError:  # then the sweep has said so
        return
    fitting, larger = split(link.missing, here)
    if fitting and all(measured(link.folder, point) for point in fitting):
        raise ChainEndError("another job measures what is left", "")
    if fitting or not larger:
        return
    needed = sorted({point.nodes for point in larger})
    words = ["--one-job"] if len(needed) > 1 else ["--nodes", str(needed[0])]
    raise ChainEndError(
        f"all that is left needs {' or '.join(map(str, needed))} nodes, and this job has {here}",
        link.made_with(*words),
    )


def measured(folder: Folder, point: Point) -> bool:
    """Whether a process measures a point just now."""
    with locked(folder.lock(point.name)) as ours:
        return not ours


def waiting_job(link: Link) -> str:
    """The next job that waits for the end of this one.

    Raises `ChainEndError` when none is left in the queue.
    """
    for number in link.later:
        try:
            waits = jobs.state(link.job.scheduler, number) in ACTIVE
        except OmbError:
            waits = True  # it was submitted, and nobody says otherwise
        if waits:
            return number
    again = jobs_needed(link.points, link.job)
    raise ChainEndError(
        "no other job waits for the end of this one", link.submit_command("--jobs", str(again))
    )


def jobs_needed(points: Iterable[Point], job: Job) -> int:
    """How many jobs the missing rows may take, as estimated; at most ``job.max_jobs``."""
    settings = job.machine.job
    seconds, _ = remaining(points, Folder(job.root), job.machine)
    needed = math.ceil(seconds / max(1.0, settings.walltime - settings.reserve))
    return min(max(1, needed), settings.max_jobs)

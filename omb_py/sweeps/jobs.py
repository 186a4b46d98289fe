"""Jobs of a sweep: submitted by the scheduler's own commands, recorded, continued and cancelled.

``jobs/record`` in the sweep's folder has a line for each event, ``TIME JOB SCRIPT EVENT KEY=VALUE
...``. Batch scripts add to it as well, so that it is there where omb-py cannot be started.
"""

from __future__ import annotations

import math
import os
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
from omb_py.sweeps.batch import Job
from omb_py.sweeps.files import locked, write_atomically, writing
from omb_py.sweeps.folder import Folder
from omb_py.sweeps.quoting import plain
from omb_py.sweeps.runner import UNFINISHED
from omb_py.sweeps.scheduler import PATIENCE, Said, Scheduler, ask, words_of

IN_JOB_SECONDS = 20.0
"""Seconds that it may take in a job whose walltime is about to be over."""

RETRY_AFTER = (5.0, 10.0)
"""Seconds before a job submits again where the scheduler could not be reached."""

UNREACHABLE = ("cannot connect", "connect failure", "connection refused", "unable to contact")
"""What schedulers say when their server is not there: no job was made, and soon one may be."""

USEFUL_SECONDS = 10
"""Less than this is not worth the start of a sweep."""

CANCEL_SECONDS = 60.0
"""Seconds in which cancelled jobs have to end; schedulers give them up to about 30."""

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 8.0
"""Seconds between questions whether they have, doubled from one to the next."""


class ChainEndError(OmbError):
    """No other job goes on; the text says why. ``command`` does go on, if a person has to."""

    exit_code = UNFINISHED

    def __init__(self, why: str, command: str) -> None:
        super().__init__(why)
        self.command = command


# The scheduler's commands.


def hand_over(
    scheduler: Scheduler, script: Path, options: Sequence[str] = (), patience: float = PATIENCE
) -> str:
    """Hand a script to the scheduler from the current folder, with options; the job's number.

    Raises `UsageError` when its name might mean something to a shell (the commands of some
    schedulers are scripts that pass it to one), `OmbError` when the scheduler is not there or
    refuses, in its own words.
    """
    plain(script)
    words = [*scheduler.submit, *options]
    if scheduler.from_standard_input:
        with script.open("rb") as text:
            answer = ask(scheduler, words, text, patience)
    else:
        answer = ask(scheduler, [*words, str(script)], patience=patience)
    found = scheduler.number.findall(answer.stdout)
    if answer.returncode != 0 or not found:
        raise OmbError(f"{scheduler.title} does not take {script}: {words_of(answer)}")
    return str(found[-1])


def hand_over_in_job(scheduler: Scheduler, script: Path, options: Sequence[str]) -> str:
    """Submit a script from a job, more than once where the scheduler cannot be reached.

    What it refuses it would refuse again, and a command that hangs may have submitted the job.
    Raises as `hand_over` does.
    """
    inside = replace(scheduler, submit=scheduler.again or scheduler.submit)
    for pause in RETRY_AFTER:
        try:
            return hand_over(inside, script, options, IN_JOB_SECONDS)
        except OmbError as error:
            if not any(phrase in str(error).lower() for phrase in UNREACHABLE):
                raise
            time.sleep(pause)
    return hand_over(inside, script, options, IN_JOB_SECONDS)


def said_of(
    scheduler: Scheduler, numbers: Sequence[str], patience: float = PATIENCE
) -> dict[str, Said]:
    """What the scheduler says of jobs, by number; those that it does not know are left out.

    Raises `OmbError` when the scheduler is not there or cannot tell.
    """
    if not numbers:
        return {}
    several = [scheduler.joined.join(numbers)] if scheduler.joined else numbers
    answer = ask(scheduler, [*scheduler.status, *several], patience=patience)
    found = by_short_number(scheduler.read(answer.stdout))
    if all(short(number) in found for number in numbers):
        return {number: found[short(number)] for number in numbers}
    words = answer.stderr if found else f"{answer.stderr}\n{answer.stdout}"
    lines = [line for line in words.lower().splitlines() if line.strip()]
    if (answer.returncode != 0 or not found) and not all(
        any(phrase in line for phrase in scheduler.unknown) for line in lines
    ):
        jobs = f"job{'' if len(numbers) == 1 else 's'} {', '.join(numbers)}"
        raise OmbError(f"{scheduler.title} does not tell about {jobs}: {words_of(answer)}")
    if scheduler.read_history is not None:
        with suppress(OmbError):
            past = ask(scheduler, [*scheduler.history, *several], patience=patience)
            found = {**by_short_number(scheduler.read_history(past.stdout)), **found}
    return {number: found[short(number)] for number in numbers if short(number) in found}


def by_short_number(said: Mapping[str, Said]) -> dict[str, Said]:
    """What is said of jobs, by `short` number."""
    return {short(number): one for number, one in said.items()}


def short(number: str) -> str:
    """A job's number without the server's name, and as Flux writes it in ASCII."""
    return number.partition(".")[0].replace("\u0192", "f", 1)


# The record.


@dataclass(frozen=True)
class JobRecord:
    """What is recorded of a job.

    ``script`` is the name of its script without its ending, ``after`` the job that submitted it.
    ``exit_code`` is its script's, None as long as none is recorded; ``signalled`` tells whether a
    signal came before its time was over.
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
        """Whether it may wait or run: what a signal has stopped may be put back into the queue."""
        return self.exit_code is None or self.signalled


LINE = re.compile(r"\S+ (\S+) (\S+) (\w+)((?: \w+=\S*)*)", re.ASCII)
EXIT_CODE = re.compile(r"-?\d{1,6}", re.ASCII)


def read_record(scheduler: Scheduler, folder: Path) -> list[JobRecord]:
    """The jobs of a sweep's folder, in the order in which they were submitted or began.

    Lines that are not whole, or of no such job, are left out. Raises `OmbError` when the record
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
    """A job after one more event: ``submitted``, ``began``, ``ended`` or ``cancelled``."""
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
    patience: float = PATIENCE,
) -> list[tuple[JobRecord, Said]]:
    """The recorded jobs of a script, of all for None, that wait or run; raises as `said_of`."""
    some = [job for job in known if job.may_be_active and script in (None, job.script)]
    said = said_of(scheduler, [job.number for job in some], patience)
    return [(job, said[job.number]) for job in some if scheduler.is_active(said.get(job.number))]


# Submitting.


@dataclass(frozen=True)
class Submission:
    """A job to submit by its script. ``text`` is written into it first; None leaves it as it is."""

    job: Job
    script: Path
    text: str | None = None


def write(path: Path, text: str) -> None:
    """Write a script that can be run; raises `OmbError` when that cannot be done."""
    write_atomically(path, text)
    with writing(path):
        path.chmod(0o755)


def text_of(script: Path) -> str:
    """The text of a script; raises `OmbError` when it cannot be read."""
    with files.failing("read", script):
        return script.read_text(encoding="utf-8", errors="replace")


def submit(
    submissions: Sequence[Submission],
    force: bool,
    dry_run: bool,
    tell: Callable[[str], None],
    note: Callable[[str], None],
) -> None:
    """Write and submit scripts of which rows are missing, and tell each job's number and script.

    With ``dry_run`` the commands are told that would submit them. Raises `UsageError`, unless by
    ``force``, for a script of which a job waits or runs and one that was edited, before any is
    submitted; `OmbError` when the scheduler refuses one, with those that it has taken.
    """
    wanted = [one for one in submissions if force or one.job.missing]
    for one in submissions:
        if one not in wanted:
            note(f"no row of {one.script} is missing: it is not submitted")
    for one in wanted if not force else []:
        if not dry_run:
            check_active(one, note)
        check_edited(one)
    for one in wanted:
        if one.text is not None:
            write(one.script, one.text)
    taken: list[str] = []
    for one in wanted:
        scheduler = one.job.scheduler
        if dry_run:
            tell(f"{render.by_hand(scheduler)} {one.script}")
            continue
        try:
            number = hand_over(scheduler, one.script)
        except OmbError as error:
            raise OmbError(refused(error, taken, one)) from error
        append(one.job.root, number, one.job.name, "submitted")
        taken.append(f"{number} {one.script}")
        tell(taken[-1])


def check_active(one: Submission, note: Callable[[str], None]) -> None:
    """Raise `UsageError` when a job of the script waits or runs; a note where nobody says."""
    scheduler = one.job.scheduler
    try:
        found = active(scheduler, read_record(scheduler, one.job.root), one.job.name)
    except OmbError as error:
        note(f"whether a job of {one.script} waits or runs is not known: {error}")
        return
    for job, said in found:
        raise UsageError(
            f"job {job.number} of {one.script} is {said} and goes on by itself: wait for its end, "
            "or submit another by --force"
        )


def check_edited(one: Submission) -> None:
    """Raise `UsageError` when somebody has edited the script, and it would be overwritten."""
    if one.text is None or not one.script.exists():
        return
    there = text_of(one.script)
    if there != one.text and render.is_edited(there):
        raise UsageError(
            f"{one.script} was edited: submit it as it is by omb-py job submit {one.script}, "
            "or overwrite it by --force"
        )


def refused(error: OmbError, taken: Sequence[str], one: Submission) -> str:
    """What to say of a refusal, and how to go on."""
    if not taken:
        return str(error)
    return (
        f"{error}; submitted so far: {', '.join(taken)}; submit the rest later by omb-py job "
        f"submit {one.script}, or cancel these and take one job for all numbers of nodes by "
        "--one-job"
    )


# In a job.


def begin(job: Job, number: str, at_most: float, elapsed: float) -> tuple[int, str]:
    """The whole seconds that a job's sweep may take, and a note where the scheduler says nothing.

    At most ``at_most`` less ``elapsed``, both since the script began, and what the scheduler says
    is left less ``job.reserve``. Raises `ChainEndError` when that is too little.
    """
    left, note = time_left(job.scheduler, number, elapsed)
    reserve = job.machine.job.reserve
    seconds = math.floor(min([at_most - elapsed, *([] if left is None else [left - reserve])]))
    if seconds < USEFUL_SECONDS:
        raise ChainEndError(
            f"only {max(0, seconds)} s of the walltime are left beside job.reserve = "
            f"{reserve:g} s, too few to measure anything: ask for more",
            job.submit_command,
        )
    return seconds, note


def time_left(scheduler: Scheduler, number: str, elapsed: float) -> tuple[float | None, str]:
    """The seconds of walltime that are left, or why the scheduler does not say."""
    why = "there is no time limit in its answer"
    for source in scheduler.time_left:
        text = os.environ.get(source.variable, "") if source.variable else ""
        if source.command and scheduler.number.fullmatch(number):
            words = [*source.command, *([number] if source.numbered else [])]
            try:
                answer = ask(scheduler, words, patience=IN_JOB_SECONDS)
            except (OmbError, OSError) as error:
                why = str(error)
                continue
            text = answer.stdout
            if answer.returncode != 0:
                why = words_of(answer)
        seconds = source.seconds_left(text, time.time(), elapsed)
        if seconds is not None:
            return seconds, ""
    return None, (
        f"{scheduler.title} does not say how much time is left, so the script's own walltime "
        f"holds: {why}"
    )


def go_on(job: Job, number: str, chain: str, signalled: bool, kept: Sequence[str]) -> str:
    """Submit the next job after this one, which came further, unless one waits or runs; its number.

    ``signalled`` tells that a signal has stopped this one, ``kept`` are options from its own
    submission. Raises `ChainEndError` when no job goes on.
    """
    scheduler, most = job.scheduler, job.machine.job.max_jobs
    known = {one.number: one for one in read_record(scheduler, job.root)}
    if signalled or (number in known and known[number].cancelled):
        raise ChainEndError(
            "a signal stopped this job before its time was over, so that it goes on only if "
            f"{scheduler.title} starts it again",
            job.submit_command,
        )
    check_left(job)
    if chain == "none":
        raise ChainEndError("its jobs do not submit others (chain = none)", job.submit_command)
    others = [one for one in known.values() if one.number != number]
    with suppress(OmbError):
        for other, _ in active(scheduler, others, job.name, IN_JOB_SECONDS):
            return other.number
    length = jobs_of_chain(known, number)
    if length >= most:
        raise ChainEndError(
            f"it has had {count(length, 'job')} (job.max_jobs = {most})", job.submit_command
        )
    try:
        for word in kept:
            plain(word.lstrip("-"))
        following = hand_over_in_job(scheduler, job.script, kept)
    except OmbError as error:
        raise ChainEndError(str(error), job.submit_command) from error
    with suppress(OmbError):  # on a full disk: the next job is there all the same
        append(job.root, following, job.name, "submitted", f"after={number}")
    return following


def jobs_of_chain(known: Mapping[str, JobRecord], number: str) -> int:
    """How many jobs a chain has had up to this one; a person's submission begins a chain."""
    found = [number]
    while (job := known.get(found[-1])) and job.after and job.after not in found:
        found.append(job.after)
    return len(found)


def check_left(job: Job) -> None:
    """Raise `ChainEndError` when another job like this one could measure nothing of what is left.

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
        raise ChainEndError("another job measures what is left", "")
    if larger:
        raise ChainEndError(shortage(larger, here, job), "")


# Cancelling.


def cancel(
    scheduler: Scheduler,
    folder: Path,
    chosen: Callable[[JobRecord], bool],
    tell: Callable[[str], None],
) -> int:
    """Cancel the ``chosen`` of a folder's recorded jobs, those included that they submit meanwhile.

    The last submitted comes first. The scheduler is asked again until none is left or
    `CANCEL_SECONDS` are over. The exit code: 0 when none is left, 1 when the scheduler refuses or
    jobs have not ended. Raises `OmbError` when the scheduler does not answer.
    """
    answers: dict[str, str] = {}
    deadline, pause = time.monotonic() + CANCEL_SECONDS, FIRST_PAUSE
    while True:
        known = read_record(scheduler, folder)
        left = active(scheduler, [job for job in known if chosen(job)])
        new = [(job, said) for job, said in reversed(left) if job.number not in answers]
        for job, said in new:
            answer = ask(scheduler, [*scheduler.cancel, job.number])
            answers[job.number] = words_of(answer) if answer.returncode != 0 else ""
            if answer.returncode == 0:
                append(folder, job.number, job.script, "cancelled")
                tell(f"{job.number} {job.script}: cancelled ({said} before)")
        is_settled = not new and all(answers[job.number] for job, _ in left)
        is_same = len(read_record(scheduler, folder)) == len(known)
        if (is_settled and is_same) or time.monotonic() > deadline:
            break
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)
    for job, said in left:
        why = answers[job.number]
        what = f"does not cancel it: {why}" if why else f"has not ended it: {said}"
        tell(f"{job.number} {job.script}: {scheduler.title} {what}")
    if not answers:
        tell(f"nothing to cancel: no job in {folder} waits or runs")
    return 1 if left else 0

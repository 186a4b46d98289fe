"""Cancelling the jobs of a sweep, those included that they submit in that moment."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from omb_py.core.errors import UsageError
from omb_py.core.text.words import count
from omb_py.sweeps import jobs, record
from omb_py.sweeps.record import JobRecord
from omb_py.sweeps.scheduler import ACTIVE, Scheduler

PATIENCE = 60.0
"""Seconds in which cancelled jobs have to end; schedulers give them up to about 30."""

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 8.0
"""Seconds between questions, doubled from one to the next."""

Chosen = Callable[[JobRecord], bool]


def cancel(
    scheduler: Scheduler,
    folder: Path,
    chosen: Chosen,
    numbers: Sequence[str],
    say: Callable[[str], None],
) -> int:
    """Cancel jobs of a sweep's folder that wait, are held or run; the exit code.

    Those ``chosen``, or of them the ``numbers``, last submitted first, so that no job starts that
    depends on one of them. The scheduler is asked again until none is left or `PATIENCE` is over,
    since a job may submit its successor before it ends. 0 when none is left, 1 when the scheduler
    refuses or jobs have not ended. Raises `UsageError` for a number that is not recorded here,
    `OmbError` when the scheduler does not answer.
    """
    recorded = record.read_jobs(scheduler, folder)
    wanted, known = ({jobs.short(one) for one in some} for some in (numbers, numbers_of(recorded)))
    if strange := [number for number in numbers if jobs.short(number) not in known]:
        raise UsageError(
            f"{', '.join(strange)} is not a job of {folder}: 'omb-py job status' lists its jobs"
        )

    def concerned(job: JobRecord) -> bool:
        name = jobs.short(job.number)
        return chosen(job) and (not wanted or name in wanted or name not in known)

    answers: dict[str, str] = {}
    deadline, pause = time.monotonic() + PATIENCE, FIRST_PAUSE
    while True:
        reports = jobs.reports(scheduler, numbers_of(filter(concerned, recorded)))
        left = [job for job in recorded if is_active(reports.get(job.number))]
        new = [job for job in reversed(left) if job.number not in answers]
        for job in new:
            answers[job.number] = cancel_one(scheduler, folder, job)
            if not answers[job.number]:
                was = reports[job.number].state
                say(f"{job.number} {job.script}: cancelled ({was} before)")
        before, recorded = recorded, record.read_jobs(scheduler, folder)
        submitted = len(recorded) > len(before)
        if not submitted and not new and all(answers[job.number] for job in left):
            break
        if time.monotonic() > deadline:
            break
        if left:
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
    for job in left:
        why = answers[job.number]
        said = f"does not cancel it: {why}" if why else f"has not ended it in {PATIENCE:g} seconds"
        say(f"{job.number} {job.script}: {scheduler.title} {said}")
    if not answers:
        recorded_jobs = f"none of {count(len(recorded), 'job')}" if recorded else "no job"
        say(f"nothing to cancel: {recorded_jobs} in {folder} waits or runs")
    return 1 if left else 0


def numbers_of(found: Iterable[JobRecord]) -> list[str]:
    """The numbers of jobs."""
    return [job.number for job in found]


def is_active(report: jobs.Report | None) -> bool:
    """Whether a job is still to come to its end."""
    return report is not None and report.state in ACTIVE


def cancel_one(scheduler: Scheduler, folder: Path, job: JobRecord) -> str:
    """Hand a job's number to the scheduler's command; what it says where it refuses.

    Where it does not, that is recorded. Raises `OmbError` when the command is not there or hangs.
    """
    answer = jobs.ask(scheduler, [*scheduler.cancel, job.number])
    if answer.returncode != 0:
        return jobs.words_of(answer)
    path = folder / "jobs" / f"{job.script}.record"
    record.append(path, job.number, [record.CANCELLED])
    return ""

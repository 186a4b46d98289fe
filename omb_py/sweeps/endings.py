"""How a batch job ended, from what its scheduler says, what is recorded, and what its files say."""

from __future__ import annotations

import time
from dataclasses import dataclass

from omb_py.sweeps import jobs
from omb_py.sweeps.record import JobRecord
from omb_py.sweeps.runner import UNFINISHED
from omb_py.sweeps.scheduler import ACTIVE, CANCELLED, ENDED, FAILED, KILLED, WALLTIME, Scheduler

FINISHED, STOPPED, FORGOTTEN, UNKNOWN = "finished", "stopped", jobs.FORGOTTEN, "unknown"
"""Beside what the scheduler says: ended with exit status 0; with 75, more to do; neither the
scheduler nor a record says how it ended; the scheduler does not answer."""

LATE = 120.0
"""Seconds before the end of its walltime in which a job that then vanished was last seen."""


@dataclass(frozen=True)
class End:
    """How a job ended: a state, its exit status where it is known, and why in words."""

    state: str
    exit_status: int | None = None
    why: str = ""


@dataclass(frozen=True)
class Evidence:
    """All that is known of a job.

    ``answered`` tells whether the scheduler has answered: then it has forgotten a job of which
    there is no ``report``. ``log`` is the end of the job's files, ``seen`` when its output last
    changed. ``follower`` is the job that it submitted to go on.
    """

    scheduler: Scheduler
    record: JobRecord
    report: jobs.Report | None
    answered: bool = True
    log: str = ""
    seen: float | None = None
    follower: str | None = None

    @property
    def said(self) -> str | None:
        """The state that the scheduler tells."""
        return self.report.state if self.report else None

    @property
    def sign(self) -> str | None:
        """What the job's files say of its end."""
        return jobs.sign_in(self.scheduler, self.log)

    @property
    def exit_status(self) -> int | None:
        """The script's own; else the scheduler's, which may be of what was left of the job.

        A scheduler's 0 counts for a job that it says ended: Slurm has it for killed jobs as well.
        """
        if self.record.exit_status is not None:
            return self.record.exit_status
        if self.report is not None and (self.report.exit_status or self.said == ENDED):
            return self.report.exit_status
        pattern = self.scheduler.logged_exit
        logged = pattern.search(self.log) if pattern else None
        return int(logged[1]) if logged else None

    @property
    def time_was_over(self) -> bool:
        """Whether the scheduler ended it at its walltime."""
        told = self.report is not None and self.report.fault == WALLTIME
        return told or self.sign == WALLTIME

    @property
    def was_cancelled(self) -> bool:
        """Whether somebody cancelled it: by the scheduler's word, its files or the record."""
        if CANCELLED in (self.said, self.sign):
            return True
        return self.record.cancelled and (self.answered or self.record.ended is not None)

    @property
    def vanished_late(self) -> bool:
        """Whether it was last seen shortly before the end of its walltime, which is over."""
        until = self.record.until
        if until is None or self.seen is None:
            return False
        return until - LATE <= self.seen and until <= time.time()


def end_of(job: Evidence) -> End:
    """What became of a job."""
    if job.said in ACTIVE:
        return End(str(job.said), None, "(its script has ended)" if job.record.ended else "")
    status = job.exit_status
    goes_on = f"({job.follower} goes on)" if job.follower else ""
    if status == 0:
        return End(STOPPED, 0, goes_on) if job.follower else End(FINISHED, 0)
    if status == UNFINISHED and (job.time_was_over or not job.was_cancelled):
        return End(STOPPED, status, goes_on or ("at its walltime" if job.time_was_over else ""))
    if job.time_was_over:
        return End(KILLED, status, "at its walltime")
    if job.was_cancelled:
        return End(CANCELLED, status)
    if KILLED in (job.said, job.sign):
        fault = job.report.fault if job.report else ""
        return End(KILLED, status, fault and f"({fault})")
    if status is not None:
        return End(FAILED, status)
    if job.said not in (None, ENDED):
        return End(str(job.said))
    return end_without_status(job)


def end_without_status(job: Evidence) -> End:
    """What became of a job when nobody tells how its script ended."""
    if job.said is None and not job.answered:
        return End(UNKNOWN)
    if job.record.began is None:
        never = "before its script began" if not job.record.bare else ""
        return End(ENDED, None, never) if job.said else End(FORGOTTEN)
    return End(KILLED, None, "(probably at its walltime)" if job.vanished_late else "")

"""What became of the jobs of a sweep: what the scheduler says, what is recorded, and their files.

A scheduler forgets jobs some time after their end, Cobalt at once. What is recorded, and the output
that a job leaves, then say how it ended.
"""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from omb_py.core.errors import OmbError
from omb_py.core.text.words import count
from omb_py.sweeps import jobs, record
from omb_py.sweeps.batch import Job, node_count
from omb_py.sweeps.folder import FAILURES, MISSING, Folder
from omb_py.sweeps.job_files import last_change, output_of, text_of
from omb_py.sweeps.points import Plan, Point
from omb_py.sweeps.reasons import MAX_LISTED, Reason, reasons
from omb_py.sweeps.record import JobRecord
from omb_py.sweeps.runner import UNFINISHED
from omb_py.sweeps.scheduler import (
    ACTIVE,
    CANCELLED,
    ENDED,
    FAILED,
    KILLED,
    RUNNING,
    WALLTIME,
    Scheduler,
)

FINISHED, STOPPED, FORGOTTEN, UNKNOWN = "finished", "stopped", jobs.FORGOTTEN, "unknown"
"""Beside what the scheduler says: ended with exit status 0; with 75, more to do; neither the
scheduler nor a record says how it ended; the scheduler does not answer."""

SIGNALLED = "signalled"
"""What has ended by a signal before its time was over, and nobody says that it was cancelled."""

LATE = 120.0
"""Seconds before the end of its walltime in which a job that then vanished was last seen."""


WORDS = {STOPPED: "stopped with more to do", SIGNALLED: "stopped by a signal"}
"""What is said for a state of one word that says too little."""


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
        again = job.said != RUNNING and job.record.began is not None
        ended = "(its script has ended)" if job.record.ended else ""
        return End(str(job.said), None, "(to start again)" if again else ended)
    status = job.exit_status
    goes_on = f"({job.follower} goes on)" if job.follower else ""
    if status == 0:
        return End(STOPPED, 0, goes_on) if job.follower else End(FINISHED, 0)
    stopped = not (job.was_cancelled or job.record.signalled)
    if status == UNFINISHED and (job.time_was_over or stopped):
        return End(STOPPED, status, goes_on or ("at its walltime" if job.time_was_over else ""))
    if job.time_was_over:
        return End(KILLED, status, "at its walltime")
    if job.was_cancelled:
        return End(CANCELLED, status)
    if job.record.signalled:
        fault = job.report.fault if job.report else ""
        return End(SIGNALLED, status, goes_on or (fault and f"({fault})"))
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
        return End(ENDED, None, "before its script began") if job.said else End(FORGOTTEN)
    return End(KILLED, None, "(probably at its walltime)" if job.vanished_late else "")


COMPLETE, INCOMPLETE, UNDER_WAY, NO_ANSWER = 0, 1, 75, 69
"""Exit codes of `omb-py job status`."""


@dataclass(frozen=True)
class JobStatus:
    """A job: what became of it, and what is there of its part of the sweep.

    ``until`` is the end of its walltime in seconds since 1970, ``output`` the file of what it
    printed, which need not be there yet. ``rows`` of ``planned`` are there.
    """

    number: str
    script: str
    nodes: int | None
    state: str
    exit_status: int | None
    why: str
    until: float | None
    output: Path
    rows: int
    planned: int
    record: JobRecord

    @property
    def output_is_there(self) -> bool:
        """Whether the file of its output exists."""
        return self.output.is_file()

    def __str__(self) -> str:
        """The state in words."""
        if self.state == RUNNING and self.until is not None:
            return f"running until {time.strftime('%Y-%m-%d %H:%M', time.localtime(self.until))}"
        text = WORDS.get(self.state, self.state)
        if self.state == FAILED and self.exit_status is not None:
            text += f" (exit status {self.exit_status})"
        return f"{text} {self.why}".rstrip()


@dataclass(frozen=True)
class SweepStatus:
    """A sweep: its jobs, its rows, why points failed, and what the scheduler has not answered.

    ``never`` is why points cannot be measured here, ``to_go_on`` the command that submits what
    measures the missing rows.
    """

    folder: Path
    jobs: tuple[JobStatus, ...]
    rows: int
    planned: int
    missing: int
    failures: tuple[Reason, ...]
    never: tuple[Reason, ...] = ()
    to_go_on: str = ""
    trouble: str = ""

    @property
    def exit_code(self) -> int:
        """Whether all is there, jobs are under way, or something is to be done, for scripts."""
        if not self.missing:
            return COMPLETE if self.rows else INCOMPLETE
        if any(job.state in ACTIVE for job in self.jobs):
            return UNDER_WAY
        return NO_ANSWER if self.trouble else INCOMPLETE

    @property
    def next(self) -> str:
        """The command by which a person goes on; nothing where a job does, or nobody knows."""
        return self.to_go_on if self.exit_code == INCOMPLETE else ""


def status(job: Job) -> SweepStatus:
    """What became of all jobs of a sweep's folder; raises `OmbError` when it cannot be read."""
    known = record.read_jobs(job.scheduler, job.root)
    trouble, found = "", {}
    if known:
        try:
            found = jobs.reports(job.scheduler, [one.number for one in known])
        except OmbError as error:
            trouble = str(error)
    folder = Folder(job.root)
    rows = Rows(job.plan, folder)
    failed = [
        point
        for point in job.plan.points
        if rows.missing[point.name] and folder.state(point).outcome in (*FAILURES, MISSING)
    ]
    never = [point for point in job.plan.points if folder.state(point).given_up]
    there, planned = rows.of(None)
    became = [status_of(job, one, found.get(one.number), not trouble, known, rows) for one in known]
    return SweepStatus(
        folder=job.root,
        jobs=tuple(became),
        rows=there,
        planned=planned,
        missing=sum(rows.missing.values()),
        failures=tuple(reasons(folder, failed, lambda point: begin_of(job, point, known))),
        never=tuple(reasons(folder, never)),
        to_go_on=" && ".join(to_go_on(job, [one.script for one in became], rows)),
        trouble=trouble,
    )


def to_go_on(job: Job, submitted: Sequence[str], rows: Rows) -> Iterator[str]:
    """The commands that submit what measures the missing rows.

    That is the scripts as they are, those ``submitted`` last first, and the sweep for numbers of
    nodes of which there is none.
    """
    left = {nodes for nodes in job.counts if rows.left(nodes)}
    scripts = []
    for name in dict.fromkeys(reversed(submitted)):
        path, nodes = job.root / "jobs" / f"{name}.sh", node_count(job.sweep, name)
        its = left if nodes is None else left & {nodes}
        if its and path.is_file():
            scripts.append(str(path))
            left = left - its
    if scripts:
        yield shlex.join(["omb-py", "job", "submit", *scripts])
    words = ["omb-py", "job", "submit", job.sweep_word, "--machine", job.machine_word, *job.wishes]
    if left and not scripts:
        yield shlex.join(words)
    elif left:
        yield from (shlex.join([*words, "--nodes", str(nodes)]) for nodes in sorted(left))


def begin_of(job: Job, point: Point, known: Sequence[JobRecord]) -> str:
    """When the last job that measures a point began, as in a record; nothing for no job."""
    counts = ((one.began or 0.0, node_count(job.sweep, one.script)) for one in known)
    began = max((began for began, nodes in counts if nodes in (None, point.nodes)), default=0.0)
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began))


class Rows:
    """The rows of a sweep that are there and that are planned, read once."""

    def __init__(self, plan: Plan, folder: Folder) -> None:
        self._plan = plan
        self.missing = {point.name: len(folder.missing(point)) for point in plan.points}
        self._there = {point.name: folder.there(point) for point in plan.points}

    def of(self, nodes: int | None) -> tuple[int, int]:
        """Rows there and rows planned of the points on so many nodes, of all for None."""
        points = self._plan.on(nodes).points
        there = sum(self._there[point.name] for point in points)
        return there, sum(point.rows for point in points)

    def left(self, nodes: int | None) -> bool:
        """Whether some of these rows can still be measured."""
        return any(self.missing[point.name] for point in self._plan.on(nodes).points)


def status_of(
    job: Job,
    one: JobRecord,
    report: jobs.Report | None,
    answered: bool,
    others: Sequence[JobRecord],
    rows: Rows,
) -> JobStatus:
    """What became of one job; ``answered`` tells whether the scheduler has."""
    nodes = node_count(job.sweep, one.script)
    there, planned = rows.of(nodes)
    output = output_of(job, one, report)
    active = report is not None and report.state in ACTIVE
    end = end_of(
        Evidence(
            scheduler=job.scheduler,
            record=one,
            report=report,
            answered=answered,
            log="" if active else text_of(job.scheduler, one, output),
            seen=last_change(output),
            follower=follower(one, others, there, rows.left(nodes)),
        )
    )
    return JobStatus(
        number=one.number,
        script=one.script,
        nodes=nodes,
        state=end.state,
        exit_status=end.exit_status,
        why=end.why,
        until=(report.until if report else None) or one.until,
        output=output,
        rows=there,
        planned=planned,
        record=one,
    )


def follower(one: JobRecord, others: Sequence[JobRecord], there: int, left: bool) -> str | None:
    """The job that goes on where a job has stopped, of those that it or a person submitted for it.

    It is needed where rows are ``left``, or were missing (of the ``there`` now) when it began.
    """
    for other in others:
        needed = left or (other.rows is not None and other.rows < there)
        if needed and other.after == one.number and one.began is not None:
            return other.number
    return None


def as_json(found: SweepStatus) -> Mapping[str, object]:
    """All of it, for scripts; times are in seconds since 1970."""
    return {
        "folder": str(found.folder),
        "rows": found.rows,
        "planned": found.planned,
        "missing": found.missing,
        "jobs": [
            {
                "number": job.number,
                "script": job.script,
                "nodes": job.nodes,
                "state": job.state,
                "exit_status": job.exit_status,
                "words": str(job),
                "submitted": job.record.submitted,
                "after": job.record.after,
                "began": job.record.began,
                "until": job.until,
                "ended": job.record.ended,
                "output": str(job.output),
                "output_is_there": job.output_is_there,
                "rows": job.rows,
                "planned": job.planned,
            }
            for job in found.jobs
        ],
        "failures": [of_reason(reason) for reason in found.failures],
        "never": [of_reason(reason) for reason in found.never],
        "to_go_on": found.next or None,
        "scheduler_error": found.trouble or None,
    }


def of_reason(reason: Reason) -> Mapping[str, object]:
    """A reason, for scripts."""
    return {
        "message": reason.said,
        "points": [point.describe() for point in reason.points],
        "log": str(reason.log),
        "earlier": reason.earlier,
    }


WIDEST = 1000
"""Columns where the output is no terminal: lines are not broken there."""


def show(found: SweepStatus) -> None:
    """Print the jobs, the rows that are there, why points failed, and how to go on."""
    console = Console(width=None if sys.stdout.isatty() else WIDEST)
    if found.jobs:
        table = Table(box=None, pad_edge=False)
        for name in ("job", "script", "state"):
            table.add_column(name, overflow="fold")
        table.add_column("rows", justify="right")
        table.add_column("output", overflow="fold")
        for job in found.jobs:
            rows = f"{job.rows} of {job.planned}"
            table.add_row(job.number, job.script, str(job), rows, output(job))
        with console.capture() as lines:
            console.print(table)
        for line in lines.get().splitlines():
            say(console, line.rstrip())
    else:
        say(console, f"no job has been submitted or begun in {found.folder}")
    never = found.planned - found.rows - found.missing
    but = f", {never} cannot be measured here" if never else ""
    say(console, f"{found.rows} of {count(found.planned, 'row')} there{but}, in {found.folder}")
    for several, what in ((found.failures, "failed"), (found.never, "cannot be measured here")):
        if several:
            points = sum(len(reason.points) for reason in several)
            say(console, f"{count(points, 'point')} {what}:")
        for reason in several[:MAX_LISTED]:
            say(console, f"  {reason}")
        if len(several) > MAX_LISTED:
            say(console, f"  and {len(several) - MAX_LISTED} other reasons, in --json")
    if found.jobs and found.next:
        say(console, f"no job waits or runs; to go on: {found.next}")


def say(console: Console, text: str) -> None:
    """Print a line as it is."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def output(job: JobStatus) -> str:
    """Where the output is, and whether it is there."""
    if job.output_is_there:
        return str(job.output)
    return f"{job.output} (not there{' yet' if job.state in ACTIVE else ''})"

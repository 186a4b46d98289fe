"""Files that a job leaves: what it printed, and what its scheduler logged of it."""

from __future__ import annotations

import glob
import os
import re
from contextlib import suppress
from itertools import product
from pathlib import Path

from omb_py.core.errors import OmbError
from omb_py.sweeps import jobs
from omb_py.sweeps.batch import Job, title_of
from omb_py.sweeps.record import JobRecord
from omb_py.sweeps.scheduler import ACTIVE, CANCELLED, RESTARTED, RUNNING, Scheduler

TAIL = 16384
"""Bytes at the end of a job's files in which its end is looked for."""


def fate(job: Job, one: JobRecord) -> str | None:
    """Whether somebody cancelled a job that a signal has stopped, or it starts again.

    `CANCELLED` or `RESTARTED`, by what is recorded, by its files, which tell before the scheduler
    does, and by the scheduler; None where nobody tells.
    """
    if one.cancelled:
        return CANCELLED
    report = None
    with suppress(OmbError):
        report = jobs.reports(job.scheduler, [one.number]).get(one.number)
    if report is not None and report.state in ACTIVE and report.state != RUNNING:
        return RESTARTED
    if report is not None and report.state == CANCELLED:
        return CANCELLED
    sign = jobs.sign_in(job.scheduler, text_of(job.scheduler, one, output_of(job, one, report)))
    return sign if sign in (CANCELLED, RESTARTED) else None


def output_of(job: Job, one: JobRecord, report: jobs.Report | None) -> Path:
    """The file of what a job prints: where the scheduler says, or by its name in this folder."""
    number = one.number.partition(".")[0]
    if report is not None and report.output:
        name = re.sub(r"^[^/:]+:", "", report.output)  # PBS: HOST:PATH
        return relative(Path(re.sub("%[AJj]", number, name)))
    patterns = job.scheduler.outputs
    found = (
        path
        for title, pattern in product((title_of(job, one.script), "*"), patterns)
        for path in sorted(Path().glob(pattern.format(title=title, number=glob.escape(number))))
    )
    expected = patterns[0].format(title=title_of(job, one.script), number=number)
    return next(found, Path(expected))


def relative(path: Path) -> Path:
    """A path from the current folder, where it is in it."""
    here = Path(os.path.abspath("."))
    return path.relative_to(here) if path.is_relative_to(here) else path


def text_of(scheduler: Scheduler, known: JobRecord, output: Path) -> str:
    """The end of a job's output and of what the scheduler has logged of it."""
    number = jobs.short(known.number)
    paths = [path for name in scheduler.logs for path in Path().glob(name.format(number=number))]
    return "\n".join(tail(path) for path in [*paths, output])


def tail(path: Path) -> str:
    """The last `TAIL` bytes of a regular file; nothing where there is none."""
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - TAIL))
            return file.read(TAIL).decode(errors="replace")
    except OSError:
        return ""


def last_change(path: Path) -> float | None:
    """When a file last changed, in seconds since 1970; None where there is none."""
    try:
        return path.stat().st_mtime
    except OSError:
        return None

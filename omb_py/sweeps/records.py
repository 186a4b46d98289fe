"""What is recorded of each job of a sweep, whether or not the scheduler remembers it.

`NAME.numbers`, of earlier versions, has nothing but the numbers of the jobs of `NAME.sh`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from omb_py import inputs
from omb_py.sweeps import record
from omb_py.sweeps.scheduler import Scheduler

SECONDS = re.compile(r"\d{1,12}", re.ASCII)
STATUS = re.compile(r"-?\d{1,6}", re.ASCII)


@dataclass(frozen=True)
class JobRecord:
    """What is recorded of a job; times are in seconds since 1970, None where nothing is recorded.

    ``script`` is the name of its script without its ending, ``after`` the job that submitted it or
    that it depends on. ``until`` is the end of its walltime, ``exit_status`` its script's, ``rows``
    what was there of its part of the sweep when it began. ``bare`` is true where nothing is
    recorded but its number.
    """

    script: str
    number: str
    submitted: float | None = None
    after: str | None = None
    began: float | None = None
    until: float | None = None
    ended: float | None = None
    exit_status: int | None = None
    rows: int | None = None
    cancelled: bool = False
    bare: bool = True


def read_jobs(scheduler: Scheduler, folder: Path) -> list[JobRecord]:
    """The jobs of a sweep's folder, in the order in which they were submitted.

    Raises `OmbError` when a record cannot be read.
    """
    found: dict[str, JobRecord] = {}
    for path in sorted((folder / "jobs").glob("*.numbers")):
        for number in scheduler.number.findall(inputs.read(path).decode(errors="replace")):
            found.setdefault(number, JobRecord(path.stem, number))
    for path in sorted((folder / "jobs").glob("*.record")):
        for event in record.events(path, scheduler):
            job = found.get(event.job) or JobRecord(path.stem, event.job)
            found[event.job] = with_event(job, event, scheduler)
    return sorted(found.values(), key=lambda job: job.submitted or job.began or 0.0)


def with_event(job: JobRecord, event: record.Event, scheduler: Scheduler) -> JobRecord:
    """A job after one more event; one of a time that is none changes nothing."""
    when = seconds_of(event.time)
    if when is None:
        return job
    job = replace(job, bare=False, **linked(event.values, scheduler))
    if event.name == record.SUBMITTED:
        return replace(job, submitted=when)
    if event.name == record.BEGAN:  # once more, where it is run again
        return replace(job, began=when, ended=None, exit_status=None)
    if event.name == record.ENDED:
        status = whole(event.values.get("exit", ""), STATUS)
        cancelled = job.cancelled or event.values.get("cancelled", "no") not in ("", "no")
        return replace(job, ended=when, exit_status=status, cancelled=cancelled)
    return replace(job, cancelled=True) if event.name == record.CANCELLED else job


def linked(values: Mapping[str, str], scheduler: Scheduler) -> dict[str, Any]:
    """What the values of any event say: the job before, the end of the walltime, the rows."""
    found: dict[str, Any] = {}
    if before := scheduler.number.fullmatch(values.get("after", "")):
        found["after"] = before[1]
    if (until := whole(values.get("until", ""), SECONDS)) is not None:
        found["until"] = float(until)
    if (rows := whole(values.get("rows", ""), SECONDS)) is not None:
        found["rows"] = rows
    return found


def seconds_of(time: str) -> float | None:
    """Seconds since 1970 of a time such as 2026-11-22T20:00:00Z; None for any other text."""
    try:
        return (
            datetime.strptime(time, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc).timestamp()
        )
    except ValueError:
        return None


def whole(text: str, form: re.Pattern[str]) -> int | None:
    """A whole number of a form; None for any other text."""
    return int(text) if form.fullmatch(text) else None

"""The record of a script's jobs, ``jobs/NAME.record`` in a sweep's folder: one line an event.

A line is ``TIME JOB EVENT KEY=VALUE ...``: UTC, the scheduler's number of the job, and what became
of it. Batch scripts append to it as well, so that it is there where omb-py cannot be started.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from omb_py.core.text import files
from omb_py.sweeps.files import writing
from omb_py.sweeps.quoting import PLAIN
from omb_py.sweeps.scheduler import Scheduler

SUBMITTED, BEGAN, ENDED, CANCELLED = "submitted", "began", "ended", "cancelled"
"""Events; a line without one adds values to its job."""

SECONDS = re.compile(r"\d{1,12}", re.ASCII)
STATUS = re.compile(r"-?\d{1,6}", re.ASCII)


@dataclass(frozen=True)
class Event:
    """What became of a job at a time. ``name`` is empty for a line that only has values.

    ``submitted`` has ``after``, the job that submitted it or on which it depends; ``began`` has
    ``host``; ``ended`` has ``exit``, the script's exit code, and ``signalled`` where a signal came
    before its time was over. ``until`` is when the walltime is over, in Unix seconds, ``rows`` the
    rows that were there. A scheduler may start a job again: ``start`` is another for each start.
    """

    time: str
    job: str
    name: str
    values: Mapping[str, str]


def path_of(script: Path) -> Path:
    """The record beside a script."""
    return script.with_suffix(".record")


def events(path: Path, scheduler: Scheduler) -> list[Event]:
    """The events of a record in order, but for lines that are not whole or of no such job.

    Raises `OmbError` when it cannot be read.
    """
    with files.failing("read", path):
        if not path.exists():
            return []
        text = path.read_text(encoding="utf-8", errors="replace")
    found = []
    for line in text[: text.rfind("\n") + 1].split("\n"):
        moment, job, *words = [*line.split(" "), "", ""]
        if not scheduler.number.fullmatch(job):
            continue
        names = [word for word in words if word and "=" not in word]
        values = dict(word.split("=", 1) for word in words if "=" in word)
        found.append(Event(moment, job, names[0] if names else "", values))
    return found


def append(path: Path, job: str, words: Sequence[str]) -> None:
    """Add an event in one write, so that lines of several processes stay whole.

    Raises `OmbError` when it cannot be written.
    """
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    line = " ".join([moment, job, *words])
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab", buffering=0) as file:
            file.write(f"{line}\n".encode())


@dataclass(frozen=True)
class JobRecord:
    """What is recorded of a job; times are in seconds since 1970, None where nothing is recorded.

    ``script`` is the name of its script without its ending, ``after`` the job that submitted it or
    that it depends on. ``rows`` were there of its part of the sweep when it began for the first
    time. ``kept`` is what it was submitted with, by the names of `Scheduler.kept`, where its script
    does not say. ``bare`` is true where nothing is recorded but its number.

    Of its last ``start`` are ``began``, ``until``, the end of its walltime, ``ended``,
    ``exit_status``, its script's, and ``signalled``, whether a signal came before that time.
    """

    script: str
    number: str
    submitted: float | None = None
    after: str | None = None
    start: str | None = None
    began: float | None = None
    until: float | None = None
    ended: float | None = None
    exit_status: int | None = None
    signalled: bool = False
    rows: int | None = None
    kept: Mapping[str, str] = field(default_factory=dict)
    cancelled: bool = False


def read_jobs(scheduler: Scheduler, folder: Path) -> list[JobRecord]:
    """The jobs of a sweep's folder, in the order in which they were submitted.

    Raises `OmbError` when a record cannot be read.
    """
    found: dict[str, JobRecord] = {}
    for path in sorted((folder / "jobs").glob("*.record")):
        add(found, path, scheduler)
    return sorted(found.values(), key=lambda job: job.submitted or job.began or 0.0)


def jobs_in(path: Path, scheduler: Scheduler) -> list[JobRecord]:
    """The jobs of one record, in its order; raises `OmbError` when it cannot be read."""
    found: dict[str, JobRecord] = {}
    add(found, path, scheduler)
    return list(found.values())


def add(found: dict[str, JobRecord], path: Path, scheduler: Scheduler) -> None:
    """Add what a record says to the jobs in ``found``, which are by number."""
    for event in events(path, scheduler):
        job = found.get(event.job) or JobRecord(path.stem, event.job)
        found[event.job] = with_event(job, event, scheduler)


def with_event(job: JobRecord, event: Event, scheduler: Scheduler) -> JobRecord:
    """A job after one more event.

    One of a time that is none changes nothing, nor does one of an earlier start, which may end
    after a later one has begun.
    """
    when, start = seconds_of(event.time), event.values.get("start")
    if when is None or (event.name != BEGAN and start and job.start and start != job.start):
        return job
    if event.name == BEGAN:
        none: dict[str, Any] = {"until": None, "ended": None, "exit_status": None}
        job = replace(job, began=when, start=start, signalled=False, **none)
    job = replace(job, **link(job, event.values, scheduler))
    if event.name == SUBMITTED:
        return replace(job, submitted=when)
    if event.name == ENDED:
        status = whole(event.values.get("exit", ""), STATUS)
        return replace(job, ended=when, exit_status=status, signalled="signalled" in event.values)
    return replace(job, cancelled=True) if event.name == CANCELLED else job


def link(job: JobRecord, values: Mapping[str, str], scheduler: Scheduler) -> dict[str, Any]:
    """What the values of any event say beside how the job ended."""
    found: dict[str, Any] = {}
    if before := scheduler.number.fullmatch(values.get("after", "")):
        found["after"] = before[1]
    if (until := whole(values.get("until", ""), SECONDS)) is not None:
        found["until"] = float(until)
    if job.rows is None and (rows := whole(values.get("rows", ""), SECONDS)) is not None:
        found["rows"] = rows
    kept = {name: values[name] for name in scheduler.kept if PLAIN.fullmatch(values.get(name, ""))}
    return {**found, "kept": {**job.kept, **kept}}


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

"""The record of a script's jobs, ``jobs/NAME.record`` in a sweep's folder: one line an event.

A line is ``TIME JOB EVENT KEY=VALUE ...``: UTC, the scheduler's number of the job, and what became
of it. Batch scripts append to it as well, so that it is there where omb-py cannot be started.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from omb_py.errors import OmbError
from omb_py.sweeps.files import cannot_write
from omb_py.sweeps.scheduler import Scheduler

SUBMITTED, BEGAN, ENDED, CANCELLED = "submitted", "began", "ended", "cancelled"
"""Events; a line without one adds values to its job."""


@dataclass(frozen=True)
class Event:
    """What became of a job at a time. ``name`` is empty for a line that only has values.

    ``submitted`` has ``after``, the job that submitted it or on which it depends; ``began`` has
    ``host``; ``ended`` has ``exit``, the script's exit code, and ``cancelled``. ``until`` is when
    the walltime is over, in Unix seconds, ``rows`` the rows that were there before the job.
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
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise OmbError(f"cannot read {path}: {error.strerror}") from error
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
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab", buffering=0) as file:
            file.write(f"{line}\n".encode())
    except OSError as error:
        raise cannot_write(path, error) from error

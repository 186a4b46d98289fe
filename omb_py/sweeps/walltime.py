"""How long a job may still run, as its scheduler says: each function reads one kind of answer.

Each takes the answer, the time in Unix seconds and the seconds for which the job's script has been
running, and returns the seconds that are left; None where the answer does not say.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

Reader = Callable[[str, float, float], float | None]

CLOCK = re.compile(r"(?:(?:(\d+)[-:])?(\d+):)?(\d+):(\d+)(?:\.\d+)?", re.ASCII)
"""``[[days-]hours:]minutes:seconds``; PBS may write the days with a colon."""

FIELD = re.compile(
    r"^\s*(Resource_List\.walltime|resources_used\.walltime|Walltime\.Remaining) = (\S+)", re.M
)

UNLIMITED = 2**32 - 1
"""What Flux reports for a job without a time limit (``UINT_MAX``)."""


@dataclass(frozen=True)
class TimeSource:
    """Where a job's time limit is to be had: a variable of its environment, or a command.

    The job's number follows the words of ``command`` where ``numbered``.
    """

    read: Reader
    variable: str = ""
    command: tuple[str, ...] = ()
    numbered: bool = True


def end_time(text: str, now: float, elapsed: float) -> float | None:
    """The job's end in Unix seconds: Cobalt's and Slurm's variables."""
    return int(text) - now if text.isdecimal() else None


def limit(text: str, now: float, elapsed: float) -> float | None:
    """The walltime in seconds: Torque's ``PBS_WALLTIME``."""
    return int(text) - elapsed if text.isdecimal() else None


def clock_seconds(text: str) -> float | None:
    """Seconds of ``[[days-]hours:]minutes:seconds`` or of plain seconds; None for anything else.

    >>> clock_seconds("1-00:30:00")
    88200.0
    """
    if text.isdecimal():
        return float(text)
    found = CLOCK.fullmatch(text)
    if found is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def squeue(text: str, now: float, elapsed: float) -> float | None:
    """Slurm's time left (``%L``); ``UNLIMITED`` and ``NOT_SET`` say nothing."""
    return clock_seconds(text.strip())


def qstat(text: str, now: float, elapsed: float) -> float | None:
    """PBS's and Torque's full status (``-f``).

    ``resources_used`` is some minutes old, so the time since the script began counts if longer.
    """
    fields = {name: clock_seconds(value) for name, value in FIELD.findall(text)}
    granted = fields.get("Resource_List.walltime")
    used = max(elapsed, fields.get("resources_used.walltime") or 0.0)
    found = [fields.get("Walltime.Remaining"), None if granted is None else granted - used]
    return min((seconds for seconds in found if seconds is not None), default=None)


def bjobs(text: str, now: float, elapsed: float) -> float | None:
    """LSF's ``time_left``, ``hours:minutes L``; ``E`` marks an estimate that ends no job."""
    found = re.fullmatch(r"(\d+):(\d+)\s*L", text.strip(), re.ASCII)
    return None if found is None else float(int(found[1]) * 3600 + int(found[2]) * 60)


def flux(text: str, now: float, elapsed: float) -> float | None:
    """Whole seconds from ``flux job timeleft``."""
    word = text.strip()
    return float(word) if word.isdecimal() and int(word) < UNLIMITED else None

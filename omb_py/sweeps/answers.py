"""What a scheduler's commands say of jobs, read into the same terms for all schedulers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

# How long a job may still run, as its scheduler says: each function reads one kind of answer.
#
# Each takes the answer, the time in Unix seconds and the seconds since the job's script began, and
# returns the seconds that are left; None where the answer does not say.

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


Facts = Mapping[str, str]
"""What is said of one job: ``state``, ``substate``, ``exit``, ``reason``, ``name``, ``output``
(a path), ``start`` (a local time), ``limit``, ``used`` and ``left`` (durations), as far as said."""

LONGEST_DURATION = 20
"""Characters of the longest text that is taken for a duration."""

PLAIN_SECONDS = re.compile(r"\d{1,12}(?:\.\d+)?", re.ASCII)
INTEGER = re.compile(r"[+-]?\d{1,9}", re.ASCII)
KEY = re.compile(r"(\s+)([A-Za-z_][\w.]*)\s*[=:]\s?(.*)", re.ASCII)
NOTHING = {"", "-", "N/A", "(null)", "None", "NONE"}
"""How schedulers write that there is no value."""

Layout = Callable[[str], dict[str, Facts]]
"""Reads an answer into the facts of each job, by number."""


@dataclass(frozen=True)
class Table:
    """One line for each job, its values parted by bars: the number, then the facts ``columns``.

    The last value may have bars in it.
    """

    columns: tuple[str, ...]

    def __call__(self, text: str) -> dict[str, Facts]:
        found: dict[str, Facts] = {}
        for line in text.splitlines():
            number, *values = (word.strip() for word in line.split("|", len(self.columns)))
            if number and len(values) == len(self.columns):
                said = zip(self.columns, (value.removesuffix("|") for value in values), strict=True)
                found[number] = {name: value for name, value in said if value not in NOTHING}
        return found


@dataclass(frozen=True)
class Blocks:
    """Lines ``name = value`` or ``name : value`` below or after one that has the job's number.

    ``first`` finds the number, ``keys`` tells which fact a name stands for. A line that is
    indented otherwise than the first one of its block goes on with the value before.
    """

    first: re.Pattern[str]
    keys: Mapping[str, str]

    def __call__(self, text: str) -> dict[str, Facts]:
        found: dict[str, Facts] = {}
        said: dict[str, str] = {}
        indent, name = None, ""
        for line in text.splitlines():
            if begin := self.first.match(line):
                said, indent, name = {}, None, ""
                found[begin[1]] = said
            elif (entry := KEY.fullmatch(line)) and indent in (None, entry[1]):
                indent, name = entry[1], self.keys.get(entry[2], "")
                if name and entry[3].strip() not in NOTHING:
                    said.setdefault(name, entry[3].strip())
                else:
                    name = ""
            elif name and line.strip():
                said[name] += line.strip()
        return found


@dataclass(frozen=True)
class Ending:
    """How a scheduler says that a job ended: with an exit status, or by a signal.

    ``walltime`` is true where it says that the time was over, ``fault`` is another reason.
    """

    exit_status: int | None = None
    signal: int | None = None
    walltime: bool = False
    fault: str = ""


def exit_code(text: str) -> Ending:
    """An exit code as shells have it."""
    return Ending(exit_status=integer(text))


def wait_status(text: str) -> Ending:
    """Slurm's: as `waitpid` has it (`squeue`), or as ``STATUS:SIGNAL`` (`sacct`, `scontrol`)."""
    status, colon, signal = text.partition(":")
    if not colon:
        whole = integer(status)
        if whole is None:
            return Ending()
        status, signal = str(whole >> 8), str(whole & 127)
    return Ending(signal=integer(signal)) if integer(signal) else Ending(integer(status))


@dataclass(frozen=True)
class PbsExit:
    """The exit status of PBS and Torque: negative ones are their own, others from 256 signals.

    ``walltime`` is their own status of a job whose time was over.
    """

    walltime: int

    def __call__(self, text: str) -> Ending:
        status = integer(text)
        if status is None:
            return Ending()
        if status == self.walltime:
            return Ending(walltime=True)
        if status < 0:
            return Ending(fault=f"the scheduler's exit status {status}")
        return Ending(signal=status - 256) if status > 256 else Ending(exit_status=status)


def flux_code(text: str) -> Ending:
    """Flux's return code: negative for a signal, -128 for a job that never began."""
    status = integer(text)
    if status is None or status == -128:
        return Ending()
    return Ending(signal=-status) if status < 0 else Ending(exit_status=status)


def integer(text: str) -> int | None:
    """A whole number; None for any other text."""
    return int(text) if INTEGER.fullmatch(text.strip()) else None


def duration(text: str) -> float | None:
    """Seconds of ``[[DAYS-]HOURS:]MINUTES:SECONDS`` or of a number of them; None otherwise."""
    if PLAIN_SECONDS.fullmatch(text):
        return float(text)
    return clock_seconds(text) if len(text) <= LONGEST_DURATION else None


def local_time(text: str) -> float | None:
    """Seconds since 1970 of a local time as `ctime` writes it; None for any other text."""
    try:
        return datetime.strptime(" ".join(text.split()), "%a %b %d %H:%M:%S %Y").timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def time_limit(facts: Facts, now: float) -> float | None:
    """When the time of a running job is over, in seconds since 1970; None where it is not said."""
    left = duration(facts.get("left", ""))
    if left is not None:
        return now + left
    start, limit = local_time(facts.get("start", "")), duration(facts.get("limit", ""))
    return None if start is None or limit is None else start + limit


def time_was_over(facts: Facts) -> bool:
    """Whether a job has used as much time as it was given, as PBS and Torque count it."""
    used, limit = duration(facts.get("used", "")), duration(facts.get("limit", ""))
    return used is not None and limit is not None and used >= limit

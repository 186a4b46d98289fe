"""What there is to know of a batch scheduler, and how what it says is read."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any

from omb_py.core.errors import OmbError

PATIENCE = 120.0
"""Seconds that a scheduler's command may take before it is taken for hanging."""


@dataclass(frozen=True)
class Said:
    """What a scheduler says of a job: its own word for the state, and why in its own words."""

    word: str
    why: str = ""

    def __str__(self) -> str:
        return f"{self.word} ({self.why})" if self.why else self.word


NOTHING = {"", "-", "N/A", "(null)", "None", "NONE"}
"""How schedulers write that there is no value."""

ATTRIBUTE = re.compile(r"^[ \t]+([A-Za-z_][\w.]*)[ \t]*[=:][ \t]?(.*)$", re.ASCII | re.MULTILINE)


def in_columns(*names: str) -> Callable[[str], dict[str, Said]]:
    """Read one line for each job, parted by bars: its number, the word, and reasons.

    The ``names`` stand in front of the reasons, which may be empty.
    """

    def read(text: str) -> dict[str, Said]:
        found = {}
        for line in text.splitlines():
            number, word, *reasons = [*(cell.strip() for cell in line.split("|")), ""]
            why = zip(names, reasons, strict=False)
            if number and word:
                said = [f"{name} {value}".strip() for name, value in why if value not in NOTHING]
                found[number] = Said(word, ", ".join(said))
        return found

    return read


def in_blocks(first: str, word: str, *names: str) -> Callable[[str], dict[str, Said]]:
    """Read lines ``name = value`` or ``name : value`` below one that has the job's number.

    ``first`` finds the number. Where attributes are indented by blanks, lines that begin with a tab
    go on with the value before.
    """
    begin = re.compile(rf"^[ \t]*{first}[ \t]*$", re.MULTILINE | re.IGNORECASE)

    def read(text: str) -> dict[str, Said]:
        _, *parts = begin.split(text)
        found = {}
        for number, block in zip(parts[::2], parts[1::2], strict=True):
            lines = block.replace("\n\t", "") if block.startswith("\n ") else block
            values = dict(reversed(ATTRIBUTE.findall(lines)))
            why = [f"{name} {values[name]}" for name in names if name in values]
            if word in values:
                found[number] = Said(values[word].strip(), ", ".join(why))
        return found

    return read


CLOCK = re.compile(r"(?:(?:(\d+)[-:])?(\d+):)?(\d+):(\d+)(?:\.\d+)?", re.ASCII)
"""``[[days-]hours:]minutes:seconds``; PBS may write the days with a colon."""


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


@dataclass(frozen=True)
class TimeSource:
    """Where a job's time limit is to be had: a variable of its environment, or a command.

    The job's number follows the words of ``command`` where ``numbered``. Patterns find in the text
    the time at which it ``ends`` in Unix seconds, the walltime that it was ``granted`` and has
    ``used``, and what is ``left``; a ``unit`` is so many seconds.
    """

    variable: str = ""
    command: tuple[str, ...] = ()
    numbered: bool = True
    ends: str = ""
    granted: str = ""
    used: str = ""
    left: str = ""
    unit: float = 1.0

    def seconds_left(self, text: str, now: float, elapsed: float) -> float | None:
        """The seconds that are left, by the time ``now`` and those since the job's script began.

        None where the text does not say. A scheduler's count of what was used is some minutes old,
        so that what has ``elapsed`` counts if longer.
        """

        def value(pattern: str) -> float | None:
            found = re.search(pattern, text, re.ASCII | re.MULTILINE) if pattern else None
            seconds = clock_seconds(found[1]) if found else None
            return None if seconds is None else self.unit * seconds

        ends, granted = value(self.ends), value(self.granted)
        found = [
            value(self.left),
            None if ends is None else ends - now,
            None if granted is None else granted - max(elapsed, value(self.used) or 0.0),
        ]
        return min((seconds for seconds in found if seconds is not None), default=None)


@dataclass(frozen=True)
class Kept:
    """An option of ``submit`` that a job hands on to the next one where its script does not say.

    ``variable`` of the job's environment has its value; ``said`` is a pattern, for `grep -E`, of
    the options by which a directive says it.
    """

    name: str
    option: str
    variable: str
    said: str


@dataclass(frozen=True, eq=False)
class Scheduler:
    """How to submit, submit again and ask, and what a job finds in its environment.

    ``sentinel`` begins a directive, ``disabled`` one that is there to be filled in. ``submit``,
    ``status`` and ``cancel`` are the words before a script and a job's number; ``again`` submits
    from inside a job, with the options that are ``kept``. ``number`` finds a job's number in what
    ``submit`` says.

    ``status`` takes several numbers, with ``joined`` between them where they are one word;
    ``read`` reads its answer. Of the words for a state in it, ``queued`` and ``running`` are those
    of jobs that have not ended. ``history`` is for jobs that ``status`` no longer knows; a site
    need not have such records, which ``read_history`` reads. ``unknown`` is what ``status`` says of
    a job that it does not know.

    ``settings`` are the resources of `JobSettings` that it knows. Where no host file says how many
    nodes a job has, ``node_count_variables`` or ``node_count_command`` do. ``warnings`` are the
    signals it sends before a job's end. ``time_left`` are asked in turn for how long a job may
    still run.

    ``template`` is the Jinja2 text of a script for a scheduler that is not in ``templates/``, where
    those of omb-py's own are; like those it extends ``job.sh.j2``.
    """

    title: str
    sentinel: str
    submit: tuple[str, ...]
    status: tuple[str, ...]
    cancel: tuple[str, ...]
    number: re.Pattern[str]
    read: Callable[[str], Mapping[str, Said]]
    queued: frozenset[str]
    running: frozenset[str]
    unknown: tuple[str, ...] = ("unknown job",)
    joined: str = ""
    history: tuple[str, ...] = ()
    read_history: Callable[[str], Mapping[str, Said]] | None = None
    settings: frozenset[str] = frozenset()
    disabled: str = ""
    from_standard_input: bool = False
    again: tuple[str, ...] = ()
    kept: tuple[Kept, ...] = ()
    job_id_variables: tuple[str, ...] = ()
    job_id_command: str = ""
    folder_variables: tuple[str, ...] = ()
    host_file_variable: str | None = None
    node_count_variables: tuple[str, ...] = ()
    node_count_command: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ("TERM",)
    time_left: tuple[TimeSource, ...] = ()
    template: str = ""

    def is_active(self, said: Said | None) -> bool:
        """Whether a job of which this is said waits or runs."""
        return said is not None and said.word in self.queued | self.running

    @property
    def _commands(self) -> dict[str, tuple[str, ...]]:
        """The words of its commands, by the names of the fields that have them."""
        fields = ("submit", "again", "status", "history", "cancel", "node_count_command")
        return {name: words for name in fields if (words := getattr(self, name))}

    @property
    def commands(self) -> frozenset[str]:
        """The names of its commands, as in `scheduler_commands` of a machine."""
        words = (*self._commands.values(), *(source.command for source in self.time_left))
        return frozenset(command[0] for command in words if command)

    def renamed(self, names: Mapping[str, str]) -> Scheduler:
        """The scheduler where its commands have other names, as on a host of two clusters."""

        def named(words: Sequence[str]) -> tuple[str, ...]:
            return tuple(names.get(word, word) for word in words[:1]) + tuple(words[1:])

        changed: dict[str, Any] = {name: named(words) for name, words in self._commands.items()}
        changed["job_id_command"] = " ".join(named(self.job_id_command.split()))
        changed["time_left"] = tuple(
            replace(source, command=named(source.command)) for source in self.time_left
        )
        return replace(self, **changed)

    @property
    def unread(self) -> str:
        """What begins a directive that the scheduler shall not read."""
        return self.disabled or f"#{self.sentinel}"


def ask(
    scheduler: Scheduler,
    words: Sequence[str],
    text: IO[bytes] | None = None,
    patience: float = PATIENCE,
) -> subprocess.CompletedProcess[str]:
    """Run a command of the scheduler; raises `OmbError` when it is not there or hangs."""
    program = shutil.which(words[0])
    if program is None:
        raise OmbError(
            f"there is no {words[0]} on {platform.node()}, the command of {scheduler.title}: go to "
            "a host from which jobs are submitted, or use another --machine"
        )
    try:
        return subprocess.run(
            [program, *words[1:]],
            stdin=text or subprocess.DEVNULL,
            capture_output=True,
            timeout=patience,
            check=False,
            encoding="utf-8",
            errors="replace",
            env={**os.environ, "LC_ALL": "C.UTF-8"},
        )
    except subprocess.TimeoutExpired as error:
        raise OmbError(
            f"{words[0]} has not answered in {patience:g} seconds: try again later"
        ) from error


def words_of(answer: subprocess.CompletedProcess[str]) -> str:
    """What a command said, on one line."""
    said = " ".join(f"{answer.stderr} {answer.stdout}".split())
    return said[:1000] or f"exit code {answer.returncode} without a word"

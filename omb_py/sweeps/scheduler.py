"""The description of a batch scheduler: its commands, and the parsing of their output."""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

from omb_py.core.errors import OmbError
from omb_py.sweeps.quoting import plain

PATIENCE, IN_JOB_SECONDS = 120.0, 20.0
"""Seconds that a scheduler's command may take before it is taken for hanging, and in a job."""

RETRY_AFTER = (5.0, 10.0)
"""Seconds before a job submits again if the scheduler could not be reached."""

UNREACHABLE = ("cannot connect", "connect failure", "connection refused", "unable to contact")
"""Messages of schedulers whose server is unreachable: no job was made, and a retry may succeed."""


@dataclass(frozen=True)
class Said:
    """A job's state in the scheduler's own word, and its reason."""

    word: str
    why: str = ""

    def __str__(self) -> str:
        return f"{self.word} ({self.why})" if self.why else self.word


NOTHING = {"", "-", "N/A", "(null)", "None", "NONE"}
"""Values that schedulers print for a missing value."""

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


@dataclass(frozen=True)
class Kept:
    """An option of ``submit`` that a job hands on to the next one if its script does not set it.

    ``variable`` of the job's environment has its value; ``said`` is a pattern, for `grep -E`, of
    the options by which a directive sets it.
    """

    name: str
    option: str
    variable: str
    said: str


@dataclass(frozen=True, eq=False)
class Scheduler:
    """A scheduler's commands to submit, submit again and query, and the environment of its jobs.

    ``sentinel`` begins a directive, ``disabled`` one that is there to be filled in. ``submit``,
    ``status`` and ``cancel`` are the words before a script and a job's number; ``again`` submits
    from inside a job, with the options that are ``kept``. ``number`` finds a job's number in the
    output of ``submit``.

    ``status`` takes several numbers, with ``joined`` between them if they are one word; ``read``
    reads its answer. Of the words for a state in it, ``queued`` and ``running`` are those of jobs
    that have not ended. ``unknown`` is the message of ``status`` for an unknown job.

    ``settings`` are the resources of `JobSettings` that it knows. Without a host file,
    ``node_count_variables`` or ``node_count_command`` give the number of a job's nodes.
    ``warnings`` are the signals it sends before a job's end. ``time_left`` is a command of bash
    that prints how many seconds the job ``$job`` may still run, if its script began ``$SECONDS``
    ago.

    ``template`` is the Jinja2 text of a script for a scheduler that is not in ``templates/``, where
    those of omb-py's own are; like those it extends ``job.sh.j2``. ``names`` are other names of its
    commands, as on a host of two clusters, and ``patience`` the seconds that they may take.
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
    settings: frozenset[str] = frozenset()
    disabled: str = ""
    from_standard_input: bool = False
    again: tuple[str, ...] = ()
    kept: tuple[Kept, ...] = ()
    job_id_variables: tuple[str, ...] = ()
    job_id_command: tuple[str, ...] = ()
    folder_variables: tuple[str, ...] = ()
    host_file_variable: str | None = None
    node_count_variables: tuple[str, ...] = ()
    node_count_command: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ("TERM",)
    time_left: str = ":"
    template: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    patience: float = PATIENCE

    def is_active(self, said: Said | None) -> bool:
        """Return whether a job in this state waits or runs."""
        return said is not None and said.word in self.queued | self.running

    @property
    def commands(self) -> frozenset[str]:
        """The default names of its commands."""
        fields = ("submit", "again", "status", "cancel", "node_count_command", "job_id_command")
        rows = (getattr(self, name) for name in fields)
        return frozenset(words[0] for words in rows if words)

    def named(self, words: Sequence[str]) -> list[str]:
        """Return the words of a command with the name that it has here."""
        return [self.names.get(word, word) for word in words[:1]] + list(words[1:])

    @property
    def by_hand(self) -> str:
        """The command by which a person submits a script, whose name follows."""
        words = [word for word in self.named(self.submit) if not word.startswith("--")]
        return shlex.join(words) + (" <" if self.from_standard_input else "")

    @property
    def in_job(self) -> Scheduler:
        """The same where a job asks, whose walltime may be about to be over."""
        return replace(self, submit=self.again or self.submit, patience=IN_JOB_SECONDS)

    @property
    def unread(self) -> str:
        """The beginning of a directive that the scheduler shall not read."""
        return self.disabled or f"#{self.sentinel}"


def ask(
    scheduler: Scheduler, words: Sequence[str], text: IO[bytes] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command of the scheduler; raises `OmbError` when it is not there or hangs."""
    name, *arguments = scheduler.named(words)
    program = shutil.which(name)
    if program is None:
        raise OmbError(
            f"there is no {name} on {platform.node()}, the command of {scheduler.title}: go to "
            "a host from which jobs are submitted, or use another --machine"
        )
    try:
        return subprocess.run(
            [program, *arguments],
            stdin=text or subprocess.DEVNULL,
            capture_output=True,
            timeout=scheduler.patience,
            check=False,
            encoding="utf-8",
            errors="replace",
            env={**os.environ, "LC_ALL": "C.UTF-8"},
        )
    except subprocess.TimeoutExpired as error:
        raise OmbError(
            f"{name} has not answered in {scheduler.patience:g} seconds: try again later"
        ) from error


def words_of(answer: subprocess.CompletedProcess[str]) -> str:
    """Return the output of a command, on one line."""
    said = " ".join(f"{answer.stderr} {answer.stdout}".split())
    return said[:1000] or f"exit code {answer.returncode} without a word"


def hand_over(scheduler: Scheduler, script: Path, options: Sequence[str] = ()) -> str:
    """Hand a script to the scheduler from the current folder, with options; the job's number.

    Raises `UsageError` when its name might mean something to a shell (the commands of some
    schedulers are scripts that pass it to one), `OmbError` when the scheduler is not there or
    refuses, in its own words.
    """
    plain(script)
    with script.open("rb") if scheduler.from_standard_input else nullcontext() as text:
        words = [*scheduler.submit, *options, *([] if text else [str(script)])]
        answer = ask(scheduler, words, text)
    found = scheduler.number.findall(answer.stdout)
    if answer.returncode != 0 or not found:
        raise OmbError(f"{scheduler.title} does not take {script}: {words_of(answer)}")
    return str(found[-1])


def hand_over_in_job(scheduler: Scheduler, script: Path, options: Sequence[str]) -> str:
    """Submit a script from a job, with retries while the scheduler is unreachable.

    Other refusals would be repeated, and a command that hangs may have submitted the job. Raises as
    `hand_over` does.
    """
    for pause in RETRY_AFTER:
        try:
            return hand_over(scheduler.in_job, script, options)
        except OmbError as error:
            if not any(phrase in str(error).lower() for phrase in UNREACHABLE):
                raise
            time.sleep(pause)
    return hand_over(scheduler.in_job, script, options)


def said_of(scheduler: Scheduler, numbers: Sequence[str]) -> dict[str, Said]:
    """Return the scheduler's state of jobs, by number; unknown jobs are left out.

    Raises `OmbError` if the scheduler is unreachable or does not answer.
    """
    if not numbers:
        return {}
    several = [scheduler.joined.join(numbers)] if scheduler.joined else numbers
    answer = ask(scheduler, [*scheduler.status, *several])
    found = {short(number): one for number, one in scheduler.read(answer.stdout).items()}
    unknown = [number for number in numbers if short(number) not in found]
    if unknown:
        words = answer.stderr if found else f"{answer.stderr}\n{answer.stdout}"
        lines = [line for line in words.lower().splitlines() if line.strip()]
        if (answer.returncode != 0 or not found) and not all(
            any(phrase in line for phrase in scheduler.unknown) for line in lines
        ):
            jobs = f"job{'' if len(numbers) == 1 else 's'} {', '.join(numbers)}"
            raise OmbError(f"{scheduler.title} does not tell about {jobs}: {words_of(answer)}")
    return {number: found[short(number)] for number in numbers if short(number) in found}


def short(number: str) -> str:
    """Return a job's number without the server's name, and as Flux writes it in ASCII."""
    return number.partition(".")[0].replace("\u0192", "f", 1)

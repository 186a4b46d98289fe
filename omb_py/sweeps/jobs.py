"""Jobs of a sweep: handed to the scheduler by its own commands, remembered, and asked after."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from omb_py.core.errors import OmbError, UsageError
from omb_py.core.text import files
from omb_py.sweeps import record
from omb_py.sweeps.answers import Facts, time_limit, time_was_over
from omb_py.sweeps.files import write_atomically, writing
from omb_py.sweeps.quoting import PLAIN, plain
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
from omb_py.sweeps.schedulers import SCHEDULERS

PATIENCE = 120.0
"""Seconds that a scheduler's command may take before it is taken for hanging."""

SUBMIT_IN_JOB_SECONDS = 20.0
"""Seconds that it may take in a job whose walltime is about to be over."""

RETRY_AFTER = (5.0, 10.0)
"""Seconds before a job submits again where the scheduler could not be reached."""

UNREACHABLE = ("cannot connect", "connect failure", "connection refused", "unable to contact")
"""What schedulers say when their server is not there: no job was made, and soon one may be."""

FORGOTTEN = "forgotten"
"""What a job is doing of which the scheduler knows nothing (any more)."""


class NoProgramError(OmbError):
    """A scheduler's command is not on this host."""


MAX_NUMBERS = 100
"""Numbers of jobs in one command."""


@dataclass(frozen=True)
class Known:
    """A job that was submitted: which script, its number, and what it is doing."""

    script: str
    number: str
    state: str


@dataclass(frozen=True)
class Report:
    """What the scheduler says of a job.

    ``state`` is one of `scheduler`'s words, or the scheduler's own. Of a job that ended,
    ``exit_status`` and ``fault``, why it was killed (`WALLTIME` or in the scheduler's words); of
    one that runs, ``until``, in seconds since 1970. ``output`` is a path.
    """

    state: str
    exit_status: int | None = None
    fault: str = ""
    until: float | None = None
    output: str | None = None


def write(path: Path, text: str) -> None:
    """Write a script that can be run; raises `OmbError` when that cannot be done."""
    write_atomically(path, text)
    with writing(path):
        path.chmod(0o755)


def submit(
    scheduler: Scheduler, script: Path, options: Sequence[str] = (), patience: float = PATIENCE
) -> str:
    """Hand a script to the scheduler from the current folder, with options; the job's number.

    Raises `UsageError` when its name might mean something to a shell (the commands of some
    schedulers are scripts that pass it to one), `OmbError` when the scheduler is not there or
    refuses, in its own words.
    """
    plain(script)
    words = [*scheduler.submit, *options]
    if scheduler.from_standard_input:
        with script.open("rb") as text:
            answer = ask(scheduler, words, text, patience)
    else:
        answer = ask(scheduler, [*words, str(script)], patience=patience)
    found = scheduler.number.findall(answer.stdout)
    if answer.returncode != 0 or not found:
        raise OmbError(f"{scheduler.title} does not take {script}: {words_of(answer)}")
    return str(found[-1])


def submit_in_job(scheduler: Scheduler, script: Path, options: Sequence[str]) -> str:
    """Submit a script from a job, more than once where the scheduler cannot be reached.

    What it refuses it would refuse again, and a command that hangs may have submitted the job.
    Raises as `submit` does.
    """
    again = replace(scheduler, submit=scheduler.submit_again)
    for pause in RETRY_AFTER:
        try:
            return submit(again, script, options, SUBMIT_IN_JOB_SECONDS)
        except NoProgramError:
            raise
        except OmbError as error:
            if not any(phrase in str(error).lower() for phrase in UNREACHABLE):
                raise
            time.sleep(pause)
    return submit(again, script, options, SUBMIT_IN_JOB_SECONDS)


def ask(
    scheduler: Scheduler,
    words: Sequence[str],
    text: IO[bytes] | None = None,
    patience: float = PATIENCE,
) -> subprocess.CompletedProcess[str]:
    """Run a command of the scheduler; raises `OmbError` when it is not there or hangs."""
    program = shutil.which(words[0])
    if program is None:
        raise NoProgramError(
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


def active(scheduler: Scheduler, path: Path) -> Known | None:
    """The last job of a record that is queued or running, if any.

    Raises `OmbError` when the record cannot be read or the scheduler cannot tell.
    """
    begun = record.jobs_in(path, scheduler)
    # what a signal has stopped may have been put back into the queue
    numbers = [job.number for job in begun if job.ended is None or job.signalled]
    known = reports(scheduler, numbers)
    doing = [(number, known[number].state) for number in numbers if number in known]
    left = [Known(path.stem, number, state) for number, state in doing if state in ACTIVE]
    return left[-1] if left else None


def record_of(script: Path) -> Path | None:
    """The record that jobs of a script keep, from the current folder; None if it is not ours.

    Raises `OmbError` when the script cannot be read.
    """
    text = text_of(script)
    folder = re.search(rf"^jobs=({PLAIN.pattern})$", text, re.MULTILINE)
    name = re.search(rf"^script=\$jobs/({PLAIN.pattern})\.sh$", text, re.MULTILINE)
    return Path(folder[1], f"{name[1]}.record") if folder and name else None


def state(scheduler: Scheduler, number: str) -> str:
    """What a job is doing: one of `schedulers`' words, `FORGOTTEN`, or the scheduler's own word.

    Raises `OmbError` when the scheduler is not there or cannot tell.
    """
    report = reports(scheduler, [number]).get(number)
    return report.state if report else FORGOTTEN


def reports(scheduler: Scheduler, numbers: Sequence[str]) -> dict[str, Report]:
    """What the scheduler says of jobs, by number; those that it does not know are left out.

    Raises `OmbError` when the scheduler is not there or cannot tell.
    """
    now = time.time()
    found: dict[str, Report] = {}
    for first in range(0, len(numbers), MAX_NUMBERS):
        some = numbers[first : first + MAX_NUMBERS]
        facts = facts_of(scheduler, some)
        forgotten = [number for number in some if short(number) not in facts]
        if forgotten and scheduler.history and scheduler.history_layout:
            facts = {**is_past(scheduler, forgotten), **facts}
        found |= {
            number: report_of(scheduler, facts[short(number)], now)
            for number in some
            if short(number) in facts
        }
    return found


def short(number: str) -> str:
    """A job's number without the server's name, and as Flux writes it in ASCII."""
    return number.partition(".")[0].replace("\u0192", "f", 1)


def facts_of(scheduler: Scheduler, numbers: Sequence[str]) -> dict[str, Facts]:
    """What is said of jobs that the scheduler knows, by `short` number; raises `OmbError`."""
    answer = ask(scheduler, with_numbers(scheduler, scheduler.status, numbers))
    found = {short(number): said for number, said in scheduler.layout(answer.stdout).items()}
    if all(short(number) in found for number in numbers):
        return found
    said = answer.stderr if found else f"{answer.stderr}\n{answer.stdout}"
    lines = [line for line in said.lower().splitlines() if line.strip()]
    if (answer.returncode != 0 or not found) and not all(
        any(phrase in line for phrase in scheduler.unknown) for line in lines
    ):
        jobs = f"job{'' if len(numbers) == 1 else 's'} {', '.join(numbers)}"
        raise OmbError(f"{scheduler.title} does not tell about {jobs}: {words_of(answer)}")
    return found


def is_past(scheduler: Scheduler, numbers: Sequence[str]) -> dict[str, Facts]:
    """What the scheduler's accounts have of jobs, by `short` number; nothing without accounts."""
    try:
        answer = ask(scheduler, with_numbers(scheduler, scheduler.history, numbers))
    except OmbError:
        return {}
    if answer.returncode != 0 or scheduler.history_layout is None:
        return {}
    return {short(number): said for number, said in scheduler.history_layout(answer.stdout).items()}


def with_numbers(scheduler: Scheduler, words: Sequence[str], numbers: Sequence[str]) -> list[str]:
    """A command about jobs."""
    return [*words, *([scheduler.joined.join(numbers)] if scheduler.joined else numbers)]


def report_of(scheduler: Scheduler, facts: Facts, now: float) -> Report:
    """What is said of a job, in terms that are the same for all schedulers."""
    word = facts.get("state", "unknown").split()[0]
    state = scheduler.states.get(word, word.lower())
    output = facts.get("output")
    if output is not None:
        output = output.replace("%x", facts.get("name", "%x"))  # as Slurm writes a job's name
    if state in ACTIVE:
        until = time_limit(facts, now) if state == RUNNING else None
        return Report(state, until=until, output=output)
    ending = scheduler.ending(facts.get("exit", ""))
    sign = sign_in(scheduler, f"{facts.get('reason', '')} substate {facts.get('substate', '')}")
    over = ending.walltime or (ending.signal is not None and time_was_over(facts))
    if state == WALLTIME or sign == WALLTIME or over:
        return Report(KILLED, ending.exit_status, WALLTIME, output=output)
    if CANCELLED in (state, sign):
        return Report(CANCELLED, ending.exit_status, output=output)
    signal = "" if ending.signal is None else f"signal {ending.signal}"
    fault = word if state == KILLED else ending.fault or signal
    if fault:
        return Report(KILLED, ending.exit_status, fault, output=output)
    failed = state == ENDED and ending.exit_status not in (None, 0)
    return Report(FAILED if failed else state, ending.exit_status, output=output)


def sign_in(scheduler: Scheduler, text: str) -> str | None:
    """What the last of the scheduler's phrases in a text says of a job's end; None without one.

    Where several begin at the same place, it is the first of them in the scheduler's table.
    """
    found = [
        (match.start(), -index, meaning)
        for index, (phrase, meaning) in enumerate(scheduler.signs.items())
        for match in re.finditer(phrase, text)
    ]
    return max(found)[2] if found else None


def scheduler_of(script: Path) -> Scheduler:
    """The scheduler whose directives a script has.

    Raises `UsageError` when it has none, `OmbError` when it cannot be read.
    """
    text = text_of(script)
    names = re.search(r"^# Commands of its scheduler: (.+)$", text, re.MULTILINE)
    own = dict(word.split("=", 1) for word in names[1].split() if "=" in word) if names else {}
    for scheduler in SCHEDULERS.values():
        if any(line.startswith(f"{scheduler.sentinel} ") for line in text.splitlines()):
            return scheduler.renamed(own) if own else scheduler
    sentinels = ", ".join(dict.fromkeys(row.sentinel for row in SCHEDULERS.values()))
    raise UsageError(f"{script} has no directive of a scheduler ({sentinels})")


def text_of(script: Path) -> str:
    """The text of a script; raises `OmbError` when it cannot be read."""
    with files.failing("read", script):
        return script.read_text(encoding="utf-8", errors="replace")

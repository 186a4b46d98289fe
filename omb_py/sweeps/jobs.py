"""Jobs of a sweep: handed to the scheduler by its own commands, remembered, and asked after."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from omb_py.errors import OmbError, UsageError
from omb_py.sweeps import record
from omb_py.sweeps.files import cannot_write, write_atomically
from omb_py.sweeps.quoting import PLAIN, plain
from omb_py.sweeps.scheduler import HELD, RUNNING, WAITING, Scheduler
from omb_py.sweeps.schedulers import SCHEDULERS

PATIENCE = 120.0
"""Seconds that a scheduler's command may take before it is taken for hanging."""

SUBMIT_IN_JOB_SECONDS = 20.0
"""The same for a command in a job, whose walltime is about to be over."""

RETRY_AFTER = (5.0, 10.0)
"""Seconds before a job submits again where the scheduler could not be reached."""

UNREACHABLE = ("cannot connect", "connect failure", "connection refused", "unable to contact")
"""What schedulers say when their server is not there: no job was made, and soon one may be."""

FORGOTTEN = "forgotten"
"""What a job is doing of which the scheduler knows nothing (any more)."""

ACTIVE = (WAITING, HELD, RUNNING)
"""What a job is doing that is not over."""


class NoProgramError(OmbError):
    """A scheduler's command is not on this host."""


@dataclass(frozen=True)
class Known:
    """A job that was submitted: which script, its number, and what it is doing."""

    script: str
    number: str
    state: str


def write(path: Path, text: str) -> None:
    """Write a script that can be run; raises `OmbError` when that cannot be done."""
    write_atomically(path, text)
    try:
        path.chmod(0o755)
    except OSError as error:
        raise cannot_write(path, error) from error


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


def known(scheduler: Scheduler, folder: Path) -> Iterator[Known]:
    """The jobs of a sweep's folder, in the order in which they came."""
    for path in sorted((folder / "jobs").glob("*.record")):
        for number in numbers(scheduler, path):
            yield Known(path.stem, number, state(scheduler, number))


def numbers(scheduler: Scheduler, path: Path) -> list[str]:
    """The different jobs in a record; raises `OmbError` when it cannot be read."""
    return list(dict.fromkeys(event.job for event in record.events(path, scheduler)))


def active(scheduler: Scheduler, path: Path) -> Known | None:
    """The last job of a record that is queued or running, if any.

    Raises `OmbError` when the record cannot be read or the scheduler cannot tell.
    """
    found = record.events(path, scheduler)
    over = {event.job for event in found if event.name == record.ENDED}
    for number in reversed(list(dict.fromkeys(event.job for event in found))):
        if number not in over and (doing := state(scheduler, number)) in ACTIVE:
            return Known(path.stem, number, doing)
    return None


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
    answer = ask(scheduler, [*scheduler.status, number])
    found = scheduler.state.findall(answer.stdout)
    if answer.returncode == 0 and found:
        return scheduler.states.get(found[-1], found[-1].lower())
    said = f"{answer.stderr} {answer.stdout}".strip()
    if not said or any(phrase in said.lower() for phrase in scheduler.unknown):
        return FORGOTTEN
    raise OmbError(f"{scheduler.title} does not tell about job {number}: {words_of(answer)}")


def scheduler_of(script: Path) -> Scheduler:
    """The scheduler whose directives a script has.

    Raises `UsageError` when it has none, `OmbError` when it cannot be read.
    """
    lines = text_of(script).splitlines()
    for scheduler in SCHEDULERS.values():
        if any(line.startswith(f"{scheduler.sentinel} ") for line in lines):
            return scheduler
    sentinels = ", ".join(dict.fromkeys(row.sentinel for row in SCHEDULERS.values()))
    raise UsageError(f"{script} has no directive of a scheduler ({sentinels})")


def text_of(script: Path) -> str:
    """The text of a script; raises `OmbError` when it cannot be read."""
    try:
        return script.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise OmbError(f"cannot read {script}: {error.strerror}") from error

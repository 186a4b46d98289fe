"""Jobs of a sweep: handed to the scheduler by its own commands, remembered, and asked after."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from omb_py.errors import OmbError, UsageError
from omb_py.sweeps import record
from omb_py.sweeps.files import cannot_write, write_atomically
from omb_py.sweeps.quoting import plain
from omb_py.sweeps.scheduler import Scheduler
from omb_py.sweeps.schedulers import SCHEDULERS

PATIENCE = 120.0
"""Seconds that a scheduler's command may take before it is taken for hanging."""

FORGOTTEN = "forgotten"
"""What a job is doing of which the scheduler knows nothing (any more)."""


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


def submit(scheduler: Scheduler, script: Path) -> str:
    """Hand a script to the scheduler from the current folder; the job's number.

    Raises `UsageError` when its name might mean something to a shell (the commands of some
    schedulers are scripts that pass it to one), `OmbError` when the scheduler is not there or
    refuses, in its own words.
    """
    plain(script)
    words = list(scheduler.submit)
    if scheduler.from_standard_input:
        with script.open("rb") as text:
            answer = ask(scheduler, words, text)
    else:
        answer = ask(scheduler, [*words, str(script)])
    found = scheduler.number.findall(answer.stdout)
    if answer.returncode != 0 or not found:
        raise OmbError(f"{scheduler.title} does not take {script}: {words_of(answer)}")
    return str(found[-1])


def ask(
    scheduler: Scheduler, words: Sequence[str], text: IO[bytes] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command of the scheduler; raises `OmbError` when it is not there or hangs."""
    program = shutil.which(words[0])
    if program is None:
        raise OmbError(
            f"there is no {words[0]} here, the command of {scheduler.title}: go to a host from "
            "which jobs are submitted, or use another --machine"
        )
    try:
        return subprocess.run(
            [program, *words[1:]],
            stdin=text or subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
            encoding="utf-8",
            errors="replace",
            env={**os.environ, "LC_ALL": "C.UTF-8"},
        )
    except subprocess.TimeoutExpired as error:
        raise OmbError(
            f"{words[0]} has not answered in {PATIENCE:g} seconds: try again later"
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
    try:
        lines = script.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise OmbError(f"cannot read {script}: {error.strerror}") from error
    for scheduler in SCHEDULERS.values():
        if any(line.startswith(f"{scheduler.sentinel} ") for line in lines):
            return scheduler
    sentinels = ", ".join(dict.fromkeys(row.sentinel for row in SCHEDULERS.values()))
    raise UsageError(f"{script} has no directive of a scheduler ({sentinels})")

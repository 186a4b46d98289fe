"""Waiting for what other processes do."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from tests.conftest import Finished
from tests.helpers.pace import is_over

T = TypeVar("T")


def wait_for(condition: Callable[[], T], seconds: float = 120) -> T:
    """Return the first true result of a condition; fail unless there is one in time."""
    begun = time.monotonic()
    while not (found := condition()):
        assert not is_over(begun, seconds)
        time.sleep(0.02)
    return found


def processes_with(text: str, in_environment: str = "") -> dict[int, str]:
    """Command lines that have a text in them, by number; all but this process's."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            marked = in_environment.encode() in (folder / "environ").read_bytes()
            if text in line and marked and int(folder.name) != os.getpid():
                found[int(folder.name)] = line
    return found


def ended_by_timeout(job: Callable[[int], Finished], stage: str) -> tuple[Finished, int]:
    """A job with so short a timeout that it ends it, though not before all ranks are at a stage.

    On a busy machine ranks need more of them to come so far.
    """
    for seconds in (1, 5, 25):
        done = job(seconds)
        if len(done.sentences) == 1 and stage in done.err:
            break
    return done, seconds

"""Waiting for what other processes do."""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.conftest import Finished


def wait_for(condition: Callable[[], object], seconds: float = 120) -> None:
    """Fail unless the condition comes true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def ended_by_timeout(job: Callable[[int], Finished], stage: str) -> tuple[Finished, int]:
    """A job with so short a timeout that it ends it, though not before all ranks are at a stage.

    On a busy machine ranks need more of them to come so far.
    """
    for seconds in (1, 5, 25):
        done = job(seconds)
        if len(done.sentences) == 1 and stage in done.err:
            break
    return done, seconds

"""Launchers of a sweep end with it, whenever it is killed."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

from omb_py.sweeps import processes
from tests.helpers.waiting import wait_for


def test_launcher_that_is_being_started_ends_with_a_killed_sweep(tmp_path: Path) -> None:
    """pytest-randomly seeds the moments, of which one in twenty is too early for a mark."""
    marks = [f"{tmp_path}:{number}" for number in range(100)]
    for mark in marks:
        sweep = os.fork()
        if sweep == 0:
            with open(os.devnull, "wb") as log:
                command = ["sleep", "60"]
                with processes.started(command, dict(os.environ), mark, tmp_path, log):
                    time.sleep(60)
        time.sleep(random.uniform(0, 0.006))
        os.kill(sweep, signal.SIGKILL)
        os.waitpid(sweep, 0)
    time.sleep(1)
    wait_for(lambda: not any(pid for mark in marks for pid in processes.processes_with(mark)))

"""Limits of time in tests scale with what else a machine does."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import run
from tests.helpers.pace import is_over, slowness
from tests.helpers.waiting import wait_for


def test_busy_machine_has_more_time() -> None:
    number = 4 * len(os.sched_getaffinity(0))
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)]
    try:
        wait_for(lambda: slowness() > 2)
        assert not is_over(time.monotonic() - 1.5, 1)
    finally:
        for process in busy:
            process.kill()
            process.wait()


@pytest.mark.slow
def test_command_that_hangs_is_ended_and_fails_its_test(tmp_path: Path) -> None:
    begun = time.monotonic()
    with pytest.raises(subprocess.TimeoutExpired):
        run([sys.executable, "-c", "import time; time.sleep(10000)"], {}, tmp_path, 0.5)
    assert time.monotonic() - begun < 100 * slowness()

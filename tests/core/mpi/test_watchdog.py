"""What ends a rank that hangs, whatever became of those around it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.refusals import missing
from tests.helpers.waiting import wait_for

pytestmark = pytest.mark.slow

HANGING = """
import time
from omb_py.core.mpi.watchdog import Watchdog
Watchdog(0.5, rank=0).progress("hanging")
time.sleep(60)
"""


def test_a_rank_is_ended_also_when_nobody_reads_what_is_said() -> None:
    """Its launcher was killed."""
    process = subprocess.Popen([sys.executable, "-c", HANGING], stderr=subprocess.PIPE)
    assert process.stderr is not None
    process.stderr.close()
    assert process.wait(30) == -signal.SIGKILL


WORKING = """
import time
from omb_py.core.mpi.watchdog import Watchdog
watchdog = Watchdog(1, rank=0)
watchdog.progress("measuring")
for done in range(20):
    time.sleep(0.1)
    watchdog.alive(done, 30)
time.sleep(60)
"""


def killed(program: str) -> subprocess.CompletedProcess[str]:
    """A program of Python that its watchdog has killed."""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == -signal.SIGKILL
    return done


def test_iterations_are_progress_and_their_end_is_not() -> None:
    done = killed(WORKING)
    assert not missing("no progress for 1 s measuring, 19 of 30 iterations done", done.stderr)


STARTING_LONG = """
import time
from omb_py.core.mpi.watchdog import STARTING, Watchdog
watchdog = Watchdog(0.5, rank=0, last_words=["/bin/echo", "judged"], starting=30)
watchdog.progress(STARTING)
time.sleep(2)
watchdog.progress("measuring")
time.sleep(60)
"""


def test_start_may_take_longer_than_a_stage_after_it() -> None:
    done = killed(STARTING_LONG)
    assert not missing("no progress for 0.5 s while measuring", done.stderr)
    assert done.stdout == "judged\n"


RANK = "from omb_py.core.mpi.watchdog import Watchdog; Watchdog(0.5, rank=0).end()"


@pytest.mark.long
@pytest.mark.parametrize(
    ("starts", "ends"),
    [
        ("{rank}; while :; do sleep 0.1; done", "killed"),
        ("{rank}", "by itself"),
        ("sh -c '{rank}; sleep 2; exit 3'; exit $?", "by itself"),  # a shell has more to do
    ],
)
def test_launcher_outlasting_its_ranks_is_ended(tmp_path: Path, starts: str, ends: str) -> None:
    script = tmp_path / "mpiexec"
    rank = f'{sys.executable} -c "{RANK}"'
    script.write_text(f"#!/bin/sh\n{starts.format(rank=rank)}\n")
    script.chmod(0o755)
    done = subprocess.run([script], stderr=subprocess.PIPE, timeout=30, check=False)
    said = done.stderr.decode()
    if ends == "killed":
        assert done.returncode == -signal.SIGTERM
        assert not missing("omb-py: launcher 5.5 s ranks", said)
    else:
        assert done.returncode in (0, 3)
        assert said == ""


@pytest.mark.long
def test_a_frozen_rank_is_ended_with_its_launcher(tmp_path: Path) -> None:
    """No signal but SIGKILL reaches it, and what its launcher started is between the two."""
    proxy = "sleep 60 & echo $! >frozen; kill -STOP $!; wait"
    script = tmp_path / "mpiexec"
    rank = f'{sys.executable} -c "{RANK}"'
    script.write_text(f"#!/bin/sh\nsh -c '{proxy}' &\n{rank}\nwait\n")
    script.chmod(0o755)
    done = subprocess.run([script], cwd=tmp_path, stderr=subprocess.PIPE, timeout=60, check=False)
    frozen = int((tmp_path / "frozen").read_text())
    assert done.returncode == -signal.SIGTERM
    wait_for(lambda: not is_there(frozen), seconds=10)


def is_there(process: int) -> bool:
    """Whether a process has not ended."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"

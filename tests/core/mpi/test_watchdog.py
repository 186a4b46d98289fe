"""What ends a rank that hangs, whatever became of those around it."""

from __future__ import annotations

import signal
import subprocess
import sys

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

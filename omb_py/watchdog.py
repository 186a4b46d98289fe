"""Ends a rank that makes no progress: ``--timeout``.

A child process watches, since no thread of a rank that waits inside MPI_Init could run: mpi4py
holds the interpreter lock there. The child is forked before MPI starts and never touches it.
"""

from __future__ import annotations

import os
import select
import signal

from omb_py.launcher import stagger


class Watchdog:
    """Kills this process when more than ``timeout`` seconds pass between two progress reports."""

    def __init__(self, timeout: float, rank: int) -> None:
        reader, self._writer = os.pipe()
        parent = os.getpid()
        if os.fork() == 0:
            os.close(self._writer)
            try:
                _watch(reader, parent, timeout, rank)
            finally:
                os._exit(0)
        os.close(reader)

    def progress(self, stage: str) -> None:
        """Start counting anew; ``stage`` is what the rank does next, for the message."""
        os.write(self._writer, stage.encode() + b"\n")


def _watch(reader: int, parent: int, timeout: float, rank: int) -> None:
    stage = "starting"
    while select.select([reader], [], [], timeout)[0]:
        report = os.read(reader, 65536)
        if not report:
            return
        stage = report.decode().splitlines()[-1]
    stagger(rank)
    if os.getppid() == parent:
        text = (
            f"omb-py: rank {rank}: no progress for {timeout:g} s while {stage}; a rank did not "
            "arrive or hangs: look at the other ranks, or raise --timeout\n"
        )
        os.write(2, text.encode())
        os.kill(parent, signal.SIGKILL)

"""Ends a rank that makes no progress, or too little of it: ``--timeout``.

A child process watches, since no thread of a rank that waits inside MPI_Init could run: mpi4py
holds the interpreter lock there. The child is forked before MPI starts and never touches it.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time

from omb_py.core.mpi.launcher import launcher_process, outlives_ranks, say, stagger

ALIVE = "+"
"""What begins a line that tells of iterations."""

EXIT_SECONDS = 0.5
"""How long after the message a rank ends by itself, where its job would outlive it."""

RECENT = 0.5
"""Part of the limit within which a rank that works told of an iteration."""


LAUNCHER_SECONDS = (10.0, 5.0)
"""What a launcher has to end by itself when a rank is killed, and then when it is told to end.

It waits for ever for hosts that the network no longer reaches.
"""


class Watchdog:
    """Kills this process when more than ``timeout`` seconds pass between two stages.

    A launcher on this host that does not end then is ended, too.
    """

    def __init__(self, timeout: float, rank: int) -> None:
        self._exit_after = timeout + EXIT_SECONDS
        self._nowhere = os.open(os.devnull, os.O_WRONLY) if outlives_ranks() else None
        self._rank = rank
        self._is_there = True
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
        self._tell(f"{stage}\n")
        if self._nowhere is not None:
            # Where a job outlives its ranks, its exit code is 0 although all were killed. Only C
            # code can end a process that is inside MPI: that of faulthandler does, with code 1.
            import faulthandler

            faulthandler.dump_traceback_later(self._exit_after, exit=True, file=self._nowhere)

    def alive(self, done: int, total: int) -> None:
        """Tell that so many iterations of the stage are done, without counting anew."""
        self._tell(f"{ALIVE}{done} of {total}\n")

    def _tell(self, line: str) -> None:
        if not self._is_there:
            return
        try:
            os.write(self._writer, line.encode())
        except BrokenPipeError:
            self._is_there = False
            say(f"note: rank {self._rank}: what watches --timeout was killed: nothing ends a hang")


def _watch(reader: int, parent: int, timeout: float, rank: int) -> None:
    stage, iterations, rest = "starting", "", b""
    begin = heard = time.monotonic()
    while begin + timeout > heard:
        if not select.select([reader], [], [], max(0.0, begin + timeout - time.monotonic()))[0]:
            break
        report = os.read(reader, 65536)
        if not report:
            return
        *lines, rest = (rest + report).split(b"\n")
        heard = time.monotonic()
        for line in lines:
            text = line.decode()
            if text.startswith(ALIVE):
                iterations = text.removeprefix(ALIVE)
            else:
                stage, iterations, begin = text, "", heard
    works = iterations and begin + timeout - heard <= RECENT * timeout
    outlived = outlives_ranks()
    if not outlived:
        stagger(rank)
    if os.getppid() == parent:
        text = reason(stage, iterations if works else None, timeout)
        if rank == 0 or not outlived:  # else no rank would end before it says the same
            with contextlib.suppress(OSError):  # what passes it on may have been killed
                os.write(2, f"omb-py: rank {rank}: {text}\n".encode())
        launcher = None if outlived else launcher_process()
        if outlived:
            time.sleep(2 * EXIT_SECONDS)
    if os.getppid() == parent:
        os.setsid()  # the launcher may end the rank's process group
        os.kill(parent, signal.SIGKILL)
        if launcher is not None:
            _end_launcher(launcher)


def _end_launcher(process: int) -> None:
    """End a launcher that does not end by itself, and what it has started on this host."""
    os.closerange(0, os.sysconf("SC_OPEN_MAX"))  # it waits for the ends of its pipes
    try:
        descriptor = os.pidfd_open(process)
    except (AttributeError, OSError):
        return  # it has ended, or nobody can say for sure which process it is
    started: list[int] = []
    for seconds, number in zip(LAUNCHER_SECONDS, (signal.SIGTERM, signal.SIGKILL), strict=True):
        if select.select([descriptor], [], [], seconds)[0]:
            break
        started = started or children(process)  # a remote shell waits for its host, too
        signal.pidfd_send_signal(descriptor, number)
    for child in started:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


def children(process: int) -> list[int]:
    """The processes that a process has started; none where the system does not tell."""
    try:
        with open(f"/proc/{process}/task/{process}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def reason(stage: str, iterations: str | None, timeout: float) -> str:
    """Why the rank is ended: it is too slow, by its ``iterations``, or made no progress."""
    if iterations is None:
        return (
            f"no progress for {timeout:g} s while {stage}; a rank did not arrive, hangs or is "
            "slow: look at the other ranks, or raise --timeout"
        )
    return (
        f"the time limit of {timeout:g} s passed while {stage}, {iterations} iterations done "
        "(warm-up included): raise --timeout, or lower -i"
    )

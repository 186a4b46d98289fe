"""Ends a rank that makes no progress: ``--timeout``.

A child process watches, since no thread of a rank that waits inside MPI_Init could run: mpi4py
holds the interpreter lock there. The child is forked before MPI starts and never touches it.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Sequence

from omb_py.core.mpi.launcher import launcher_process, outlives_ranks, say, stagger

ALIVE = "+"
"""First character of a line that reports iterations."""

EXIT_SECONDS = 0.5
"""Seconds after the message when a rank ends by itself, if its job would outlive it."""

STARTING, ENDING = "starting MPI", "ending MPI"

LAST_WORDS_SECONDS = 15.0
"""Seconds of the command that runs before rank 0 is killed."""

LAUNCHER_SECONDS = 10.0, 5.0
"""Seconds of a launcher to end by itself after a rank was killed, then after it was signalled.

It waits for ever for hosts that the network no longer reaches.
"""


class Watchdog:
    """Kills this process when more than ``timeout`` seconds pass between two reports of progress.

    A launcher on this host that does not end then is ended, too.
    """

    def __init__(
        self,
        timeout: float,
        rank: int,
        last_words: Sequence[str] = (),
        starting: float | None = None,
    ) -> None:
        """``last_words`` are a command that runs before rank 0 is killed, ``starting`` the seconds
        in which MPI has to start, if these are others."""
        starting = timeout if starting is None else starting
        self._seconds, self._starting = timeout, starting
        self._nowhere = os.open(os.devnull, os.O_WRONLY) if outlives_ranks() else None
        self._rank = rank
        self._is_there = True
        reader, self._writer = os.pipe()
        parent = os.getpid()
        self._process = os.fork()
        if self._process == 0:
            os.close(self._writer)
            try:
                _watch(reader, parent, timeout, starting, rank, last_words)
            finally:
                os._exit(0)
        os.close(reader)

    def progress(self, stage: str) -> None:
        """Report that a stage begins: what the rank does next, for the message."""
        self._tell(f"{stage}\n")

    def _tell(self, line: str) -> None:
        """Start counting anew."""
        if self._nowhere is not None:
            # Where a job outlives its ranks, its exit code is 0 although all were killed. Only C
            # code can end a process that is inside MPI: that of faulthandler does, with code 1.
            import faulthandler

            seconds = self._starting if STARTING in line else self._seconds
            after = seconds + EXIT_SECONDS
            faulthandler.dump_traceback_later(after, exit=True, file=self._nowhere)
        if not self._is_there:
            return
        try:
            os.write(self._writer, line.encode())
        except BrokenPipeError:
            self._is_there = False
            say(f"note: rank {self._rank}: what watches --timeout was killed: nothing ends a hang")

    def close(self) -> None:
        """Stop to watch: the process goes on with other work."""
        os.close(self._writer)
        with contextlib.suppress(ChildProcessError):  # a program's handler may have waited for it
            os.waitpid(self._process, 0)
        if self._nowhere is not None:
            import faulthandler

            faulthandler.cancel_dump_traceback_later()

    def end(self) -> None:
        """Report that the rank leaves MPI: it only has to end, and its launcher, too."""
        self.progress(ENDING)

    def alive(self, done: int, total: int) -> None:
        """Report the iterations done in the stage, of ``total`` if that is known."""
        self._tell(f"{ALIVE}, {done} of {total} iterations done\n" if total else f"{ALIVE}\n")


def _watch(
    reader: int,
    parent: int,
    timeout: float,
    starting: float,
    rank: int,
    last_words: Sequence[str],
) -> None:
    """Wait for the parent to end, in the process that watches it; kill it if it falls silent."""
    # known before it is needed: a rank may be gone before its end is read
    above = launcher_process(direct=True) if rank == 0 and not outlives_ranks() else None
    stage, iterations, silent = _last_report(reader, timeout, starting)
    if silent:
        what = f"no progress for {silent:g} s while {stage}{iterations}"
        _end_rank(parent, rank, what, last_words if rank == 0 and stage != STARTING else ())
    elif stage == ENDING and above is not None:
        _wait_for_launcher(above, timeout)


def _last_report(reader: int, timeout: float, starting: float) -> tuple[str, str, float]:
    """Return a rank's last stage and the iterations in it, once no further report comes.

    With them the seconds for which it has been silent: ``timeout``, or ``starting`` before MPI has
    started; 0 if it has closed its end.
    """
    stage, iterations, rest = "starting", "", b""
    while select.select([reader], [], [], starting if stage == STARTING else timeout)[0]:
        report = os.read(reader, 65536)
        if not report:
            return stage, iterations, 0.0
        *lines, rest = (rest + report).split(b"\n")
        for line in lines:
            text = line.decode()
            if text.startswith(ALIVE):
                iterations = text.removeprefix(ALIVE)
            else:
                stage, iterations = text, ""
    return stage, iterations, starting if stage == STARTING else timeout


def _end_rank(process: int, rank: int, what: str, last_words: Sequence[str] = ()) -> None:
    """Say ``what`` happened, kill the rank, and end its launcher if it has one that would stay."""
    outlived = outlives_ranks()
    if not outlived:
        stagger(rank)
    if os.getppid() != process:
        return
    if rank == 0 or not outlived:  # else no rank would end before it says the same
        remedy = "look at the other ranks, or raise --timeout"
        text = f"omb-py: rank {rank}: {what}; a rank did not arrive, hangs or is slow: {remedy}\n"
        with contextlib.suppress(OSError):  # what passes it on may have been killed
            os.write(2, text.encode())
    if last_words and os.getppid() == process:
        os.kill(process, signal.SIGSTOP)  # else it may go on, and say something else
        _run(last_words)
    launcher = None if outlived else launcher_process()
    if outlived:
        time.sleep(2 * EXIT_SECONDS)
    if os.getppid() == process:
        os.setsid()  # the launcher may end the rank's process group
        os.kill(process, signal.SIGKILL)
        if launcher is not None:
            _end_launcher(launcher)


def _run(command: Sequence[str]) -> None:
    """Run a command, outside of the job, for `LAST_WORDS_SECONDS` at most."""
    marks = ("PMI", "OMPI_COMM", "PRTE", "SLURM_PROCID", "RANK", "WORLD_SIZE", "LOCAL_RANK")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(marks)}
    with contextlib.suppress(OSError):
        descriptor = _open(os.posix_spawn(command[0], [*command], environment))
        if descriptor is not None:
            select.select([descriptor], [], [], LAST_WORDS_SECONDS)
            os.close(descriptor)


def _wait_for_launcher(process: int, timeout: float) -> None:
    """End a launcher that does not end although its ranks have, with a sentence on its stderr."""
    os.setsid()
    os.closerange(0, os.sysconf("SC_OPEN_MAX"))
    descriptor = _open(process)
    # what watches another rank, which may be frozen, comes first
    patience = timeout + LAUNCHER_SECONDS[1]
    if descriptor is None or select.select([descriptor], [], [], patience)[0]:
        return
    text = (
        f"the launcher has not ended within {patience:g} s of its ranks, as when the network no "
        "longer reaches a host: results are complete"
    )
    with contextlib.suppress(OSError), open(f"/proc/{process}/fd/2", "w") as stderr:
        stderr.write(f"omb-py: {text}\n")
    _end_launcher(process, patience=0.0)


def _open(process: int) -> int | None:
    """Return a descriptor of a process; None if it has ended or the system has none."""
    try:
        return os.pidfd_open(process)
    except (AttributeError, OSError):
        return None


def _end_launcher(process: int, patience: float = LAUNCHER_SECONDS[0]) -> None:
    """End a launcher that does not end by itself, and what it has started on this host."""
    os.closerange(0, os.sysconf("SC_OPEN_MAX"))  # it waits for the ends of its pipes
    descriptor = _open(process)
    if descriptor is None:
        return
    started: list[int] = []
    waits = patience, LAUNCHER_SECONDS[1]
    for seconds, number in zip(waits, (signal.SIGTERM, signal.SIGKILL), strict=True):
        if select.select([descriptor], [], [], seconds)[0]:
            break
        # a remote shell waits for its host, and a frozen rank for nothing
        started = started or descendants(process)
        signal.pidfd_send_signal(descriptor, number)
    for child in started:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


def descendants(process: int) -> list[int]:
    """Return the processes that a process started, and those that they started, if known."""
    try:
        with open(f"/proc/{process}/task/{process}/children", encoding="ascii") as file:
            found = [int(word) for word in file.read().split()]
    except OSError:
        return []
    return [*found, *(below for child in found for below in descendants(child))]

"""Reasons to stop a sweep, and the exit code that follows from them."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from omb_py.core.errors import INTERRUPTED

UNFINISHED = 75
"""Exit code of a sweep that has more to do, later or on more nodes: sysexits' "try again"."""

STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""Signals that stop a sweep in order; schedulers warn by one of them before the end of a job."""


@dataclass
class Stop:
    """A reason to stop: a signal, or the end of the available time."""

    deadline: float | None = None
    signal: int | None = None

    def __bool__(self) -> bool:
        over = self.deadline is not None and time.monotonic() >= self.deadline
        return over or self.signal is not None

    @contextmanager
    def watching(self) -> Iterator[Stop]:
        """Catch signals as long as the block lasts, and ignore them from then on.

        A signal while the process exits may not change its exit code, by which a job decides
        whether another one goes on. Under `nohup` a hangup stays ignored.
        """

        def caught(number: int, frame: FrameType | None) -> None:
            self.signal = number

        deaf = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        heard = [number for number in STOPPING if not (deaf and number == signal.SIGHUP)]
        for number in heard:
            signal.signal(number, caught)
        try:
            yield self
        finally:
            for number in heard:
                signal.signal(number, signal.SIG_IGN)


def exit_code(
    stop: Stop, complete: bool, added: bool, too_few_nodes: bool = False, elsewhere: bool = False
) -> int:
    """Return the exit code of a sweep.

    0 when everything is there, `UNFINISHED` if it was stopped or all missing points need more
    nodes, and it is worth going on with, or if other processes measure the missing points, 130
    after Ctrl-C, 1 if points failed or the whole time gave no row.
    """
    if complete:
        return 0
    if elsewhere and not stop:
        return UNFINISHED
    if stop.signal == signal.SIGINT:
        return INTERRUPTED
    return UNFINISHED if (stop or too_few_nodes) and added else 1

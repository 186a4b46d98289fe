"""What the system says of the processes of ranks on this host."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

from omb_py.tracing.monitor.looks import Moment, Process
from omb_py.tracing.records import Record

STOPPED = ("T", "t")
GONE = ("Z", "X", "x")
"""States in /proc of a process that a signal or a debugger stopped, and of one that has ended."""


def moment() -> Moment:
    """Here and now."""
    return Moment(os.uname().nodename, time.monotonic_ns())


def processes_of(records: Iterable[Record], host: str) -> dict[int, Process]:
    """The processes of ranks, by rank; those of other hosts are left out."""
    return {
        record.rank: process(int(record.header["pid"]))
        for record in records
        if record.host == host and not record.complete
    }


def process(pid: int) -> Process:
    """How a process is, by its number."""
    try:
        told = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except FileNotFoundError:
        return Process.GONE if Path("/proc/self").exists() else Process.UNKNOWN
    except OSError:
        return Process.UNKNOWN
    state = told.rpartition(")")[2].split()[:1]
    if state and state[0] in GONE:
        return Process.GONE
    return Process.STOPPED if state and state[0] in STOPPED else Process.THERE

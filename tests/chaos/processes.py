"""The processes of a run, found by a variable in their environment, and what each of them is."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MARK = "CHAOS_RUN"
"""The environment variable that all processes of a run have."""

LAUNCHERS = ("mpiexec", "mpirun", "prterun", "mpiexec.hydra", "hydra_pmi_proxy", "prted")
"""Names of launchers, and of what they start on each host."""

OF_RANKS = (b"PMI_RANK=", b"OMPI_COMM_WORLD_RANK=")


@dataclass(frozen=True)
class Process:
    """A process that runs; ``ranked`` is whether it is a rank or was started by one.

    ``host`` is the name of its namespace of processes: that of a virtual host, say.
    """

    pid: int
    parent: int
    name: str
    ranked: bool
    host: str


def of_run(mark: str) -> list[Process]:
    """The processes of a run, by number; not those that have ended and wait for their parent."""
    return sorted(find(mark), key=lambda process: process.pid)


def find(mark: str) -> Iterator[Process]:
    """The processes of a run."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            variables = (folder / "environ").read_bytes().split(b"\0")
            if f"{MARK}={mark}".encode() not in variables:
                continue
            host = os.readlink(folder / "ns" / "pid")
            name, _, after = (folder / "stat").read_text().partition("(")[2].rpartition(")")
        except OSError:
            continue  # it has ended
        state, parent, *_ = after.split()
        if state not in "ZX":
            ranked = any(one.startswith(OF_RANKS) for one in variables)
            yield Process(int(folder.name), int(parent), name, ranked, host)


def ranks(found: list[Process]) -> list[Process]:
    """The ranks: those that a launcher started, and not what a rank left that has ended."""
    parents = {process.pid for process in launchers(found)}
    return [one for one in found if one.ranked and one.parent in parents]


def launchers(found: list[Process]) -> list[Process]:
    """The launcher, and what it started on this host."""
    return [one for one in found if one.name in LAUNCHERS]


def left(mark: str, seconds: float, unreachable: str = "") -> list[Process]:
    """The processes of a run that are there after so many seconds, but for a host's."""
    deadline = time.monotonic() + seconds
    while True:
        found = [one for one in of_run(mark) if one.host != unreachable]
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.1)


def end(found: list[Process]) -> None:
    """End processes as nobody can prevent."""
    for process in found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)

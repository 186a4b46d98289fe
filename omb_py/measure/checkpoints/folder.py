"""The folder that checkpoints are written into: all ranks see it, and nothing of it stays."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

from omb_py.core.errors import UsageError
from omb_py.core.job import Job

ATTEMPTS = 50
PAUSE = 0.1
"""How often the remover tries, and the seconds between: other ranks may still be writing."""


class Remover:
    """A process that removes a folder when this one has ended, even by SIGKILL.

    It is forked before MPI is started, and never touches it.
    """

    def __init__(self) -> None:
        reader, self._writer = os.pipe()
        if os.fork() == 0:
            try:
                _remove_at_end(reader)
            finally:
                os._exit(0)
        os.close(reader)

    def watch(self, folder: str) -> None:
        """Name the folder."""
        with contextlib.suppress(BrokenPipeError):  # killed: the job removes it if it is not
            os.write(self._writer, os.fsencode(folder))


def _remove_at_end(reader: int) -> None:
    os.setsid()  # what ends the ranks may end their process group
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.dup2(reader, 0)
    os.closerange(1, os.sysconf("SC_OPEN_MAX"))  # the launcher waits for the ends of its pipes
    folder = b""
    while part := os.read(0, 4096):
        folder += part
    for _ in range(ATTEMPTS if folder else 0):
        remove(os.fsdecode(folder))
        if not os.path.exists(folder):
            return
        time.sleep(PAUSE)


def remove(folder: str) -> None:
    """Remove a folder with all files in it; what cannot be removed stays."""
    from shutil import rmtree

    rmtree(folder, ignore_errors=True)


@contextmanager
def shared_folder(job: Job, parent: str, remover: Remover | None) -> Iterator[str]:
    """A new folder in ``parent``, made by rank 0, that is removed in the end; collective.

    Raises `SharedError` where rank 0 cannot make it, or another rank does not see it.
    """
    made = ""
    with job.agreement():
        if job.rank == 0:
            made = _make(parent)
    try:
        if remover is not None and made:
            remover.watch(made)
        folder = os.fsdecode(job.control.bcast(os.fsencode(made)))
        with job.agreement():
            if not os.path.isdir(folder):
                raise UsageError(
                    f"--folder {parent}: rank {job.rank} on {os.uname().nodename} does not see the "
                    "folder that rank 0 made there: name a folder that all nodes share"
                )
        yield folder
    finally:
        if made:
            remove(made)


def _make(parent: str) -> str:
    from tempfile import mkdtemp

    try:
        return mkdtemp(prefix=".omb-py-checkpoint-", dir=os.path.abspath(parent))
    except OSError as error:
        raise UsageError(
            f"--folder {parent}: cannot make a folder there ({error.strerror}): name a folder that "
            "you can write to"
        ) from error

"""Files that are whole at any time, whoever is killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from omb_py.core.text import files

AGAIN = "; once that is mended, run the same command again: it goes on where this one stopped"


def moment(seconds: float | None = None) -> str:
    """Return seconds since the epoch, by default now, as state, record and log have them."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def write_atomically(path: Path, text: str) -> None:
    """Put ``text`` into ``path``: after a crash the file holds the old content or the new one.

    Raises `OmbError` when it cannot be written.
    """
    files.write(path, text, AGAIN)


def writing(path: Path) -> AbstractContextManager[None]:
    """Return a context around writing a file of a sweep: an `OmbError` if that fails."""
    return files.failing("write", path, advice=AGAIN)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Hold the lock that ``path`` stands for; False when another process on it has it.

    The system frees it when the process ends, however that happens. If a file system has no locks
    the lock counts as held, since two sweeps in one folder are rarer than file systems without
    locks.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        except OSError:
            pass
        yield True
    finally:
        os.close(descriptor)


def is_locked(path: Path) -> bool:
    """Return whether a process holds the lock that ``path`` stands for; false if nobody can say."""
    try:
        with path.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False

"""Files that are whole at any time, whoever is killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from omb_py.errors import OmbError


def write_atomically(path: Path, text: str) -> None:
    """Put ``text`` into ``path``: after a crash the file holds the old content or the new one.

    Raises `OmbError` when it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}-")
        try:
            with open(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, 0o666 & ~umask())
            os.replace(name, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
        synchronize(path.parent)
    except OSError as error:
        raise cannot_write(path, error) from error


def cannot_write(path: Path, error: OSError) -> OmbError:
    """What to tell when a file of a sweep cannot be written."""
    return OmbError(
        f"cannot write {path}: {error.strerror}; once that is mended, run the same command again: "
        "it goes on where this one stopped"
    )


def umask() -> int:
    """This process's mask for new files, which can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def synchronize(folder: Path) -> None:
    """Bring a folder's names to the disk, where its file system can."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Hold the lock that ``path`` stands for; False when another process on it has it.

    The system frees it when the process ends, however that happens. Where a file system has no
    locks it is taken for held, since two sweeps in one folder are rarer than such file systems.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise cannot_write(path, error) from error
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

"""Files that are whole at any time: written beside their names, then renamed."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from omb_py.errors import OmbError


def write(path: str | Path, content: str | bytes, advice: str = "") -> None:
    """Put text (as UTF-8) or bytes into a file, whole or not at all; folders are made.

    After a full disk or a kill the file holds the old content or the new one. Raises `OmbError`,
    with the path, the reason and ``advice``, when it cannot be written.
    """
    path = Path(path)
    data = content.encode(errors="replace") if isinstance(content, str) else content
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            file.write(data)
    except OSError as error:
        raise OmbError(f"cannot write {path}: {error.strerror or error}{advice}") from error


@contextlib.contextmanager
def replacing(path: Path, mode: int | None = None) -> Iterator[IO[bytes]]:
    """A new file that takes the place of ``path`` once it is written without an error.

    Its permissions are ``mode``, or those of the file before, or the usual ones. What is no regular
    file, such as ``/dev/stdout``, cannot be replaced and is written to as it is. Raises `OSError`.
    """
    if is_special(path):
        with open(path, "wb") as file:
            yield file
        return
    target = Path(os.path.realpath(path))  # a link stays one
    beside = target.with_name(f".{target.name[:40]}-{os.getpid()}-{os.urandom(3).hex()}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        try:
            with open(descriptor, "wb", closefd=False) as file:
                yield file
            if mode is None and target.exists():
                mode = stat.S_IMODE(target.stat().st_mode)
            if mode is not None:
                os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(beside, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise
    synchronize(target.parent)


def is_special(path: Path) -> bool:
    """Whether a path is of a device, a pipe, or another process's open file."""
    folder = os.path.realpath(path.parent)
    if folder == "/dev" or folder.startswith("/proc/"):
        return True
    try:
        return not stat.S_ISREG(path.stat().st_mode) and not path.is_dir()
    except OSError:
        return False


def synchronize(folder: Path) -> None:
    """Bring a folder's names to the disk, where its file system can."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)

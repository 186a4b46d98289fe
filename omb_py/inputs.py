"""Reading files that a user names: regular ones or standard input, and none without an end."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from omb_py.errors import OmbError

LARGEST = 1 << 30
"""Bytes beyond which a file is refused: no results, profile or configuration is as long as that."""

INHERITED = re.compile(r"/dev/stdin|(/dev|/proc/self)/fd/\d+")
"""Names of what is open already, such as standard input and ``<(COMMAND)`` of a shell."""


def read(path: str | Path, error: type[OmbError] = OmbError) -> bytes:
    """A file's content, of `LARGEST` bytes at most.

    Raises ``error`` when it cannot be read or is too large, and as `check` does.
    """
    check(path, error)
    try:
        with open(path, "rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as fault:
        raise error(f"cannot read {path}: {fault.strerror or fault}") from fault
    if len(content) > LARGEST:
        raise error(f"{path} is larger than {LARGEST >> 20} MiB, the most that is read")
    return content


def check(path: str | Path, error: type[OmbError] = OmbError, largest: float = LARGEST) -> None:
    """Raise ``error`` where a path is of no file that can be read to its end.

    A named pipe that nobody writes to would be waited for; a device such as ``/dev/zero`` has no
    end. Pipes that this process inherited can be read.
    """
    try:
        status = os.stat(path)
    except OSError as fault:
        raise error(f"cannot read {path}: {fault.strerror or fault}") from fault
    if stat.S_ISREG(status.st_mode):
        if status.st_size > largest:
            raise error(f"{path} is larger than {LARGEST >> 20} MiB, the most that is read")
        return
    if stat.S_ISDIR(status.st_mode):
        raise error(f"cannot read {path}: it is a folder, name a file in it")
    if stat.S_ISFIFO(status.st_mode) or stat.S_ISSOCK(status.st_mode):
        if INHERITED.fullmatch(str(path)):
            return
        raise error(f"cannot read {path}: it is a pipe; read from it with < {path} and /dev/stdin")
    raise error(f"cannot read {path}: it is a device; name a regular file or /dev/stdin")

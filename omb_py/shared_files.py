"""Shared memory that has a name, told by the ranks that use it to whoever removes it after them.

MPI libraries keep files in /dev/shm as long as a job runs. When it is killed, nobody removes them.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

SHARED_MEMORY = "/dev/shm/"
GONE = " (deleted)"


def record(folder: str) -> None:
    """Write the files of shared memory that this process has mapped; silent where that fails."""
    with contextlib.suppress(OSError):
        maps = Path("/proc/self/maps").read_text(errors="replace")
        lines = [line for path in mapped(maps) if (line := identity(path)) is not None]
        Path(folder, f"{os.getpid()}.mapped").write_text("".join(f"{line}\n" for line in lines))


def mapped(maps: str) -> Iterator[str]:
    """The files of shared memory in a text of /proc/PID/maps that still have a name, each once."""
    fields = (line.split(maxsplit=5) for line in maps.splitlines())
    paths = dict.fromkeys(found[5] for found in fields if len(found) == 6)
    yield from (p for p in paths if p.startswith(SHARED_MEMORY) and not p.endswith(GONE))


def identity(path: str) -> str | None:
    """A file or folder with what tells it from others of its name; None where it is gone."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return json.dumps([path, os.uname().nodename, found.st_dev, found.st_ino, found.st_uid])

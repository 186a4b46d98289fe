"""Shared memory that this process has mapped: what killed jobs may leave behind."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

MAPS = Path("/proc/self/maps")
FOLDER = "/dev/shm/"


def files_in(maps: str) -> list[str]:
    """Return the files of shared memory among mappings that still have their names."""
    lines = [line.split(maxsplit=5) for line in maps.splitlines()]
    names = {fields[5] for fields in lines if len(fields) == 6}
    return sorted(one for one in names if one.startswith(FOLDER) and not one.endswith("(deleted)"))


def record(folder: str) -> None:
    """Write which shared memory this process has mapped; silent if that fails.

    MPI libraries keep files in /dev/shm as long as a job runs: whoever ends it can then remove
    what it leaves.
    """
    with contextlib.suppress(OSError):
        maps = MAPS.read_text(errors="replace")
        lines = [line for path in files_in(maps) if (line := identity(path)) is not None]
        Path(folder, f"{os.getpid()}.mapped").write_text("".join(f"{line}\n" for line in lines))


def identity(path: str) -> str | None:
    """Return a file's or folder's identity, which a later one of its name lacks; None if gone."""
    import json

    try:
        found = os.lstat(path)
    except OSError:
        return None
    return json.dumps([path, os.uname().nodename, found.st_dev, found.st_ino, found.st_uid])

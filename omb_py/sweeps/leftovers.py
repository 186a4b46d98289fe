"""What a job that was killed leaves on this host: shared memory with a name, and Open MPI's folder.

The ranks tell what they have mapped (`omb_py.opened_files`), the sweep which folder it made. Only
what they told is removed, and only if it is still the same file and was not there before the job.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator
from json import loads
from pathlib import Path

from omb_py.launcher import SHARED_FILES
from omb_py.opened_files import SHARED_MEMORY, identity

THERE_BEFORE, OWN_FOLDER = "before", "folder"

PREFIX = "omb-py-"
"""What the names of the folders begin with that a sweep makes for a job."""


def watch(records: Path) -> dict[str, str]:
    """Make a new folder for what a job will tell; the environment by which its ranks do so.

    Raises `OSError` when it cannot be written.
    """
    records.mkdir(parents=True)
    before = (identity(SHARED_MEMORY + name) for name in names(SHARED_MEMORY))
    (records / THERE_BEFORE).write_text("".join(f"{line}\n" for line in before if line))
    return {SHARED_FILES: str(records.resolve())}


def note_folder(records: Path, folder: str) -> None:
    """Keep in mind that a folder was made for the job; raises `OSError`."""
    (records / OWN_FOLDER).write_text(f"{identity(folder)}\n")


def remove(records: Path) -> None:
    """Remove what a job left, by its records; none of its processes may be there any more."""
    before = set(lines(records / THERE_BEFORE))
    for path in sorted(records.glob("*.mapped")):
        for line in lines(path):
            name = told(line)
            if name is not None and name.startswith(SHARED_MEMORY) and line not in before:
                with contextlib.suppress(OSError):
                    if stat.S_ISREG(os.lstat(name).st_mode):
                        os.unlink(name)
    for line in lines(records / OWN_FOLDER):
        folder = told(line)
        if folder is not None and Path(folder).name.startswith(PREFIX):
            shutil.rmtree(folder, ignore_errors=True)


def told(line: str) -> str | None:
    """The path in a line of a record, if what it tells of is ours and still there."""
    try:
        path, *_, owner = loads(line)
    except (ValueError, TypeError):
        return None  # a rank was killed while it wrote
    same = identity(str(path)) == line and os.path.normpath(path) == path
    return path if same and owner == os.getuid() else None


def lines(path: Path) -> Iterator[str]:
    """The lines of a record; none where there is none."""
    try:
        yield from path.read_text(errors="replace").splitlines()
    except OSError:
        return


def names(folder: str) -> list[str]:
    """What is in a folder; nothing where there is none."""
    try:
        return os.listdir(folder)
    except OSError:
        return []

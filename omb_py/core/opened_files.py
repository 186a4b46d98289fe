"""Which files this process holds: modules' own, and what is mapped into memory.

A file counts once. What was read and closed again is not seen (settings, folders, names that
were looked up in vain), nor are files of the kernel.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

MAPS = Path("/proc/self/maps")
EXTENSION = ".so"
SHARED_MEMORY = "/dev/shm/"


def can_be_told() -> bool:
    """Whether the system tells which files are mapped."""
    return MAPS.exists()


def opened() -> set[str]:
    """Files that this process holds by now."""
    modules = module_files(tuple(sys.modules.values()))
    extensions = {name for name in modules if name.endswith(EXTENSION)}
    return (modules - extensions) | mapped(MAPS.read_text(errors="replace"))


def since(name: str) -> set[str]:
    """Files of module ``name`` and of all those that were imported after it."""
    names = list(sys.modules)
    later = names[names.index(name) :]
    return {
        os.path.realpath(file) if file.endswith(EXTENSION) else file
        for file in module_files(sys.modules[name] for name in later)
    }


def module_files(modules: Iterable[ModuleType]) -> set[str]:
    """The file that each module was loaded from, where it was: an archive for all that it holds."""
    found = set()
    for module in modules:
        spec = getattr(module, "__spec__", None)
        if spec is None:
            file = getattr(module, "__file__", None)  # the script itself
        else:
            file = getattr(spec.loader, "archive", spec.origin) if spec.has_location else None
        if file is not None:
            found.add(file)
    return found


def mapped(maps: str) -> set[str]:
    """The files among mappings as the kernel lists them; shared memory and devices are none."""
    return {name for name in named(maps) if name.startswith("/") and not name.startswith("/dev/")}


def shared_memory(maps: str) -> list[str]:
    """The files of shared memory among mappings."""
    return sorted(name for name in named(maps) if name.startswith(SHARED_MEMORY))


def named(maps: str) -> set[str]:
    """What mappings are of that still has its name."""
    lines = [line.split(maxsplit=5) for line in maps.splitlines()]
    names = {fields[5] for fields in lines if len(fields) == 6}
    return {name for name in names if not name.endswith("(deleted)")}


def record_shared_memory(folder: str) -> None:
    """Write which shared memory this process has mapped; silent where that fails.

    MPI libraries keep files in /dev/shm as long as a job runs: whoever ends it can then remove
    what it leaves.
    """
    with contextlib.suppress(OSError):
        maps = MAPS.read_text(errors="replace")
        lines = [line for path in shared_memory(maps) if (line := identity(path)) is not None]
        Path(folder, f"{os.getpid()}.mapped").write_text("".join(f"{line}\n" for line in lines))


def identity(path: str) -> str | None:
    """A file or folder with what tells it from others of its name; None where it is gone."""
    import json

    try:
        found = os.lstat(path)
    except OSError:
        return None
    return json.dumps([path, os.uname().nodename, found.st_dev, found.st_ino, found.st_uid])

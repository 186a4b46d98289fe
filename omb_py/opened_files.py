"""Which files this process holds: modules' own, and what is mapped into memory.

A file counts once. What was read and closed again is not seen (settings, folders, names that
were looked up in vain), nor are files of the kernel.
"""

from __future__ import annotations

import os.path
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

MAPS = Path("/proc/self/maps")
EXTENSION = ".so"


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
    lines = [line.split(maxsplit=5) for line in maps.splitlines()]
    names = {fields[5] for fields in lines if len(fields) == 6}
    return {
        name
        for name in names
        if name.startswith("/") and not name.startswith("/dev/") and not name.endswith("(deleted)")
    }

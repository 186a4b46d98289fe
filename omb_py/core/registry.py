"""Members of axes: ours, and those of others by entry points."""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib import import_module
from typing import Any

from omb_py.core.dataclass import dataclass
from omb_py.core.errors import MissingPackageError, UsageError, installing

SOURCE = ".py"

REQUIRED = ("mpi4py", "numpy", "click")
"""Packages that the suite itself needs, which are in no member's extra."""


@dataclass(frozen=True)
class Registry:
    """One axis: its members by name, each loaded only when it is asked for.

    A built-in member is a module of ``package`` that defines ``attribute``; the module's name is
    the member's name. Any other distribution adds a member by an entry point in ``group`` whose
    object is what ``attribute`` would be. What a built-in member needs beyond the suite's own
    dependencies is an extra of its name.
    """

    kind: str
    package: str
    attribute: str
    group: str

    def builtin(self) -> list[str]:
        """Return the names of the members that are modules of the package, sorted."""
        (folder,) = import_module(self.package).__path__
        files = (name for name in os.listdir(folder) if name.endswith(SOURCE))
        return sorted(name.removesuffix(SOURCE) for name in files if not name.startswith("_"))

    def has(self, name: str) -> bool:
        """Return whether ``name`` is a member, of ours or by an entry point; none is loaded."""
        name = name.replace("-", "_")
        return name in self.builtin() or name in _points(self.group)

    def others(self) -> list[str]:
        """Return the names of the members that entry points add, sorted."""
        return sorted(set(_points(self.group)) - set(self.builtin()))

    def names(self) -> list[str]:
        """Return the names of all members, the built-in ones first."""
        return self.builtin() + self.others()

    def load(self, name: str) -> Any:
        """Return the member called ``name``; hyphens and underscores are one.

        Raises `UsageError` when there is none, naming those that exist, and `UnsupportedError`
        when it needs a package that is not installed.
        """
        name = name.replace("-", "_")
        try:
            return self._load(name)
        except ModuleNotFoundError as error:
            has_extra = name in self.builtin() and error.name not in REQUIRED
            install = installing(name) if has_extra else f"pip install {error.name}"
            raise MissingPackageError(f"{self.kind} {name}", error.name, install) from error

    def _load(self, name: str) -> Any:
        module = f"{self.package}.{name}"
        if name.isidentifier() and not name.startswith("_"):
            try:
                member = getattr(import_module(module), self.attribute, None)
            except ModuleNotFoundError as error:
                if error.name != module:
                    raise
            else:
                if member is not None:  # folders of the package that serve members have none
                    return member
        entry_point = _points(self.group).get(name)
        if entry_point is None:
            raise UsageError(f"unknown {self.kind} {name!r}: choose from {', '.join(self.names())}")
        return entry_point.load()


def _points(group: str) -> dict[str, Any]:
    return _scanned(group, tuple(sys.path))


@cache
def _scanned(group: str, path: tuple[str, ...]) -> dict[str, Any]:
    # Scans the metadata of every installed distribution: too slow for names of our own.
    from importlib.metadata import entry_points

    return {point.name.replace("-", "_"): point for point in entry_points(group=group)}

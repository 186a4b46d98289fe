"""Notices when a program imports ``mpi4py.MPI``, and not before.

What a program does until then (``mpi4py.rc`` and variables of the environment) must have its
effect, so that the module cannot be imported for it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

NAME = "mpi4py.MPI"


class Noticing(MetaPathFinder, Loader):
    """Finds the module as it would have been found, and calls back around its import."""

    def __init__(self, before: Callable[[], None], after: Callable[[ModuleType], None]) -> None:
        self._before = before
        self._after = after
        self._loader: Loader | None = None

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module's own specification, loaded by this object."""
        if name != NAME:
            return None
        for finder in sys.meta_path:
            if finder is not self and hasattr(finder, "find_spec"):
                spec = finder.find_spec(name, path, target)
                if spec is not None and spec.loader is not None:
                    self._loader = spec.loader
                    spec.loader = self
                    return spec
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Load the library: what must be there before is called first."""
        assert self._loader is not None
        self._before()
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module, then tell that it is there."""
        assert self._loader is not None
        self._loader.exec_module(module)
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        sys.meta_path.remove(self)
        self._after(module)

"""One file that holds omb-py's compiled modules, so that a rank opens it and not a hundred others.

Python keeps each compiled module in a file of its own, and lists folders to find it: under
``mpiexec`` every rank does so at once. The archive, in the package's ``__pycache__``, has the
contents of all these ``.pyc`` files, and they count as there: only where the source still has the
time and size written in them. `update` writes it at the end of a command that imported a module
otherwise. Where there is no archive, or it cannot be written, Python imports as always.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import sys
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import ModuleType
    from typing import Any

PACKAGE = __name__.partition(".")[0]
FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
INIT = "__init__"
SOURCE, COMPILED = ".py", ".pyc"

STAMP = slice(8, 16)
"""Where a ``.pyc`` file has the time and size of its source."""

MAGIC = b"omb-py modules 1"
HEADER = len(MAGIC) + 8
"""Bytes before the index: what the file is, and the length of the index."""


class Archive:
    """The file ``path``, held open: each module's name, whether it is a package, and its place."""

    def __init__(self, path: str) -> None:
        """Read the index; it is empty where there is no such archive."""
        self.path = path
        self.index: dict[str, tuple[bool, int, int]] = {}
        try:
            self._file = os.open(path, os.O_RDONLY)
        except OSError:
            return
        with contextlib.suppress(OSError, EOFError, ValueError, TypeError, OverflowError):
            header = os.pread(self._file, HEADER, 0)
            length = int.from_bytes(header[len(MAGIC) :], "little")
            self._modules = HEADER + length
            if header.startswith(MAGIC):
                self.index = marshal.loads(os.pread(self._file, length, HEADER))
        if not self.index:
            os.close(self._file)

    def compiled(self, name: str) -> bytes:
        """The ``.pyc`` of a module of the index; raises `OSError` where it cannot be read."""
        _, start, length = self.index[name]
        content = os.pread(self._file, length, self._modules + start)
        if len(content) < length:
            raise OSError(f"{self.path} is shorter than its index says")
        return content


class Loader(SourceFileLoader):
    """Loads a module whose ``.pyc`` has been read, as Python does otherwise."""

    def __init__(self, name: str, path: str, source: os.stat_result, compiled: bytes) -> None:
        super().__init__(name, path)
        self.archive = _archive.path
        self._source = source
        self._compiled = compiled

    def path_stats(self, path: Any) -> dict[str, float]:
        return {"mtime": self._source.st_mtime, "size": self._source.st_size}

    def get_data(self, path: Any) -> bytes:
        return self._compiled if path.endswith(COMPILED) else super().get_data(path)


class Finder(FileFinder):
    """Finds in a folder of omb-py the modules of the archive, and all others as Python does."""

    def find_spec(self, fullname: str, target: ModuleType | None = None) -> ModuleSpec | None:
        return self._archived(fullname) or super().find_spec(fullname, target)

    def _archived(self, fullname: str) -> ModuleSpec | None:
        if fullname not in _archive.index:
            return None
        package = _archive.index[fullname][0]
        path = os.path.join(self.path, fullname.rpartition(".")[2])
        file = os.path.join(path, INIT + SOURCE) if package else path + SOURCE
        try:
            source, compiled = os.stat(file), _archive.compiled(fullname)
        except OSError:
            return None
        if compiled[STAMP] != stamp(int(source.st_mtime), source.st_size):
            return None
        loader = Loader(fullname, file, source, compiled)
        spec = ModuleSpec(fullname, loader, origin=file, is_package=package)
        spec.has_location = True
        if package:
            spec.submodule_search_locations = [path]
        return spec


def stamp(time: int, size: int) -> bytes:
    """Time (whole seconds) and size of a source file, as a ``.pyc`` file has them."""
    return b"".join((number & 0xFFFFFFFF).to_bytes(4, "little") for number in (time, size))


def install() -> None:
    """Import omb-py's modules from the archive from now on."""
    if _archive.path:
        sys.path_hooks.insert(0, find_modules)
        for folder in (FOLDER, os.path.dirname(os.path.abspath(__file__))):  # imported without it
            sys.path_importer_cache.pop(folder, None)


def find_modules(folder: str) -> Finder:
    """The finder for a folder of this package; raises `ImportError` for others."""
    if folder != FOLDER and not folder.startswith(FOLDER + os.sep):
        raise ImportError
    return Finder(folder, (SourceFileLoader, SOURCE_SUFFIXES))


def update() -> None:
    """Write the archive where a module was imported without it; silent where that fails."""
    if not _archive.path or sys.dont_write_bytecode:
        return
    otherwise = {
        name
        for name, module in sys.modules.items()
        if name.startswith(f"{PACKAGE}.")
        and name not in _before
        and type(getattr(getattr(module, "__spec__", None), "loader", None)) is SourceFileLoader
    }
    _before.update(otherwise)  # once in a process is enough
    if not otherwise or not os.access(os.path.dirname(_archive.path), os.W_OK):
        return
    from pathlib import Path

    from omb_py.core.text import files

    compiled = dict(compiled_modules())
    if otherwise.isdisjoint(compiled):  # their .pyc files are of a kind that has no time
        return
    with contextlib.suppress(OSError), files.replacing(Path(_archive.path)) as file:
        file.writelines(parts(compiled))


def compiled_modules() -> Iterator[tuple[str, tuple[bool, bytes]]]:
    """Each module, whether it is a package, and its ``.pyc`` if that agrees with its source."""
    for folder, _, files in os.walk(FOLDER):
        parents = os.path.relpath(folder, os.path.dirname(FOLDER)).split(os.sep)
        for stem in sorted(name[: -len(SOURCE)] for name in files if name.endswith(SOURCE)):
            try:
                source = os.stat(os.path.join(folder, stem + SOURCE))
                with open(os.path.join(folder, "__pycache__", stem + _suffix), "rb") as file:
                    compiled = file.read()
            except OSError:
                continue
            if compiled[STAMP] == stamp(int(source.st_mtime), source.st_size):
                yield entry(parents, stem, compiled)


def entry(parents: Sequence[str], stem: str, compiled: bytes) -> tuple[str, tuple[bool, bytes]]:
    """A module by name, given the packages around its file and the file's name without suffix."""
    package = stem == INIT
    return ".".join(parents if package else [*parents, stem]), (package, compiled)


def parts(modules: dict[str, tuple[bool, bytes]]) -> list[bytes]:
    """An archive part by part: what it is, its index, and the modules."""
    index: dict[str, tuple[bool, int, int]] = {}
    end = 0
    for name, (package, compiled) in modules.items():
        index[name] = (package, end, len(compiled))
        end += len(compiled)
    listed = marshal.dumps(index)
    contents = (compiled for _, compiled in modules.values())
    return [MAGIC, len(listed).to_bytes(8, "little"), listed, *contents]


def file_name(compiled: str) -> str:
    """The archive's name, given that of a ``.pyc`` file: both end in what Python made them."""
    return f"modules.{compiled.split('.', 1)[1].removesuffix(COMPILED)}.archive"


def _archive_path(cached: str | None) -> str:
    """The archive's place; none where Python keeps no compiled modules beside their sources."""
    if cached is None or os.path.dirname(cached) != os.path.join(FOLDER, "__pycache__"):
        return ""
    return os.path.join(os.path.dirname(cached), file_name(os.path.basename(cached)))


_before = set(sys.modules)
_cached = getattr(sys.modules[PACKAGE].__spec__, "cached", None)
_suffix = os.path.basename(_cached or "").removeprefix(INIT)
_archive = Archive(_archive_path(_cached))

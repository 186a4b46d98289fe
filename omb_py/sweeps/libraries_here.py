"""The MPI libraries that are here: in environments of Python, as modules, and on the path."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from omb_py.core.errors import OmbError, needing
from omb_py.sweeps.libraries import Software, of_table, variables_after
from omb_py.sweeps.machine import Library, Machine

FILES = re.compile(r"libmpi(?:_cray|_gnu\w*)?\.so(?:\.\d+)*")
"""The files of MPI's own interface; those of the standard's ABI stand beside them."""

LONGEST_SEARCH = 6
"""Levels of folders below a named one in which files of libraries are looked for."""

MODULES = re.compile(
    r"(?:\S*/)?(?:cray-mpich\S*|mpich|openmpi|ompi|hpcx(?:-ompi)?|(?:intel-?(?:oneapi-)?)?i?mpi|"
    r"mvapich2?(?:-plus|-gdr)?|parastationmpi|psmpi|spectrum-mpi|nvhpc-hpcx\S*)(?:/\S+)?"
)
"""Names of modules of MPI libraries at sites, with folders and versions."""

MOST_MODULES = 20
"""Modules that are tried: each takes a second or two."""

HOMES = ("~/venvs", "~/.venvs", "~/.virtualenvs", "~/envs", "~/.conda/envs")
"""Folders in which people keep environments."""


@dataclass(frozen=True)
class Candidate:
    """What may be a library: its ``table`` of a machine, and ``source``, where it was found."""

    source: str
    table: Library


@dataclass(frozen=True)
class Found:
    """A library that can be loaded: its table by a ``name``, its software and the file of it."""

    name: str
    source: str
    table: Library
    software: Software
    file: str


@dataclass(frozen=True)
class LibrariesHere:
    """The libraries that are here, and why others that were looked at are not among them."""

    libraries: tuple[Found, ...]
    faults: tuple[str, ...]

    @property
    def tables(self) -> dict[str, Library]:
        """The tables of a machine by their names."""
        return {one.name: one.table for one in self.libraries}

    @property
    def lines(self) -> Iterator[str]:
        """The tables as TOML, each below what it is; faults are comments."""
        with needing("sweep"):
            import tomli_w

        for one in self.libraries:
            yield f"# {one.software.text}"
            yield f"# {one.source}: {one.file}"
            table = one.table.model_dump(mode="json", exclude_defaults=True)
            yield tomli_w.dumps({"library": {one.name: table}})
        yield from (f"# not among them: {fault}" for fault in self.faults)


def find_libraries(machine: Machine, folders: Iterable[Path] = ()) -> LibrariesHere:
    """Return the MPI libraries that mpi4py can load here, and have a launcher.

    Named ``folders`` are looked at first: an environment, a folder of environments, or one with a
    library. Each candidate is loaded by its Python in a process of its own; of those that are the
    same software the first one is taken.
    """
    found: list[Found] = []
    faults: list[str] = []
    seen: dict[tuple[str, ...], str] = {}
    for one in candidates(folders):
        try:
            there = of_table(machine, "library", one.table)
            software = there.software
        except OmbError as error:
            faults.append(f"{one.source}: {' '.join(str(error).split())}")
            continue
        parts = (software.library, software.mpi4py, software.numpy, software.omb_py)
        if parts in seen:
            if there.file not in {own.file for own in found}:
                faults.append(f"{one.source}: the same software as {seen[parts]}")
            continue
        name = name_of(software, (own.software for own in found))
        seen[parts] = name
        software = software.model_copy(update={"name": name})
        found.append(Found(name, one.source, one.table, software, there.file))
    return LibrariesHere(tuple(found), tuple(dict.fromkeys(faults)))


def name_of(software: Software, others: Iterable[Software]) -> str:
    """Return a short name of a library that no other has, by what it differs in.

    >>> name_of(Software(library="Open MPI 5.0.11"), [])
    'openmpi'
    >>> older = Software(name="mpich", library="MPICH 4.3.2", mpi4py="mpi4py 4.1.2")
    >>> name_of(Software(library="MPICH 5.0.2", mpi4py="mpi4py 4.1.2"), [older])
    'mpich-5.0.2'
    >>> name_of(Software(library="MPICH 4.3.2", mpi4py="mpi4py 4.1.0"), [older])
    'mpich-mpi4py-4.1.0'
    """
    vendor, _, version = software.library.rpartition(" ")
    plain = re.sub(r"[^a-z0-9]+", "", vendor.lower()) or "mpi"
    known = list(others)
    names = [plain]
    if software.library not in {one.library for one in known}:
        names.append(f"{plain}-{version}")
    around = filter(None, (software.mpi4py, software.numpy))
    names += [f"{plain}-{one.replace(' ', '-')}" for one in around]
    names += [f"{plain}-{number}" for number in range(2, len(known) + 3)]
    taken = {one.name for one in known}
    return next(name for name in names if name not in taken)


def candidates(folders: Iterable[Path]) -> Iterator[Candidate]:
    """Yield what may be a library, named folders first, then the environment of this Python."""
    environments: dict[Path, str] = {}
    plain = list[Path]()
    for folder in folders:
        own = [folder, *sorted(folder.glob("*"))] if folder.is_dir() else []
        inside = [path for path in own if is_environment(path)]
        environments |= dict.fromkeys(inside, f"environment {folder}")
        if not inside:
            plain += [folder]
    for folder in plain:
        for path in files_below(folder):
            yield Candidate(f"file below {folder}", Library(libmpi=str(path)))
    for path in [*environments, *usual_environments()]:
        yield Candidate(f"environment {path}", Library(virtual_environment=str(path)))
    yield from of_path()
    yield from of_modules()


def is_environment(path: Path) -> bool:
    """Return whether a folder is an environment of Python that has mpi4py."""
    with suppress(OSError):
        packages = path.glob("lib*/python3*/site-packages/mpi4py")
        return (path / "bin" / "python").exists() and any(packages)
    return False


def usual_environments() -> list[Path]:
    """Return the environments of this Python, of this shell, beside them, and in usual folders."""
    named = (os.environ.get(name) for name in ("VIRTUAL_ENV", "CONDA_PREFIX"))
    own = [Path(sys.prefix), *(Path(name) for name in named if name)]
    beside = [path for one in own for path in sorted(one.parent.glob("*"))]
    beside += [path for one in own for path in sorted(one.glob("envs/*"))]
    hidden = sorted(Path.cwd().glob(".venv*"))
    homes = [path for home in HOMES for path in sorted(Path(home).expanduser().glob("*"))]
    every = dict.fromkeys([*own, *beside, *hidden, *homes])
    real: dict[Path, Path] = {}
    for path in every:
        if is_environment(path):
            real.setdefault(path.resolve(), path.absolute())
    return list(real.values())


def files_below(folder: Path) -> list[Path]:
    """Return the files of libraries in a folder and below, one of each folder."""
    found: dict[Path, Path] = {}
    for place, inside, names in os.walk(folder, onerror=None):
        depth = len(Path(place).relative_to(folder).parts)
        inside[:] = sorted(inside) if depth < LONGEST_SEARCH else []
        for name in sorted(names):
            if FILES.fullmatch(name):
                found.setdefault(Path(place), Path(place, name).absolute())
    return list(found.values())


def of_path() -> Iterator[Candidate]:
    """Yield the libraries beside each mpiexec on the PATH, outside of this environment."""
    folders = dict.fromkeys(os.environ.get("PATH", "").split(os.pathsep))
    for folder in filter(None, folders):
        program = shutil.which("mpiexec", path=folder)
        root = Path(program).resolve().parent.parent if program else None
        if root is None or is_environment(root) or is_environment(Path(folder).parent):
            continue
        for path in [one for lib in ("lib", "lib64") for one in files_in(root / lib)][:1]:
            yield Candidate(f"{program} on the PATH", Library(libmpi=str(path), bin=folder))


def files_in(folder: Path) -> list[Path]:
    """Return the files of libraries in a folder."""
    return [path for path in sorted(folder.glob("libmpi*")) if FILES.fullmatch(path.name)]


def of_modules() -> Iterator[Candidate]:
    """Yield the modules of MPI libraries, if `module avail` answers."""
    try:
        listed = variables_after(
            "OMB_PY_MODULES=$(module -t avail 2>&1) && export OMB_PY_MODULES", "no modules"
        )
    except OmbError:
        return
    for name in modules_in(listed)[:MOST_MODULES]:
        yield Candidate(f"module {name}", Library(modules=(name,)))


def modules_in(variables: Mapping[str, str]) -> list[str]:
    """Return the modules of MPI libraries in the output of `module -t avail`.

    >>> modules_in({"OMB_PY_MODULES": "/soft/modules: gcc/12 openmpi/ openmpi/5.0(default)"})
    ['openmpi/5.0']
    """
    lines = variables.get("OMB_PY_MODULES", "").split()
    names = [re.sub(r"\(.*\)$|<.*>$", "", line) for line in lines]
    return [name for name in dict.fromkeys(names) if MODULES.fullmatch(name)]

"""The MPI libraries of a machine: how launches with each are started, and what software it is."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from omb_py.core import DISTRIBUTION
from omb_py.core.errors import OmbError
from omb_py.sweeps import launchers
from omb_py.sweeps.launchers import AUTO, LAUNCHERS, Programs
from omb_py.sweeps.machine import Library, Machine
from omb_py.sweeps.python import NOT_STARTED, in_python

CHOOSING = ("MPI4PY_LIBMPI", "MPI4PY_MPIABI")
"""The user's choices of a library: they would hold for all libraries of a sweep."""

MODULES_SECONDS = 120.0

LOAD_MODULES = """\
for file in "$LMOD_PKG/init/bash" "$MODULESHOME/init/bash" /etc/profile.d/{modules,lmod}.sh; do
    type module >/dev/null 2>&1 && break
    if [ -r "$file" ]; then . "$file" >&2; fi
done
type module >/dev/null 2>&1 || { echo "there is no command module" >&2; exit 1; }
"""
"""How a shell that is not a login's comes by Environment Modules or Lmod."""

SOFTWARE = """\
import json, sys
from importlib.metadata import PackageNotFoundError, version
from omb_py.core import VERSION
found = {"omb_py": f"omb-py {VERSION}"}
for name in ("mpi4py", "numpy"):
    try:
        found[name] = f"{name} {version(name)}"
    except PackageNotFoundError:
        pass
try:
    from mpi4py import MPI
    from omb_py.core.mpi import abi
    name, numbers = MPI.get_vendor()
    found["library"] = f"{name} {'.'.join(map(str, numbers))}"
    print(abi.library_path())
except (ImportError, RuntimeError) as error:
    print(*str(error).split(), file=sys.stderr)
    print()
print(json.dumps(found))
"""
"""A program that prints the file of the MPI library, and the measuring software; a library that
cannot be loaded is reported when it is needed."""


class Software(BaseModel):
    """The measuring software: names and versions, empty if unknown.

    ``name`` is the table of the machine that it belongs to, empty for the library that is there.
    """

    model_config = ConfigDict(frozen=True)

    name: str = ""
    library: str = ""
    omb_py: str = ""
    mpi4py: str = ""
    numpy: str = ""

    def difference(self, other: Software) -> str:
        """Return the known differences from ``other`` in words; empty without any."""
        names = [name for name in type(self).model_fields if name != "name"]
        pairs = ((getattr(self, name), getattr(other, name)) for name in names)
        different = ((own, known) for own, known in pairs if own and known and own != known)
        return ", ".join(f"{own} instead of {known}" for own, known in different)

    @property
    def text(self) -> str:
        """The names and versions in a line."""
        return ", ".join(filter(None, (self.library, self.mpi4py, self.numpy, self.omb_py)))


@dataclass(frozen=True)
class Installation:
    """What starts launches with a library: ``python``, launcher, and places of programs.

    ``machine`` has the library's variables and words for its launcher. ``name`` is the machine's
    table, empty for the library that is there.
    """

    machine: Machine
    launcher: str
    name: str = ""
    python: str = sys.executable
    where: Programs | None = None

    @property
    def taken_back(self) -> tuple[str, ...]:
        """Variables of this process that launches must not have."""
        own = self.machine.environment
        return tuple(one for one in CHOOSING if self.name and one in os.environ and one not in own)

    @property
    def inherited(self) -> dict[str, str]:
        """The variables of this process that launches have."""
        return {name: one for name, one in os.environ.items() if name not in self.taken_back}

    @cached_property
    def _answer(self) -> subprocess.CompletedProcess[str]:
        variables = {**dict.fromkeys(self.taken_back, None), **self.machine.environment}
        return in_python(SOFTWARE, {**variables, **NOT_STARTED}, python=self.python)

    @property
    def software(self) -> Software:
        """The software that measures; raises `OmbError` if a named library has none."""
        lines = self._answer.stdout.splitlines()
        found = Software.model_validate_json(lines[-1]) if lines else Software()
        if self.name and not found.library:
            said = self._answer.stderr.strip().splitlines() or ["it said nothing"]
            if "No module named" in said[-1]:
                said[-1] += f": {self.python} -m pip install {DISTRIBUTION}"
            raise OmbError(f"its MPI library cannot be loaded by {self.python}: {said[-1]}")
        return found.model_copy(update={"name": self.name})

    @property
    def file(self) -> str:
        """The file of the library's code; empty if it is not known."""
        return next(iter(self._answer.stdout.splitlines()), "")


def installation(machine: Machine, name: str = "") -> Installation:
    """Return what starts launches with a library of the machine, or with the one that is there.

    Raises `OmbError` if a part of it is missing, `UsageError` if its launcher is another library's.
    """
    if not name:
        return Installation(machine, launchers.select(machine.launcher, machine.name))
    return of_table(machine, name, machine.library[name])


def of_table(machine: Machine, name: str, table: Library) -> Installation:
    """Return what starts launches with the library that a table describes, as `installation`."""
    variables = of_modules((*machine.module_paths, *table.module_paths), table.modules)
    python = sys.executable
    folder: Path | None = Path(python).parent
    if table.virtual_environment is not None:
        folder = Path(table.virtual_environment).expanduser().absolute() / "bin"
        python = str(folder / "python")
        if not os.access(python, os.X_OK):
            raise OmbError(f"there is no {python}: correct virtual_environment of {name}")
    if table.libmpi is not None:
        library = Path(table.libmpi).expanduser().absolute()
        if not library.is_file():
            raise OmbError(f"there is no {library}: correct libmpi of {name}")
        variables["MPI4PY_LIBMPI"] = str(library)
        beside = library.parent.parent / "bin"
        folder = beside if (beside / "mpiexec").exists() else folder
    elif table.modules and table.virtual_environment is None:
        folder = None  # this environment's mpiexec is not the module's
    folder = folder if table.bin is None else Path(table.bin).expanduser().absolute()
    own = AUTO if LAUNCHERS.get(machine.launcher, LAUNCHERS["mpich"]).program == "mpiexec" else ""
    launcher = table.launcher or own or machine.launcher
    changed = {
        "environment": {**machine.environment, **variables, **table.environment},
        "launcher_options": table.launcher_options or (() if own else machine.launcher_options),
    }
    where = Programs(folder, variables.get("PATH"))
    launcher = launchers.select(launcher, f"{machine.name}, library {name},", where)
    return Installation(machine.model_copy(update=changed), launcher, name, python, where)


def installations(
    machine: Machine, names: Iterable[str]
) -> tuple[dict[str, Installation], dict[str, str]]:
    """Return what starts launches with each library, and why others cannot be used.

    Raises `OmbError` if there is no launcher for the library that is there.
    """
    found, faults = dict[str, Installation](), dict[str, str]()
    for name in dict.fromkeys(names):
        try:
            one = installation(machine, name)
            _ = one.software
            found[name] = one
        except OmbError as error:
            if not name:
                raise
            faults[name] = str(error)
    return found, faults


def of_modules(paths: Iterable[str], modules: Iterable[str]) -> dict[str, str]:
    """Return the variables that modules set; raise `OmbError` if one cannot be loaded."""
    names = tuple(modules)
    if not names:
        return {}
    lines = [f"module use {shlex.quote(path)} || exit 1" for path in paths]
    lines += [f"module load {shlex.quote(name)} >&2 || exit 1" for name in names]
    after = variables_after("\n".join(lines), f"modules {', '.join(names)} cannot be loaded")
    return {name: one for name, one in after.items() if os.environ.get(name) != one}


def variables_after(script: str, fault: str) -> Mapping[str, str]:
    """Return the variables after a script of modules; raise `OmbError` with ``fault`` if it
    fails."""
    ask = f"{LOAD_MODULES}\n{script}\nexec env -0"
    try:
        done = subprocess.run(
            ["bash", "-c", ask], capture_output=True, timeout=MODULES_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise OmbError(f"{fault}: {error}") from error
    said = done.stderr.decode(errors="replace").split()
    if done.returncode or b"=" not in done.stdout:
        raise OmbError(f"{fault}: {' '.join(said) or 'module said nothing'}")
    entries = done.stdout.decode(errors="replace").split("\0")
    found = dict(one.split("=", 1) for one in entries if "=" in one)
    shells = ("_", "SHLVL", "PWD", "OLDPWD")
    return {name: one for name, one in found.items() if name not in shells and "%%" not in name}

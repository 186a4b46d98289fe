"""Spack's packages and Ramble's applications, read without Spack and Ramble.

Neither is a Python package that can be installed, so their directives are recorded here. A name
that is none of theirs is a `NameError`; what only they can do, such as resolving dependencies, is
not tested.
"""

from __future__ import annotations

import runpy
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

from tests.conftest import run as run_job

SPACK = ("conflicts", "depends_on", "license", "variant", "version")
RAMBLE = (
    *("executable", "figure_of_merit", "figure_of_merit_context"),
    *("software_spec", "success_criteria", "tags", "workload", "workload_variable"),
)


@dataclass(frozen=True)
class Directive:
    """One call of a directive, with the conditions and defaults of the blocks around it."""

    name: str
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    when: tuple[str, ...]


@dataclass
class Recipe:
    """What a recipe says: its globals after it ran, and its directives in their order."""

    namespace: dict[str, Any] = field(default_factory=dict)
    directives: list[Directive] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)
    defaults: dict[str, Any] = field(default_factory=dict)

    def named(self, name: str) -> list[Directive]:
        """The calls of one directive."""
        return [one for one in self.directives if one.name == name]

    def recorder(self, name: str) -> Any:
        """A directive that records how it is called."""

        def record(*arguments: Any, **options: Any) -> None:
            own = options.pop("when", None)
            when = (*self.conditions, *([own] if own else []))
            found = Directive(name, arguments, self.defaults | options, when)
            self.directives.append(found)

        return record

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """A block of directives under a condition."""
        self.conditions.append(condition)
        yield
        self.conditions.pop()

    @contextmanager
    def default_args(self, **options: Any) -> Iterator[None]:
        """A block of directives with the same options."""
        before = self.defaults
        self.defaults = before | options
        yield
        self.defaults = before


def spack_package(path: Path, before_1: bool = False) -> Recipe:
    """Run a package with the modules of Spack 1, or of those before it."""
    cuda = {"CudaPackage": type("CudaPackage", (), {"cuda_arch_values": ("80", "90")})}
    python = {"PythonPackage": type("PythonPackage", (), {})}
    api = {"SkipTest": type("SkipTest", (Exception,), {}), "which": which}
    modules: dict[str, dict[str, Any]] = {"spack": {}}
    if before_1:
        api |= cuda | python
    else:
        systems = "spack_repo.builtin.build_systems"
        modules |= {"spack_repo": {}, "spack_repo.builtin": {}, systems: {}}
        modules |= {f"{systems}.cuda": cuda, f"{systems}.python": python}
    return run(path, modules | {"spack.package": api}, "spack.package", SPACK)


def ramble_application(path: Path) -> Recipe:
    """Run an application of Ramble's."""
    base = {"ExecutableApplication": type("ExecutableApplication", (), {})}
    return run(path, {"ramble": {}, "ramble.appkit": base}, "ramble.appkit", RAMBLE)


def run(path: Path, modules: dict[str, Any], api: str, directives: tuple[str, ...]) -> Recipe:
    """Run a recipe whose directives come from module ``api``."""
    recipe = Recipe()
    own = {name: recipe.recorder(name) for name in directives}
    own |= {"when": recipe.when, "default_args": recipe.default_args}
    modules = modules | {api: modules[api] | own}
    made = {}
    for name, content in modules.items():
        made[name] = ModuleType(name)
        vars(made[name]).update(content)
    with mock.patch.dict(sys.modules, made):
        recipe.namespace = runpy.run_path(str(path))
    return recipe


def which(program: str) -> Any:
    """Spack's callable for a program, which returns what the program prints."""

    def start(*arguments: str, output: Any, error: Any) -> str:
        assert output == error == str.split, "both in one text"
        with tempfile.TemporaryDirectory() as folder:
            done = run_job([program, *arguments], {}, Path(folder), timeout=120)
        assert done.code == 0, done.err
        return done.out + done.err

    return start


def installed(package: type, prefix: Path, mpi: Path, satisfied: set[str]) -> Any:
    """A package as Spack's tests of it see it: its prefix, its MPI's and its variants."""
    one = package()
    one.prefix = SimpleNamespace(bin=SimpleNamespace(join=lambda name: str(prefix / "bin" / name)))
    launcher = SimpleNamespace(bin=SimpleNamespace(mpiexec=str(mpi)))
    spec = {"mpi": SimpleNamespace(prefix=launcher)}
    one.spec = type("Spec", (dict,), {"satisfies": lambda self, text: text in satisfied})(spec)
    return one

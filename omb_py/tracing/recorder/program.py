"""Runs a Python program in this process, as ``python SCRIPT`` or ``python -m MODULE`` would."""

from __future__ import annotations

import os
import sys
import tokenize
from types import ModuleType

from omb_py.core.dataclass import dataclass
from omb_py.core.errors import UsageError


@dataclass(frozen=True)
class ProfiledProgram:
    """A script (a file, folder or archive with ``__main__``) or a module, and its arguments."""

    path: str
    arguments: tuple[str, ...]
    module: bool = False

    @property
    def command(self) -> str:
        """Return the command on one line."""
        return " ".join([f"-m {self.path}" if self.module else self.path, *self.arguments])


def find_program(name: str, arguments: tuple[str, ...], module: bool) -> ProfiledProgram:
    """Return the program of this name: a file, a Python program of ``PATH``, or a module.

    Raises `UsageError` if there is none, or it is not written in Python.
    """
    if module:
        return ProfiledProgram(name, arguments, module)
    if os.path.exists(name):
        return ProfiledProgram(name, arguments)
    from shutil import which

    beside = os.path.dirname(sys.executable)
    path = None if os.sep in name else which(name) or which(name, path=beside)
    if path is None:
        raise UsageError(f"there is no program {name}: name a Python script, or -m and a module")
    with open(path, "rb") as file:
        first = file.readline(200)
    if not (first.startswith(b"#!") and b"python" in first):
        raise UsageError(f"{path} is no Python program: profile the script that it starts")
    return ProfiledProgram(path, arguments)


def check_module(program: ProfiledProgram) -> None:
    """Raise `UsageError` if the module to run does not exist.

    Packages around the module are imported, so that they must already be observed.
    """
    if not program.module:
        return
    from importlib.util import find_spec

    sys.path.insert(0, "")
    name = program.path
    try:
        spec = find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            name = f"{name}.__main__"
            spec = find_spec(name)
    except ModuleNotFoundError as error:
        if not name.startswith(f"{error.name}."):
            raise
        spec = None
    except ValueError:  # a relative name
        spec = None
    if spec is None:
        raise UsageError(
            f"there is no module {name} for Python {sys.executable}: name another after -m, or "
            "install it there"
        )


def run(program: ProfiledProgram) -> None:
    """Run it as ``__main__`` until it ends; exceptions, `SystemExit` among them, pass through."""
    sys.argv[:] = [program.path, *program.arguments]
    if program.module:
        from runpy import run_module

        run_module(program.path, run_name="__main__", alter_sys=True)
        return
    if os.path.isdir(program.path) or program.path.endswith((".pyz", ".zip")):
        from runpy import run_path

        run_path(program.path, run_name="__main__")
        return
    sys.path[0] = os.path.dirname(os.path.realpath(program.path))
    with tokenize.open(program.path) as file:
        code = compile(file.read(), program.path, "exec")
    main = ModuleType("__main__")
    main.__file__ = program.path
    main.__builtins__ = __builtins__  # type: ignore[attr-defined]
    # it stays there, for functions that run at exit and for pickles
    sys.modules["__main__"] = main
    exec(code, main.__dict__)

"""Runs a Python program in this process, as ``python SCRIPT`` or ``python -m MODULE`` would."""

from __future__ import annotations

import builtins
import os
import sys
from importlib.machinery import BuiltinImporter, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any

from omb_py.core.dataclass import dataclass
from omb_py.core.errors import UsageError
from omb_py.core.text.files import failing

STDIN = "-"


class NoProgramError(UsageError):
    """An error: there is no program of this name, or Python cannot run it."""


@dataclass(frozen=True)
class ProfiledProgram:
    """A script (file, `STDIN`, folder or archive with ``__main__``) or a module, and arguments."""

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
    if module or name == STDIN or os.path.exists(name):
        return ProfiledProgram(name, arguments, module)
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


def run(program: ProfiledProgram) -> None:
    """Run it as ``__main__`` until it ends; exceptions, `SystemExit` among them, pass through.

    Raises `NoProgramError` if there is no such module, or the file cannot be read.
    """
    name, file = program.path, os.path.join(os.getcwd(), program.path)
    holds_main = not program.module and PathFinder.find_spec("__main__", [file]) is not None
    beside = "" if name == STDIN else os.path.dirname(os.path.realpath(name))
    first = file if holds_main else os.getcwd() if program.module else beside
    safe = sys.flags.safe_path
    # in place of omb-py's own folder, which is not there if it is safe
    sys.path[: 0 if safe else 1] = [] if safe and not holds_main else [first]
    words = ["-m", name] if program.module else [name]
    sys.argv[:] = [words[0], *program.arguments]
    sys.orig_argv[:] = [sys.orig_argv[0], *words, *program.arguments]
    if program.module or holds_main:
        _run_module(name if program.module else "__main__", program)
        return
    loader: Any = SourceFileLoader("__main__", file)
    if name == STDIN:
        file, loader, text = "<stdin>", BuiltinImporter, sys.stdin.buffer.read()
    else:
        with failing("read", name, NoProgramError, ": name a Python script, or -m and a module"):
            text = loader.get_data(file)
    main = _empty_main(loader, __file__=file, __cached__=None)
    exec(compile(text, file, "exec", dont_inherit=True), main)


def _run_module(name: str, program: ProfiledProgram) -> None:
    """Run a module, or ``__main__`` of a folder or archive, by the function that Python calls."""
    from runpy import _run_module_as_main  # type: ignore[attr-defined]  # run_module takes it away

    main = _empty_main(BuiltinImporter)
    try:
        _run_module_as_main(name, program.module)
    except SystemExit as end:
        ours, _, reason = str(end.code).partition(": ")
        if main["__spec__"] is not None or ours != sys.executable:
            raise
        raise NoProgramError(
            f"there is no module {program.path} for Python {sys.executable} ({reason}): name "
            "another after -m, or install it there"
        ) from None


def _empty_main(loader: Any, **more: str | None) -> dict[str, Any]:
    """Return the names of a new ``__main__``, those that this version of Python defines.

    It stays there, for functions that run at exit and for pickles.
    """
    made, ours = ModuleType("__main__"), vars(sys.modules["__main__"])
    made.__loader__ = loader
    values: dict[str, Any] = {"__annotations__": {}, "__builtins__": builtins, **more}
    vars(made).update((name, value) for name, value in values.items() if name in ours)
    sys.modules["__main__"] = made
    return vars(made)

"""Compiles the loop of binding native into a wheel, or into a checkout that is installed editable.

Without a C compiler omb-py is installed all the same: binding native alone then says what it lacks.
"""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = "omb_py/bindings/compiled"
SOURCE, LOOP = f"{FOLDER}/loop.c", f"{FOLDER}/libloop.so"
FLAGS = ("-std=c99", "-O2", "-g0", "-fPIC", "-shared")

MANYLINUX = ("x86_64", "aarch64")
"""Processors on which the loop needs nothing that glibc 2.17 lacks (PEP 599)."""


class Loop(BuildHookInterface[Any]):
    """What hatchling calls before it writes a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the loop, and name the platform that it is for."""
        source, target = Path(self.root, SOURCE), Path(self.root, LOOP)
        new = target.with_suffix(".new")
        compiler = shlex.split(os.environ.get("CC") or "cc")
        try:
            subprocess.run([*compiler, *FLAGS, "-o", str(new), str(source)], check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            self.app.display_warning(f"binding native is left out, for its loop: {error}")
            return
        new.replace(target)  # the old one may be in use
        machine, (library, _) = platform.machine(), platform.libc_ver()
        many = "many" if library == "glibc" and machine in MANYLINUX else ""
        build_data["artifacts"].append(LOOP)
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{many}linux{'_2_17' if many else ''}_{machine}"

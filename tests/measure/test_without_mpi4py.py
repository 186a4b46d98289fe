"""Ranks that torchrun starts have no mpi4py: measuring must not need it to be imported."""

from __future__ import annotations

import pkgutil
import subprocess
import sys

import omb_py.measure

PROGRAM = """\
import importlib, sys
sys.modules["mpi4py"] = None
for name in sys.argv[1:]:
    importlib.import_module(f"omb_py.measure.{name}")
"""


def test_modules_of_measuring_load_without_mpi4py() -> None:
    names = sorted(one.name for one in pkgutil.iter_modules(omb_py.measure.__path__))
    done = subprocess.run([sys.executable, "-c", PROGRAM, *names], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

"""What a start loads: ten thousand ranks open the files of these modules at once.

``make start-up`` counts the files and measures the seconds.
"""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import omb_py.measure

TELLING = """
import atexit, sys
told = sys.argv.pop()
atexit.register(lambda: open(told, "w").write(" ".join(sys.modules)))
"""
ALLREDUCE = "allreduce -fm8 -i 2 -c"


def loaded(folder: Path, program: str) -> set[str]:
    """The modules that a program has imported at its end."""
    command = [sys.executable, "-c", TELLING + program, str(folder / "told")]
    subprocess.run(command, check=True, capture_output=True, cwd=folder)
    return set((folder / "told").read_text().split())


def of_command(folder: Path, line: str) -> set[str]:
    """The modules of a command of omb-py."""
    return loaded(folder, f"from omb_py.cli import main; sys.argv[1:] = {line.split()}; main()")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "absent"),
    [
        (ALLREDUCE, "dataclasses difflib email pathlib pkgutil tempfile"),
        (f"{ALLREDUCE} --binding native", "pathlib hashlib"),
        (f"{ALLREDUCE} --buffer bytearray", "numpy"),
        ("--help", "email numpy mpi4py"),
        *((line, "numpy mpi4py") for line in ("latency --help", "list", "--version")),
    ],
)
def test_command_loads_nothing_that_it_does_not_use(tmp_path: Path, line: str, absent: str) -> None:
    found = of_command(tmp_path, line) - loaded(tmp_path, "")
    assert not {*absent.split()} & found
    assert not {name for name in found if name.startswith(("omb_py.analysis", "omb_py.sweeps"))}
    buffers = {name for name in found if name.startswith("omb_py.buffers.")}
    assert buffers <= {"omb_py.buffers.numpy", "omb_py.buffers.bytearray"}


def test_a_profiled_program_loads_the_recorder_alone(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import sys; from mpi4py import MPI; print(*sys.modules, file=open('loaded', 'w'))"
    )
    of_command(tmp_path, "profile --quiet --force program.py")
    bare = loaded(tmp_path, "import mpi4py; mpi4py.get_config()")
    found = set((tmp_path / "loaded").read_text().split()) - bare
    assert "omb_py.tracing.recorder.interception" in found
    rooms = {name.split(".")[1] for name in found if name.startswith("omb_py.")}
    assert rooms == {"cli", "core", "options", "tracing"}
    assert not {"numpy", "pathlib", "tempfile", "importlib.abc"} & found


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

"""What a start costs: counted are modules and files, which are the same on every machine.

``make start-up`` measures the seconds. Ten thousand ranks open these files at once.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

COUNTING = """
import atexit, json, sys
told, opened = sys.argv.pop(), []
def hook(event, values):
    if event in ("open", "os.listdir", "os.scandir") or (event == "import" and values[1]):
        opened.append(str(values[1] if event == "import" else values[0]))
def tell():
    with open(told, "w") as file:
        json.dump([sorted(sys.modules), opened], file)
sys.addaudithook(hook)
atexit.register(tell)
"""
ALLREDUCE = "allreduce -m 8 -i 2".split()
PROGRAM = "import sys; from omb_py.cli import main; sys.argv[1:] = {}; main()"


@dataclass(frozen=True)
class Start:
    """What a process had imported and opened at its end."""

    modules: set[str]
    files: list[str]


KERNEL = ("/proc/", "/sys/")
"""Where files are that no filesystem is read for."""


@pytest.fixture(autouse=True)
def keeping_bytecode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)


def start(folder: Path, program: str) -> Start:
    """The start of a program that has been started before, so that everything is compiled."""
    told = folder / "told.json"
    for _ in range(2):
        command = [sys.executable, "-c", COUNTING + program, str(told)]
        subprocess.run(command, check=True, capture_output=True, cwd=folder)
    modules, files = json.loads(told.read_text())
    return Start(set(modules), files)


def of_command(folder: Path, *words: str) -> Start:
    """The start of a command of omb-py."""
    return start(folder, PROGRAM.format(list(words)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "plain", "modules"),
    [
        ((), "from mpi4py import MPI; import numpy, click", 90),
        (("--buffer", "bytearray"), "from mpi4py import MPI; import click", 90),
    ],
)
def test_benchmark_opens_at_most_90_extra_files(
    tmp_path: Path, options: tuple[str, ...], plain: str, modules: int
) -> None:
    bare, ours = start(tmp_path, plain), of_command(tmp_path, *ALLREDUCE, *options)
    before, after = (
        [name for name in one.files if not name.startswith(KERNEL)] for one in (bare, ours)
    )
    assert len(after) - len(before) <= 90, sorted(set(after) - set(before))
    assert len(ours.modules) - len(bare.modules) <= modules, sorted(ours.modules - bare.modules)


@pytest.mark.slow
def test_a_benchmark_loads_what_it_uses_alone(tmp_path: Path) -> None:
    loaded = of_command(tmp_path, *ALLREDUCE).modules
    assert {name for name in loaded if name.startswith("omb_py.buffers.")} == {
        "omb_py.buffers.numpy"
    }
    ours = loaded - start(tmp_path, "").modules
    assert not {"dataclasses", "difflib", "email", "pathlib", "pkgutil", "tempfile"} & ours
    assert not {name for name in loaded if name.startswith(("omb_py.analysis", "omb_py.sweeps"))}
    without_numpy = of_command(tmp_path, *ALLREDUCE, "--buffer", "bytearray").modules
    assert "numpy" not in without_numpy


def test_a_profiled_program_loads_the_recorder_alone(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import sys; from mpi4py import MPI; print(*sys.modules, file=open('loaded', 'w'))"
    )
    of_command(tmp_path, "profile", "--quiet", "--force", "program.py")
    bare = start(tmp_path, "import mpi4py; mpi4py.get_config()")
    loaded = set((tmp_path / "loaded").read_text().split()) - bare.modules
    assert "omb_py.tracing.recorder.interception" in loaded
    rooms = {name.split(".")[1] for name in loaded if name.startswith("omb_py.")}
    assert rooms == {"cli", "core", "options", "tracing"}
    assert not {"numpy", "pathlib", "tempfile", "importlib.abc"} & loaded

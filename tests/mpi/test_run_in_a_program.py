"""`omb_py.run` inside a program of somebody's: rows on rank 0, and the program goes on."""

from __future__ import annotations

import re
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.conftest import run

PROGRAM = Path(__file__).parent / "programs" / "measuring.py"
OTHER_BINDINGS = PROGRAM.with_name("measuring_bindings.py")


@pytest.mark.parametrize("started", ["before", "after"])
def test_a_program_measures_and_goes_on(mpi: str, tmp_path: Path, started: str) -> None:
    command = [mpi, "-n", "2", sys.executable, str(PROGRAM), started]
    job = run(command, {}, tmp_path, timeout=120)
    assert job.code == 0, job.err
    printed = job.out.splitlines()
    assert printed.count("sum 1 of 2") == 2
    assert "[8, 1024] [2] [1]" in printed
    assert any(re.match("True True (MP|Op)", line) for line in printed)
    assert "['allreduce 8 B (1 of 2)'] True" in printed
    assert "[1, 2, 4] ['native'] ['Pass']" in printed
    assert any(line.startswith("True ") and line.endswith("omb-py 0.1.0") for line in printed)
    refused = [line for line in printed if line.startswith("refused: ")]
    assert len(refused) == 6
    for line, words in zip(
        refused,
        (
            "no option 'no_such_option'",
            "unknown buffer 'numpi'",
            "run it alone",
            "not in the range",
            "did you mean sizes",
            "the function for progress failed: AttributeError",
        ),
        strict=True,
    ):
        assert words in line


GOES_ON = """
import omb_py, os, time
for size in ("8", "no size"):
    try:
        omb_py.run("latency", sizes=size, iterations=10, timeout=1)
    except omb_py.OmbError:
        print("refused")
time.sleep(2)
print("goes on", open(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read().split())
"""


def test_a_timeout_ends_with_the_measurement(mpi: str, tmp_path: Path) -> None:
    job = run([mpi, "-n", "2", sys.executable, "-c", GOES_ON], {}, tmp_path, timeout=60)
    assert job.code == 0, job.err
    assert sorted(job.out.splitlines()) == ["goes on []"] * 2 + ["refused"] * 2


def test_bindings_close_what_they_opened(mpi: str, tmp_path: Path) -> None:
    """A group that the program made with torch goes on as it was."""
    packages = {"grpc": "grpc", "torch": "torch"}
    names = ["tcp", "unix", "asyncio", "multiprocessing", "coroutine"]
    names += [name for name, package in packages.items() if find_spec(package)]
    command = [mpi, "-n", "3", sys.executable, str(OTHER_BINDINGS), *names]
    job = run(command, {}, tmp_path, timeout=120)
    assert job.code == 0, job.err
    assert job.out.splitlines() == [f"{name} ['Pass'] 0" for name in names]

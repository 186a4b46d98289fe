"""Other programs on the cores of a job are noted, in a sentence and in the results."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Run, succeeded
from tests.helpers.reading import read_file


@pytest.fixture
def busy_cores() -> Iterator[None]:
    """A program that never waits, for each core that a job may use."""
    words = [sys.executable, "-c", "while True: pass"]
    programs = [subprocess.Popen(words) for _ in os.sched_getaffinity(0)]
    yield
    for program in programs:
        program.kill()
        program.wait()


@pytest.mark.long
@pytest.mark.parametrize("form", ["csv", "json"])
@pytest.mark.usefixtures("busy_cores")
def test_what_others_took_of_the_cores_is_noted(mpiexec: Run, tmp_path: Path, form: str) -> None:
    long = ("-i", "1000000", "--max-time", "0.7")
    job = succeeded(mpiexec(2, "latency", "--sizes", "8", *long, "--output", f"rows.{form}"))
    (note,) = [line for line in job.err.splitlines() if "other processes took" in line]
    assert f" of the {len(os.sched_getaffinity(0))} cores of " in note
    (run,) = read_file(tmp_path / f"rows.{form}").runs.values()
    share, _, text = run["other_processes"].partition("%")
    assert float(share) > 5
    assert text.startswith(f" of {len(os.sched_getaffinity(0))} cores of {os.uname().nodename}")
    assert run["command"].startswith("omb-py latency")

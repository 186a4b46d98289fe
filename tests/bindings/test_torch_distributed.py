"""Binding torch on gloo, started by environment variables: real processes, a real torch."""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

from tests.helpers.without_mpi import ended, free_port, start

SYSTEM = "/usr/bin/python3"
"""Debian's Python, which the package python3-torch is for."""

ROOT = Path(__file__).parents[2]

STREAMS_AS_THEY_ARE = ("--redirects", "9:0", "--tee", "9:0")
"""For a rank that is not there: by default torchrun 1.13 fails on Python 3.11."""

Measure = Callable[..., tuple[list[int], str, str]]


@cache
def python_with_torch() -> str | None:
    """A Python that has torch with gloo: this one, or the system's."""
    found = sys.executable if find_spec("torch") else shutil.which(SYSTEM)
    check = "import torch.distributed as d, numpy; d.ProcessGroupGloo"
    if found is None or subprocess.run([found, "-c", check], capture_output=True).returncode:
        return None
    return found


pytestmark = pytest.mark.skipif(python_with_torch() is None, reason="no torch with gloo is here")


@pytest.fixture
def path(tmp_path: Path) -> str:
    """The PYTHONPATH of omb-py, and of click, which alone the system's Python lacks."""
    lent = tmp_path / "lent"
    lent.mkdir()
    (lent / "click").symlink_to(Path(click.__file__).parent)
    return os.pathsep.join([str(ROOT), str(lent)])


@pytest.fixture
def measure(tmp_path: Path, path: str) -> Measure:
    """Runs a benchmark on ranks without MPI; exit codes, what was printed, and errors."""
    python = python_with_torch()
    assert python is not None

    def run(line: str, ranks: int = 2) -> tuple[list[int], str, str]:
        by_rank = dict.fromkeys(range(ranks), path)
        words = (*line.split(), "--binding", "torch", "-i", "10", "-x", "2")
        return ended(start(*words, ranks=ranks, cwd=tmp_path, python=python, PYTHONPATH=by_rank))

    return run


CHECKED = (
    "latency -m 0:64",
    "bibw -m 1:4096",
    "allreduce -m 4:64 -T mpi_float",
    "allreduce -m 4:64 -l",
    "reduce -k rotate -m 4:64",
    "allgather -m 1:16",
    "alltoallv -m 1:16",
    "gather -k fixed:1 -m 1:16",
    "scatter -l -m 1:16",
    "iallreduce -m 4:4",
    "allreduce --p2p-algorithm ring -m 4:64",
)


@pytest.mark.product
@pytest.mark.parametrize("line", CHECKED)
def test_the_data_arrives(measure: Measure, line: str) -> None:
    ranks = 2 if line.startswith(("latency", "bibw")) else 3
    codes, out, error = measure(f"{line} -c", ranks)
    assert codes == [0] * ranks, error
    assert "Pass" in out
    assert "Fail" not in out


def test_starting_a_call_is_told_apart_from_waiting_for_it(
    measure: Measure, tmp_path: Path
) -> None:
    codes, _, error = measure("allreduce -m 4:4 --output rows.csv")
    assert codes == [0, 0], error
    lines = (tmp_path / "rows.csv").read_text().splitlines()
    assert "# backend: gloo" in lines
    (row,) = csv.DictReader(line for line in lines if not line.startswith("#"))
    assert 0 < float(row["queued_mean_us"]) < float(row["sample_mean_us"])


@pytest.mark.parametrize("rendezvous", [(), ("--standalone",)], ids=["static", "standalone"])
@pytest.mark.parametrize("binding", ["torch", "tcp"])
def test_torchrun_starts_the_ranks(
    tmp_path: Path, path: str, rendezvous: tuple[str, ...], binding: str
) -> None:
    python = python_with_torch()
    assert python is not None
    start = [python, "-m", "torch.distributed.run", "--nproc_per_node", "2", *rendezvous]
    if not rendezvous:
        start += ["--master_port", str(free_port())]
    words = f"allreduce --binding {binding} -c -m 4:4 -i 10 -x 2 --output rows.csv".split()
    done = subprocess.run(
        [*start, *STREAMS_AS_THEY_ARE, "-m", "omb_py", *words],
        env=os.environ | {"PYTHONPATH": path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Pass") == 1
    assert "# started_by: torchrun" in (tmp_path / "rows.csv").read_text()


def test_its_threads_have_ended_when_python_does(measure: Measure, tmp_path: Path) -> None:
    """One that needs Python after its end would end the process by a signal."""
    (tmp_path / "lent" / "sitecustomize.py").write_text(
        "import atexit, os, sys\n"
        "at_end = lambda: print('threads:', len(os.listdir('/proc/self/task')), file=sys.stderr)\n"
        "atexit.register(at_end)\n"
    )
    codes, _, error = measure("alltoallv -m 1:1", ranks=3)
    assert codes == [0, 0, 0], error
    threads = [int(line.split()[1]) for line in error.splitlines() if line.startswith("threads:")]
    assert len(threads) == 3
    assert max(threads) <= 3, "the main one, one that watches the others, and one of torch's own"


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("allreduce --backend mpi", "is built without mpi: choose --backend from gloo"),
        ("allreduce --backend mine", "torch cannot connect the ranks by mine"),
        ("exscan", "binding torch has no exscan"),
        ("allreduce -T longdouble", "cannot add longdouble"),
        ("bcast -D vect:4:2", "leave out -D"),
    ],
)
def test_what_it_cannot_do_is_one_sentence(measure: Measure, line: str, sentence: str) -> None:
    codes, _, error = measure(f"{line} -m 16:16")
    assert 0 not in codes
    assert sentence in error
    assert "Traceback" not in error

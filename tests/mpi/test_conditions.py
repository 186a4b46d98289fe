"""Conditions are in the metadata, and what spoils numbers is said before they are measured."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

import omb_py
from tests.conftest import ENVIRONMENT, MPIEXEC, OMB_PY, Run, run, succeeded
from tests.hosts.jobs import OPEN_MPI

HOST_LOAD = """
import time
from omb_py.core.job.by_mpi import world
from omb_py.measure.host_load import HostLoad
with world("single", session=False) as job:
    load = HostLoad(job)
    time.sleep(0.3)
    metadata, _ = load.finish()
    if job.rank == 0:
        print(*metadata.values(), job.on_host() is job.on_host())
"""
CORES = os.cpu_count() or 1
THROTTLE = "MPIR_CVAR_CH4_PROGRESS_THROTTLE"
WITHOUT = ["env", "-u", THROTTLE, "-u", f"{THROTTLE}_NO_PROGRESS_COUNT"]
QUICK = ("latency", "-m", "8:8", "-i", "10", "-x", "1")


@pytest.mark.every_library
def test_conditions_are_metadata(mpiexec: Run, tmp_path: Path) -> None:
    succeeded(mpiexec(2, *QUICK, "--output", str(tmp_path / "c.csv")))
    (of_run,) = omb_py.load(tmp_path / "c.csv").runs.values()
    assert "bound" in of_run["conditions"]


@pytest.mark.every_library
def test_load_needs_no_earlier_question_about_hosts(mpi: str, tmp_path: Path) -> None:
    command = [mpi, "-n", "2", sys.executable, "-c", HOST_LOAD]
    job = succeeded(run(command, ENVIRONMENT, tmp_path, 60))
    assert re.match(r"\d+\.\d% of \d+ cores of .* True$", job.out)


@pytest.mark.every_library
@pytest.mark.skipif(CORES < 2, reason="with one core ranks have to share it")
def test_ranks_on_one_core_with_free_cores_are_noted(tmp_path: Path) -> None:
    core = min(os.sched_getaffinity(0))
    bound = ["taskset", "-c", str(core), OMB_PY]
    words = ["--bind-to", "none"] if OPEN_MPI else ["-bind-to", "none"]
    job = succeeded(run([MPIEXEC, "-n", "2", *words, *bound, *QUICK], ENVIRONMENT, tmp_path, 60))
    assert f"ranks 0-1 share core {core} of " in job.err


@pytest.mark.slow
@pytest.mark.skipif(OPEN_MPI or CORES > 4, reason="MPICH's variables; many cores need many ranks")
@pytest.mark.parametrize(
    ("more", "given", "recorded", "noted"),
    [(1, [], "1", True), (0, [], None, False), (1, [f"{THROTTLE}=0"], "0", False)],
    ids=["more ranks than cores", "a core for each rank", "a user's own value"],
)
def test_ranks_that_share_cores_step_aside(
    tmp_path: Path, more: int, given: list[str], recorded: str | None, noted: bool
) -> None:
    command = [MPIEXEC, "-n", str(CORES + more), *WITHOUT, *given, OMB_PY, "allreduce", *QUICK[1:]]
    job = succeeded(run([*command, "-o", "r.csv"], ENVIRONMENT, tmp_path, 60))
    (of_run,) = omb_py.load(tmp_path / "r.csv").runs.values()
    found = re.search(rf"{THROTTLE}=(\d)", of_run["environment"])
    assert (found and found[1]) == recorded
    assert job.err.count(f"omb-py set {THROTTLE}=1") == noted

"""Ranks that torchrun starts, and ranks that nothing starts: real processes, a real torch."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import Run, succeeded
from tests.helpers import torchrun
from tests.helpers.pace import slowness
from tests.helpers.refusals import missing
from tests.helpers.torchrun import needs_torchrun

pytestmark = pytest.mark.slow

QUICK = ("-i", "20", "-x", "2", "-m", "4:64")
WITHOUT_MPI = "raise ImportError('mpi4py is not to be imported')"


@pytest.mark.long
@needs_torchrun
@pytest.mark.parametrize("rendezvous", [(), ("--standalone",)], ids=["static", "standalone"])
def test_torchrun_starts_ranks_without_mpi4py(tmp_path: Path, rendezvous: tuple[str, ...]) -> None:
    (tmp_path / "mpi4py.py").write_text(WITHOUT_MPI)
    words = ("allreduce", "--binding", "tcp", "-c", *QUICK, "--output", "rows.csv")
    done = torchrun.run(*words, folder=tmp_path, ranks=3, rendezvous=rendezvous)
    assert (done.code, done.out.count("Pass")) == (0, 5), done.err
    text = (tmp_path / "rows.csv").read_text()
    assert "# started_by: torchrun" in text
    assert "# mpi_library" not in text


@pytest.mark.long
@needs_torchrun
def test_torchrun_with_overhead_compares_bindings(tmp_path: Path) -> None:
    words = "overhead latency --bindings tcp,asyncio --sizes 8 -i 20 --rounds 6".split()
    done = succeeded(torchrun.run(*words, folder=tmp_path))
    assert "asyncio's streams" in done.out


@pytest.mark.long
@needs_torchrun
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("latency", "binding buffer MPI, torchrun"),
        ("latency --binding tcp --backend gloo", "--backend binding tcp"),
        ("latency --binding tcp --interface none0", "none0 no IPv4"),
        ("scan --binding tcp", "binding tcp has no scan"),
    ],
)
def test_torchrun_with_a_wrong_command_ends_soon(tmp_path: Path, words: str, sentence: str) -> None:
    done = torchrun.run(*words.split(), *QUICK, folder=tmp_path)
    assert done.code != 0
    assert not missing(sentence, done.err)
    assert "omb_py/" not in done.err, "a traceback of ours"
    assert done.seconds < 30 * slowness()


@pytest.mark.long
@needs_torchrun
@pytest.mark.parametrize("binding", ["tcp", "torch"])
def test_torchrun_ends_all_ranks_when_one_is_killed(tmp_path: Path, binding: str) -> None:
    words = ("multi_lat", "--binding", binding, "-m", "1:1", "-i", "100000000")
    job = subprocess.Popen(
        torchrun.command(*words, ranks=4),
        env=torchrun.environment(tmp_path),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert job.stdout is not None
    while "Size" not in job.stdout.readline():
        pass
    time.sleep(0.3)
    children = Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()
    os.kill(int(children[2]), signal.SIGKILL)
    began = time.monotonic()
    _, error = job.communicate(timeout=60)
    assert job.returncode != 0
    assert "SIGKILL" in error
    assert time.monotonic() - began < 10
    assert not any(Path(f"/proc/{child}").exists() for child in children)


@pytest.mark.parametrize("rank", ["0", "1"])
def test_ranks_by_variables_alone_are_refused(omb_py: Run, rank: str) -> None:
    variables = {"RANK": rank, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
    done = omb_py("latency", "--binding", "tcp", *QUICK, **variables)
    assert done.code == 2
    assert done.err.count("omb-py: ") == 1
    assert "mpiexec -n 2" in done.err
    assert "torchrun --nproc_per_node 2" in done.err
    assert done.seconds < 10 * slowness()


def test_srun_without_pmi_is_refused_once(tmp_path: Path) -> None:
    ranks = []
    for rank in range(2):
        variables = {"SLURM_PROCID": str(rank), "SLURM_STEP_NUM_TASKS": "2"}
        ranks.append(
            subprocess.run(
                [sys.executable, "-m", "omb_py", "latency", "--binding", "tcp", *QUICK],
                env=os.environ | variables,
                cwd=tmp_path,
                capture_output=True,
                text=True,
                timeout=60,
            )
        )
    assert [rank.returncode for rank in ranks] == [1, 1]
    assert "srun --mpi=list" in ranks[0].stderr
    assert ranks[1].stderr == ""


def test_variables_of_torchrun_left_over_are_ignored(omb_py: Run) -> None:
    done = omb_py("list", RANK="1", WORLD_SIZE="2")
    assert "bindings: " in succeeded(done).out

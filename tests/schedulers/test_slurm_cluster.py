"""The cluster that the other tests use: from the command line, and that nothing of it stays."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.schedulers import slurm_cluster
from tests.schedulers.batch import Slurm, state, submit, wait_until

pytestmark = pytest.mark.usefixtures("two_nodes")

PROGRAM = Path(slurm_cluster.__file__)


def control(action: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the program ``slurm_cluster.py`` as a shell would."""
    command = [sys.executable, str(PROGRAM), action, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)


def processes_naming(folder: Path) -> list[str]:
    """The processes that have something of a folder in their environment or command."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            text = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        except OSError:
            continue
        if str(folder).encode() in text:
            found.append(process.name)
    return found


@pytest.mark.long
def test_stopping_leaves_neither_a_process_nor_a_file(tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    started = control("start", folder)
    assert started.stdout == f"export SLURM_CONF={folder}/slurm.conf\n", started.stderr
    try:
        slurm = Slurm(slurm_cluster.environment_of(folder / "slurm.conf"))
        assert slurm_cluster.is_test_cluster(slurm.environment)
        # one that its job has lost, one on each node, and one that does not heed TERM
        script = f"#!/bin/bash\ncd {folder}\nsetsid sleep 300 &\nsrun -N 2 sleep 300 &\n"
        script += "trap '' TERM\ntouch up\nwhile :; do sleep 1; done\n"
        (tmp_path / "job.sh").write_text(script)
        job = submit(slurm, tmp_path, "sbatch", "--nodes=2", "job.sh")
        wait_until((folder / "up").exists, 240, lambda: state(slurm, job))
    finally:
        stopped = control("stop", folder)

    assert (stopped.returncode, stopped.stdout, stopped.stderr) == (0, "", "")
    assert not folder.exists()
    assert processes_naming(folder) == []


def test_failed_start_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "cluster"
    monkeypatch.setattr(slurm_cluster, "CONFIGURATION", slurm_cluster.CONFIGURATION + "Odd=1\n")

    with pytest.raises(slurm_cluster.ClusterError, match="Odd"):
        slurm_cluster.start(folder)

    assert not folder.exists()
    assert processes_naming(folder) == []


def test_cluster_starts_in_an_empty_folder_only(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text("ClusterName=mine\n")
    for action in ("start", "stop"):
        refused = control(action, tmp_path)
        assert refused.returncode == 1
        assert len(refused.stderr.splitlines()) == 1
    assert (tmp_path / "slurm.conf").exists()

"""Wherever a command is told to write, it makes all folders that are missing, as mkdir -p does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import ROOT
from tests.conftest import Run, succeeded

RESULTS = str(ROOT / "results" / "two-core-vm.csv")
WRITING = (
    f"compare {RESULTS} {RESULTS} --output no/such/table.csv",
    f"show {RESULTS} --output no/such/table.csv",
    f"plot {RESULTS} --where benchmark=bw --output no/such/figure.svg",
    f"report {RESULTS} --where benchmark=bw --output no/such/page.html",
    "programs no/such",
    "job render quick --machine generic-slurm --one-job --output no/such/job.sh",
)


@pytest.mark.parametrize("line", WRITING, ids=lambda line: line.split()[0])
def test_command_makes_all_missing_folders(in_process: Run, tmp_path: Path, line: str) -> None:
    succeeded(in_process(*line.split()))
    assert list((tmp_path / "no" / "such").iterdir())


@pytest.mark.parametrize(
    "line",
    [
        "barrier --output no/such/rows.csv",
        "barrier --samples no/such/rows.npy",
        "profile --folder no/such program.py",
    ],
)
def test_job_makes_all_missing_folders(mpi: str, omb_py: Run, tmp_path: Path, line: str) -> None:
    (tmp_path / "program.py").write_text("from mpi4py import MPI")
    succeeded(omb_py(*line.split()))
    assert list((tmp_path / "no" / "such").iterdir())

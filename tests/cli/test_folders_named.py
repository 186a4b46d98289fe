"""Wherever a command is told to write, it makes one folder, not those that a typing error names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import ROOT
from tests.conftest import Finished, Run
from tests.helpers.refusals import missing

RESULTS = str(ROOT / "results" / "two-core-vm.csv")
WRITING = (
    f"compare {RESULTS} {RESULTS} --output no/such/table.csv",
    f"show {RESULTS} --output no/such/table.csv",
    f"plot {RESULTS} --where benchmark=bw --output no/such/figure.svg",
    f"report {RESULTS} --where benchmark=bw --output no/such/page.html",
    "compare --native /bin/true latency --keep no/such",
    "sweep quick --folder no/such",
    "job render quick --machine generic-slurm --one-job --output no/such/job.sh",
    "profile --folder no/such --force program.py",
)


@pytest.mark.parametrize("line", WRITING, ids=lambda line: line.split()[0])
def test_a_missing_parent_is_named(in_process: Run, tmp_path: Path, line: str) -> None:
    (tmp_path / "program.py").touch()
    assert_named(in_process(*line.split()), tmp_path)


def test_so_it_is_by_a_benchmark(mpi: str, omb_py: Run, tmp_path: Path) -> None:
    assert_named(omb_py("barrier", "--output", "no/such/rows.csv"), tmp_path)


def assert_named(job: Finished, folder: Path) -> None:
    assert job.code in (1, 2)
    assert not missing("folder no: make", job.err)
    assert not (folder / "no").exists()

"""Checkpoints on ranks: every method, step by step; wrong data, full disks, ranks that die."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from omb_py.analysis.table import load
from omb_py.options.table import METHODS
from tests.conftest import OMB_PY, Finished, rows_of, run

ONE = ("--sizes", "100001", "-i", "3", "-x", "1", "--file", "data")
STEPS = {
    "checkpoint_write": ["", "open", "write", "sync", "close"],
    "checkpoint_read": ["", "open", "read", "close"],
}


@pytest.mark.long
@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("name", STEPS)
def test_every_step_of_every_method_is_a_row(
    mpiexec: Callable[..., Finished], tmp_path: Path, name: str, ranks: int
) -> None:
    for method in METHODS:
        job = mpiexec(ranks, name, *ONE, "--method", method, "--output", "rows.csv")
        assert (job.code, job.sentences) == (0, []), job.err
        assert f"# Method: {method}" in job.out
    rows = rows_of(tmp_path / "rows.csv")
    for method in METHODS:
        mine = [row for row in rows if row["method"] == method]
        assert [row["part"] for row in mine] == STEPS[name]
        assert {row["iterations"] for row in mine} == {"3"}
        total, *steps = (float(row["sample_mean_us"]) for row in mine)
        assert 0 < sum(steps) < total * 1.001
        bandwidth = float(mine[0]["bandwidth_MBps"])
        assert bandwidth == pytest.approx(ranks * 100001 / total, rel=1e-3)
    assert os.listdir(tmp_path) == ["rows.csv"]


@pytest.mark.long
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", STEPS)
def test_the_data_of_every_method_is_checked(
    mpiexec: Callable[..., Finished], tmp_path: Path, name: str, method: str
) -> None:
    words = (*ONE, "--sizes", "1,4096,100001", "--method", method, "-c", "-u", "1")
    job = mpiexec(3, name, *words, "--output", "rows.csv")
    assert (job.code, job.sentences) == (0, []), job.err
    rows = rows_of(tmp_path / "rows.csv")
    assert [(row["bytes"], row["validation"]) for row in rows] == [
        (size, "Pass") for size in ("1", "4096", "100001")
    ]


def test_wrong_data_is_found(mpiexec: Callable[..., Finished], tmp_path: Path) -> None:
    job = mpiexec(2, "checkpoint_read", *ONE, "-c", "-u", "0", "--buffer", "apart")
    assert job.code != 0
    (sentence,) = job.sentences
    assert "wrong data in checkpoint_read with messages of 100001 bytes: rank 0" in sentence
    assert "block 0 of rank 1, iteration 0" in sentence
    assert os.listdir(tmp_path) == []


def test_text_and_rows_tell_the_same(mpiexec: Callable[..., Finished], tmp_path: Path) -> None:
    words = ("--method", "shared", "--no-file-sync", "--output", "rows.csv")
    job = mpiexec(2, "checkpoint_write", *ONE, *words)
    assert job.code == 0, job.err
    (tmp_path / "table.txt").write_text(job.out)
    text, rows = (load(tmp_path / name).rows for name in ("table.txt", "rows.csv"))
    for column in ("part", "method", "file_sync"):
        told = text[column].astype(object).fillna("")
        assert list(told) == pytest.approx(list(rows[column].astype(object).fillna("")), rel=0.01)
    assert list(rows["part"].fillna("")) == ["", "open", "write", "close"]


@pytest.mark.long
def test_no_other_binding_and_no_device_is_claimed(mpiexec: Callable[..., Finished]) -> None:
    for binding in ("native", "pickle", "tcp"):
        job = mpiexec(2, "checkpoint_write", *ONE, "--binding", binding)
        assert job.code != 0
        (sentence,) = job.sentences
        assert "use --binding buffer" in sentence


@pytest.mark.parametrize("method", METHODS)
def test_a_file_that_may_not_grow_is_said(
    mpiexec: Callable[..., Finished], tmp_path: Path, method: str
) -> None:
    words = (*ONE, "--method", method, "--buffer", "limited")
    job = mpiexec(2, "checkpoint_write", *words)
    assert job.code != 0
    (sentence,) = job.sentences
    assert "cannot write checkpoint data" in sentence
    assert "name another --file" in sentence
    assert "Traceback" not in job.err
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("there", ["data.1", "data"])
def test_a_file_that_is_there_is_kept(
    mpiexec: Callable[..., Finished], tmp_path: Path, there: str
) -> None:
    (tmp_path / there).write_text("mine")
    method = "shared" if there == "data" else "numpy"
    job = mpiexec(2, "checkpoint_write", *ONE, "--method", method)
    assert job.code != 0
    (sentence,) = job.sentences
    assert "files of this name exist" in sentence
    assert (tmp_path / there).read_text() == "mine"


@pytest.mark.parametrize("path", ["/proc/data", "missing/data"])
def test_a_folder_that_cannot_be_written_is_named(
    mpiexec: Callable[..., Finished], path: str
) -> None:
    job = mpiexec(2, "checkpoint_write", *ONE[:-1], path)
    assert job.code != 0
    (sentence,) = job.sentences
    assert path in sentence
    assert "name another --file" in sentence


def test_a_folder_that_nodes_do_not_share_is_named(mpi: str, tmp_path: Path) -> None:
    (tmp_path / "storage").mkdir()
    apart = ["unshare", "--mount", "--map-root-user", "bash", "-c"]
    hide = 'mount -t tmpfs none storage && exec "$@"'
    able = subprocess.run([*apart, hide, "-", "true"], cwd=tmp_path, capture_output=True)
    if able.returncode:
        pytest.skip("no mount namespaces")
    command = [OMB_PY, "checkpoint_write", *ONE[:-1], "storage/data"]
    hidden = ["-n", "1", *apart, hide, "-", *command]
    job = run([mpi, "-n", "1", *command, ":", *hidden], {}, tmp_path, 120)
    assert job.code != 0
    (sentence,) = job.sentences
    assert "rank 1" in sentence
    assert "all hosts share" in sentence

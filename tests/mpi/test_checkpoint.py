"""Checkpoints on ranks: every method, step by step; wrong data, full disks, ranks that die."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from omb_py.analysis.table import load
from omb_py.options.table import METHODS
from tests.conftest import OMB_PY, Run, rows_of, run, succeeded
from tests.helpers.refusals import assert_refused

ONE = ("--sizes", "100001", "-i", "3", "-x", "1", "--file", "data")
STEPS = {
    "checkpoint_write": ["", "open", "write", "sync", "close"],
    "checkpoint_read": ["", "open", "read", "close"],
}


@pytest.mark.long
@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("name", STEPS)
def test_each_step_is_a_row(mpiexec: Run, tmp_path: Path, name: str, ranks: int) -> None:
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
def test_data_of_a_method_is_checked(mpiexec: Run, tmp_path: Path, name: str, method: str) -> None:
    words = (*ONE, "--sizes", "1,4096,100001", "--method", method, "-c", "-u", "1")
    job = mpiexec(3, name, *words, "--output", "rows.csv")
    assert (job.code, job.sentences) == (0, []), job.err
    rows = rows_of(tmp_path / "rows.csv")
    assert [(row["bytes"], row["validation"]) for row in rows] == [
        (size, "Pass") for size in ("1", "4096", "100001")
    ]


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (
            "checkpoint_read -c -u 0 --buffer apart",
            1,
            "wrong data checkpoint_read 100001 bytes: rank 0 block 0 of rank 1, iteration 0",
        ),
        *(
            pytest.param(
                f"checkpoint_write --binding {binding}",
                5,
                "use --binding buffer",
                marks=pytest.mark.long,
            )
            for binding in ("native", "pickle", "tcp")
        ),
        *(
            (
                f"checkpoint_write --method {method} --buffer limited",
                1,
                "cannot write checkpoint data name another --file",
            )
            for method in METHODS
        ),
        ("checkpoint_write --file /proc/data", 1, "/proc/data name another --file"),
        ("checkpoint_write --file missing/data", 1, "missing/data name another --file"),
    ],
)
def test_refused_has_no_file(
    mpiexec: Run, tmp_path: Path, words: str, code: int, says: str
) -> None:
    name, *more = words.split()
    assert_refused(mpiexec(2, name, *ONE, *more), code, says)
    assert os.listdir(tmp_path) == []


def test_text_and_rows_tell_the_same(mpiexec: Run, tmp_path: Path) -> None:
    words = ("--method", "shared", "--no-file-sync", "--output", "rows.csv")
    job = succeeded(mpiexec(2, "checkpoint_write", *ONE, *words))
    (tmp_path / "table.txt").write_text(job.out)
    text, rows = (load(tmp_path / name).rows for name in ("table.txt", "rows.csv"))
    for column in ("part", "method", "file_sync"):
        told = text[column].astype(object).fillna("")
        assert list(told) == pytest.approx(list(rows[column].astype(object).fillna("")), rel=0.01)
    assert list(rows["part"].fillna("")) == ["", "open", "write", "close"]


@pytest.mark.parametrize("there", ["data.1", "data"])
def test_a_file_that_is_there_is_kept(mpiexec: Run, tmp_path: Path, there: str) -> None:
    (tmp_path / there).write_text("mine")
    method = "shared" if there == "data" else "numpy"
    job = mpiexec(2, "checkpoint_write", *ONE, "--method", method)
    assert_refused(job, 2, "files of this name exist")
    assert (tmp_path / there).read_text() == "mine"


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
    assert_refused(job, 2, "rank 1 all hosts share")

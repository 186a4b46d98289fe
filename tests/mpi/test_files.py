"""Files: whether the disk is in bandwidths, the time of all ranks together; what is refused."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from omb_py.analysis.table import load
from tests.conftest import OMB_PY, Run, rows_of, run, succeeded
from tests.helpers.refusals import assert_refused

ONE = ("--sizes", "1048576", "-i", "4", "-x", "1", "--file", "data")
LATE_SECONDS = 0.02
"""By which one rank begins later; the other may begin late too, on a busy machine by half of it."""


def test_ranks_that_take_turns_are_not_added_up_as_if_at_once(mpiexec: Run, tmp_path: Path) -> None:
    """One rank begins when the other is done; a write alone takes less than a millisecond."""
    job = mpiexec(
        *(2, "file_write", *ONE, "--no-file-sync", "--binding", "late", "--output", "rows.csv"),
        OMB_TEST_RANK="1",
    )
    assert job.code == 0, job.err
    (row,) = rows_of(tmp_path / "rows.csv")
    assert 0 < float(row["bandwidth_MBps"]) <= 2 * 1.048576 / (LATE_SECONDS / 2)
    assert float(row["sample_p50_us"]) >= 1e6 * LATE_SECONDS / 2


@pytest.mark.parametrize(
    ("name", "words", "says", "kept"),
    [
        ("file_write", (), "# Sync: MPI_File_sync in every iteration", "True"),
        ("file_write_all", ("--no-file-sync",), "# Sync: none, ", "False"),
        ("file_read", (), "# Page cache: holds what is read", ""),
    ],
)
def test_the_table_and_its_rows_say_whether_the_disk_is_in_them(
    mpiexec: Run, tmp_path: Path, name: str, words: tuple[str, ...], says: str, kept: str
) -> None:
    job = succeeded(mpiexec(2, name, *ONE, *words, "-c", "--output", "rows.csv"))
    assert job.out.splitlines()[2].startswith(says)
    (row,) = rows_of(tmp_path / "rows.csv")
    assert (row["file_sync"], row["per_rank"]) == (kept, "False")
    bandwidth = 2 * 1048576 / float(row["sample_mean_us"])
    assert float(row["bandwidth_MBps"]) == pytest.approx(bandwidth, rel=1e-3)
    (tmp_path / "table.txt").write_text(job.out)
    (from_text,) = load(tmp_path / "table.txt").rows.astype(object).to_dict("records")
    assert str(from_text["file_sync"]) == (kept or "nan")
    assert from_text["per_rank"] is False, "or it would match a file for each rank"


@pytest.mark.parametrize("name", ["file_write", "file_read"])
def test_each_rank_has_a_file_of_its_own(mpiexec: Run, tmp_path: Path, name: str) -> None:
    (tmp_path / "data").write_text("mine")
    own = (name, *ONE, "--per-rank", "-f", "-c")
    job = succeeded(mpiexec(3, *own, "--output", "rows.csv"))
    (row,) = rows_of(tmp_path / "rows.csv")
    assert (row["per_rank"], row["validation"]) == ("True", "Pass")
    least, most, slowest = (
        float(row[f"{of}_us"]) for of in ("latency_min", "latency_max", "sample_mean")
    )
    assert least <= most <= slowest * 1.001
    assert float(row["bandwidth_MBps"]) == pytest.approx(3 * 1048576 / slowest, rel=1e-3)
    (tmp_path / "table.txt").write_text(job.out)
    (from_text,) = load(tmp_path / "table.txt").rows.to_dict("records")
    assert (from_text["per_rank"], from_text["ranks"]) == (True, 3)
    assert from_text["latency_max_us"] == pytest.approx(most, abs=0.01)
    (tmp_path / "data.2").write_text("mine")
    assert_refused(mpiexec(3, *own), 2, "--file data.2 exists: name a file that does not")
    assert sorted(os.listdir(tmp_path)) == ["data", "data.2", "rows.csv", "table.txt"]


FULL = "cannot write data: File too large see whether there is room, or name another --file"


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ("file_write --buffer limited", 1, FULL),
        pytest.param("file_write_all --buffer limited", 1, FULL, marks=pytest.mark.long),
        pytest.param("file_read --buffer limited", 1, FULL, marks=pytest.mark.long),
        pytest.param(
            "file_write --buffer limited --binding native", 1, FULL, marks=pytest.mark.long
        ),
        ("file_write --file /proc/data", 2, "--file /proc/data cannot make this file"),
        ("file_read_all --file missing/data", 2, "--file missing/data cannot make this file"),
        ("file_write --per-rank --file missing/data", 2, "missing/data.0 cannot make this file"),
    ],
)
def test_a_refused_command_leaves_no_file(
    mpiexec: Run, tmp_path: Path, words: str, code: int, says: str
) -> None:
    name, *more = words.split()
    assert_refused(mpiexec(2, name, *ONE, *more), code, says)
    assert os.listdir(tmp_path) == []


def test_a_name_like_that_of_a_file_system_is_a_name(mpiexec: Run, tmp_path: Path) -> None:
    """MPICH takes ``ufs:`` off a name that begins with it."""
    job = succeeded(mpiexec(2, "file_write", *ONE[:-1], "ufs:data", "-c"))
    assert "Pass" in job.out
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["file_write", "file_read_all"])
def test_a_file_that_is_there_is_kept(mpiexec: Run, tmp_path: Path, name: str) -> None:
    (tmp_path / "data").write_text("mine")
    assert_refused(mpiexec(2, name, *ONE), 2, "--file data exists: name a file that does not")
    assert (tmp_path / "data").read_text() == "mine"


def test_a_folder_that_nodes_do_not_share_is_named(mpi: str, tmp_path: Path) -> None:
    (tmp_path / "storage").mkdir()
    apart = ["unshare", "--mount", "--map-root-user", "bash", "-c"]
    hide = 'mount -t tmpfs none storage && exec "$@"'
    able = subprocess.run([*apart, hide, "-", "true"], cwd=tmp_path, capture_output=True)
    if able.returncode:
        pytest.skip("no mount namespaces")
    command = [OMB_PY, "file_write", *ONE[:-1], "storage/data"]
    hidden = ["-n", "1", *apart, hide, "-", *command]
    job = run([mpi, "-n", "1", *command, ":", *hidden], {}, tmp_path, 120)
    assert_refused(job, 2, "rank 1 all hosts share")

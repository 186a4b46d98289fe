"""Bandwidths of files: whether the disk is in them, and the time that all ranks take together."""

from __future__ import annotations

from pathlib import Path

import pytest

from omb_py.analysis.table import load
from tests.conftest import Run, rows_of, succeeded

ONE = ("--sizes", "1048576", "-i", "4", "-x", "1", "--file", "data")
LATE_SECONDS = 0.02


def test_ranks_that_take_turns_are_not_added_up_as_if_at_once(mpiexec: Run, tmp_path: Path) -> None:
    """One rank begins when the other is done: two messages in 20 ms are no more than 105 MB/s."""
    job = mpiexec(
        *(2, "file_write", *ONE, "--no-file-sync", "--binding", "late", "--output", "rows.csv"),
        OMB_TEST_RANK="1",
    )
    assert job.code == 0, job.err
    (row,) = rows_of(tmp_path / "rows.csv")
    assert 0 < float(row["bandwidth_MBps"]) <= 2 * 1.048576 / LATE_SECONDS
    assert float(row["sample_min_us"]) >= 1e6 * LATE_SECONDS


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
    assert row["file_sync"] == kept
    (tmp_path / "table.txt").write_text(job.out)
    from_text = load(tmp_path / "table.txt").rows.file_sync.astype(object)
    assert [str(value) for value in from_text] == [kept or "nan"]

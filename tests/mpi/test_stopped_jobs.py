"""A job that is stopped in mid-row: the row is measured again, and marked if that was stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from omb_py.core.mpi.watchdog import descendants
from tests.conftest import OMB_PY, own_temporary_folder, rows_of
from tests.helpers.waiting import wait_for

LARGE = ("--sizes", "1M,2M,4M", "-i", "1000000", "--max-time", "2")


@pytest.mark.slow
@pytest.mark.parametrize(("often", "words"), [(False, "again\n"), (True, "again, but for 2097152")])
def test_row_of_a_stopped_job_is_measured_again_or_marked(
    mpi: str, tmp_path: Path, often: bool, words: str
) -> None:
    table = tmp_path / "x.csv"
    command = [mpi, "-n", "2", OMB_PY, "allreduce", *LARGE, "-o", "x.csv"]
    with own_temporary_folder() as own:
        job = subprocess.Popen(
            command,
            env=own,
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_for(lambda: table.exists() and len(rows_of(table)) == 1)
        time.sleep(0.5)  # it sets up the next size
        while True:
            for number, seconds in ((signal.SIGSTOP, 2.0), (signal.SIGCONT, 0.5)):
                for one in descendants(job.pid):
                    os.kill(one, number)
                time.sleep(seconds)
            if not often or len(rows_of(table)) > 1:
                break
        said = job.communicate(timeout=60)[1]
    assert job.returncode == 0, said
    (note,) = [line for line in said.splitlines(keepends=True) if "ranks were stopped" in line]
    assert words in note
    rows = rows_of(table)
    assert [row["bytes"] for row in rows] == ["1048576", "2097152", "4194304"]
    assert bool(rows[1]["stopped_s"]) == often
    assert all(float(row["sample_max_us"]) < 2e6 for row in rows if not row["stopped_s"])

"""The start of a job: what is printed, and that its parts are all of it."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from omb_py.results.columns import Row
from tests.conftest import Run, succeeded
from tests.helpers.reading import objects
from tests.helpers.refusals import ENDED, assert_refused

PARTS = ["interpreter", "omb-py", "numpy", "buffer", "mpi4py", "MPI_Init"]


@pytest.mark.parametrize("ranks", [1, 2])
def test_init_is_native_ombs_line_with_fractions(mpiexec: Run, ranks: int) -> None:
    job = succeeded(mpiexec(ranks, "init"))
    assert job.sentences == []
    banner, line = job.out.splitlines()
    assert re.fullmatch(
        rf"# OSU MPI Init Test v7\.4 \(omb-py \S+: buffer numpy, ranks {ranks}\)", banner
    )
    number = r"(\d+\.\d\d)"
    found = re.fullmatch(
        rf"nprocs: {ranks}, min: {number} ms, max: {number} ms, avg: {number} ms", line
    )
    assert found
    minimum, maximum, mean = map(float, found.groups())
    assert 0 < minimum <= mean + 0.01 <= maximum + 0.02
    assert maximum < job.seconds * 1e3


def test_hello_says_how_many_and_tells_its_start_in_tables(mpiexec: Run, tmp_path: Path) -> None:
    job = succeeded(mpiexec(2, "hello", "--output", "rows.csv"))
    banner, line = job.out.splitlines()
    assert banner.startswith("# OSU MPI Hello World Test v7.4 (")
    assert line == "This is a test with 2 processes"
    (row,) = pd.read_csv(tmp_path / "rows.csv", comment="#").to_dict("records")
    assert row["part"] == "total"
    assert 0 < row["latency_min_us"] <= row["latency_us"] <= row["latency_max_us"]
    assert row["latency_max_us"] < job.seconds * 1e6


def test_the_parts_of_a_start_are_all_of_it(mpiexec: Run, tmp_path: Path) -> None:
    job = succeeded(mpiexec(2, "import_time", "--output", "rows.csv"))
    assert job.sentences == []
    assert [row[0] for row in job.rows] == [*PARTS, "total"]
    assert all(len(row) == 4 for row in job.rows)
    table = pd.read_csv(tmp_path / "rows.csv", comment="#").set_index("part")
    assert list(table.index) == [*PARTS, "total"]
    values = table["latency_us"]
    assert values[PARTS].sum() == pytest.approx(values["total"], rel=1e-6)
    assert (table.latency_min_us <= table.latency_us * 1.000001).all()
    assert (table.latency_us <= table.latency_max_us * 1.000001).all()
    assert (table.latency_min_us[PARTS] > 0).all()
    assert table.latency_us["total"] < job.seconds * 1e6
    calls = ["bytes", "binding", "placement", "sample_mean_us", "mpi_type", "bandwidth_MBps"]
    assert table[calls].isna().all(axis=None)


def test_a_bytearray_needs_no_numpy(mpiexec: Run) -> None:
    job = succeeded(mpiexec(2, "import_time", "--buffer", "bytearray", "--format", "json"))
    metadata, *rows = objects(job.out)
    assert metadata["metadata"]["ranks"] == "2"
    assert [row["part"] for row in rows] == [*(part for part in PARTS if part != "numpy"), "total"]
    assert [name for name in Row.columns if name in rows[0]] == list(rows[0])
    assert None not in rows[0].values()


@pytest.mark.parametrize("name", ["init", "import_time"])
def test_a_session_is_timed_instead(mpiexec: Run, tmp_path: Path, name: str) -> None:
    job = succeeded(mpiexec(2, name, "-I", "-q", "--timeout", "60", "--output", "rows.csv"))
    assert job.out == ""
    parts = list(pd.read_csv(tmp_path / "rows.csv", comment="#").part)
    assert "Session.Init" in parts
    assert "MPI_Init" not in parts


@pytest.mark.long
def test_a_rank_that_does_not_get_through_the_start_is_ended(mpiexec: Run, tmp_path: Path) -> None:
    (tmp_path / "slow_buffer.py").write_text(
        "import time\n"
        "from omb_py.buffers.numpy import NumpyBuffer\n"
        "class Slow(NumpyBuffer):\n"
        "    def prepare(self, local_rank, devices=()):\n"
        "        time.sleep(60)\n"
        "BUFFER = Slow()\n"
    )
    folder = tmp_path / "slow_buffer-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: slow-buffer\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text("[omb_py.buffers]\nslow = slow_buffer:BUFFER\n")
    job = mpiexec(2, "import_time", "--buffer", "slow", "--timeout", "1", PYTHONPATH=str(tmp_path))
    assert_refused(job, ENDED, "no progress for 1 s while starting MPI")


def test_there_is_no_overhead_of_a_binding(omb_py: Run) -> None:
    assert_refused(omb_py("overhead", "init"), 2, "no binding, compare")
    listed = omb_py("overhead", "--help").out
    assert "latency" in listed
    assert "import_time" not in listed

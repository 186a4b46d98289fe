"""The file of --samples, from real ranks."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from omb_py.core.statistics import percentile
from omb_py.measure.samples import MAX_SAMPLES
from omb_py.results.samples import is_samples
from tests import ROOT
from tests.conftest import OMB_PY, Run, own_temporary_folder, succeeded
from tests.helpers.refusals import ANY_CODE, assert_refused
from tests.helpers.samples import read

ROWS = ("-q", "--output", "rows.csv", "--samples")


def test_each_rank_has_every_iteration_in_order(mpiexec: Run, tmp_path: Path) -> None:
    assert mpiexec(3, "allreduce", "-i", "30", "--sizes", "8,1024", *ROWS, "run.npy").code == 0
    table = read(tmp_path / "run.npy")
    assert len(table) == 2 * 3 * 30
    for _, part in table.groupby(["bytes", "rank"]):
        assert list(part["iteration"]) == list(range(30))


@pytest.mark.long
@pytest.mark.parametrize(
    "options", ["latency", "bcast -i 100", "latency -c -i 20", "mbw_mr -V -i 20"]
)
def test_the_median_follows_from_the_samples(mpiexec: Run, tmp_path: Path, options: str) -> None:
    words = [*options.split(), "--sizes", "4,64", "--binding", "buffer"]
    assert mpiexec(2, *words, *ROWS, "run.npy").code == 0
    samples = read(tmp_path / "run.npy")
    rows = pd.read_csv(tmp_path / "rows.csv", comment="#")
    assert len(rows) == (16 if "-V" in options else 2)
    for row in rows.itertuples():
        own = samples[samples["bytes"] == row.bytes]
        if "-V" in options:
            own = own[own["window"] == row.window]
        means = own.groupby("iteration")["sample_us"].mean()
        assert len(means) == row.iterations
        assert percentile(sorted(means), 50) == pytest.approx(row.sample_p50_us, rel=1e-6)
        assert set(own["run"]) == {row.run}
        assert set(own["binding"]) == {row.binding}
        assert set(own["mpi_type"]) == {row.mpi_type}


@pytest.mark.long
def test_very_many_iterations_are_thinned_evenly(mpiexec: Run, tmp_path: Path) -> None:
    count = 2 * MAX_SAMPLES + 1
    job = succeeded(mpiexec(2, "latency", "-i", str(count), "--sizes", "1", *ROWS, "run.npy"))
    assert f"--samples keeps at most {MAX_SAMPLES} iterations" in job.err
    assert "one of every 3 at 1 bytes" in job.err
    table = np.load(tmp_path / "run.npy")
    assert list(table["iteration"]) == list(range(0, count, 3))
    assert set(table["every"]) == {3}


@pytest.mark.any_library
def test_a_run_that_ends_with_an_error_completes_the_file(mpiexec: Run, tmp_path: Path) -> None:
    words = ("latency", "-i", "5", "--sizes", "8", "-c", "--binding", "corrupting")
    job = mpiexec(2, *words, *ROWS, "run.npy", PYTHONPATH=str(ROOT / "tests" / "plugin"))
    assert "wrong data" in job.sentences[-1]
    assert len(np.load(tmp_path / "run.npy")) == 5


@pytest.mark.any_library
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("run.csv", "ends in .npy"),
        ("other.npy", "--force"),
        ("other.npy/run.npy", "cannot write other.npy/run.npy"),
    ],
)
def test_wrong_samples_file_is_refused(mpiexec: Run, tmp_path: Path, name: str, says: str) -> None:
    (tmp_path / "other.npy").write_text("something else")
    assert_refused(
        mpiexec(2, "latency", "-i", "5", "--sizes", "1", "--samples", name), ANY_CODE, says
    )
    assert (tmp_path / "other.npy").read_text() == "something else"


def test_a_killed_run_leaves_the_samples_of_its_rows(mpi: str, tmp_path: Path) -> None:
    left = tmp_path / "run.npy"
    words = ["latency", "-i", "20", "-q", "--sizes", ",".join(map(str, range(1, 3000)))]
    command = [mpi, "-n", "2", OMB_PY, *words, "--samples", str(left)]
    with own_temporary_folder() as environment:
        job = subprocess.Popen(
            command, env=environment, stderr=subprocess.DEVNULL, start_new_session=True
        )
        end = time.monotonic() + 60
        while not is_samples(left) or len(np.load(left, mmap_mode="r")) < 100:
            assert time.monotonic() < end
            time.sleep(0.05)
        os.killpg(job.pid, signal.SIGKILL)
        job.wait(timeout=60)
    time.sleep(0.2)
    table = read(left)
    assert list(table["bytes"].unique()) == list(range(1, 1 + len(table) // 20))
    assert (table.groupby("bytes").size() == 20).all()

"""A target that computes: its data is right, the origin waits for it where it must."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Run, rows_of, succeeded


@pytest.mark.every_library
@pytest.mark.parametrize("binding", ["native", "buffer"])
def test_data_reaches_a_busy_target(mpiexec: Run, tmp_path: Path, binding: str) -> None:
    results = tmp_path / "r.csv"
    names = ("latency", "put_latency", "get_latency", "acc_latency")
    words = ("--target-busy", "50", "-c", "-u", "1", "-i", "2", "--sizes", "8,4096", "-q")
    succeeded(mpiexec(2, "run", *names, *words, "--binding", binding, "-o", str(results)))
    rows = rows_of(results)
    assert len(rows) == 8
    assert {(row["validation"], row["target_busy_us"]) for row in rows} == {("Pass", "50")}


@pytest.mark.every_library
@pytest.mark.parametrize("binding", ["native", "buffer"])
def test_round_trip_contains_the_computing(mpiexec: Run, tmp_path: Path, binding: str) -> None:
    results = tmp_path / "r.csv"
    words = ("--target-busy", "20000", "--sizes", "8", "-i", "5", "-x", "1", "--binding", binding)
    succeeded(mpiexec(2, "latency", *words, "-q", "-o", str(results)))
    (row,) = rows_of(results)
    assert float(row["sample_p50_us"]) > 8000

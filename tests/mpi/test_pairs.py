"""`omb-py pairs`: every pair of ranks, on real ranks."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

import omb_py
from omb_py.results.columns import PairRow
from tests.conftest import Run, rows_in_text, succeeded
from tests.helpers.reading import objects
from tests.helpers.refusals import missing

QUICK = ("-i", "5", "-x", "1", "--repeats", "1")


@pytest.mark.long
@pytest.mark.every_library
def test_every_pair_has_a_row_for_each_direction_and_size(mpiexec: Run, tmp_path: Path) -> None:
    words = ("--sizes", "8,1024", *QUICK, "--output", str(tmp_path / "p.csv"))
    job = succeeded(mpiexec(5, "pairs", "latency", *words, "--worst", "2"))
    rows = omb_py.load(tmp_path / "p.csv").pairs
    for size in (8, 1024):
        of_size = rows[rows.bytes == size]
        pairs = sorted(zip(of_size.sender, of_size.receiver, strict=True))
        assert pairs == sorted(permutations(range(5), 2))
    assert (rows.min_us <= rows.median_us).all()
    assert (rows.median_us <= rows.p99_us).all()
    assert (rows.latency_us == rows.median_us).all()
    assert (rows.iterations == 5).all()
    assert not missing("# 5 ranks on 1 host; 10 pairs both disjoint", job.out)
    assert job.out.count("# Sender") == 2


@pytest.mark.any_library
@pytest.mark.parametrize("benchmark", ["bw", "bibw"])
def test_bandwidths_are_of_a_window(mpiexec: Run, tmp_path: Path, benchmark: str) -> None:
    words = ("--sizes", "4K", "-W", "4", *QUICK, "--alone", "--binding", "native", "--by", "rank")
    job = mpiexec(3, "pairs", benchmark, *words, "--output", str(tmp_path / "p.json"), "-q")
    assert (job.code, job.out) == (0, ""), job.err
    items = [item for item in objects((tmp_path / "p.json").read_text()) if "run" in item]
    rows = [item for item in items if "metadata" not in item and "sender" in item]
    missing = {"latency_us", "variant", "elements"}
    assert [tuple(row) for row in rows] == [
        tuple(name for name in PairRow.columns if name not in missing)
    ] * 6
    moved = 4096 * 4 * (2 if benchmark == "bibw" else 1)
    for row in rows:
        assert row["bandwidth_MBps"] == pytest.approx(moved / row["median_us"])
        assert (row["window"], row["alone"]) == (4, True)


@pytest.mark.any_library
def test_latency_is_measured_where_no_benchmark_is_named(mpiexec: Run) -> None:
    job = succeeded(mpiexec(2, "pairs", *QUICK, "--format", "csv", "--sizes", "8"))
    assert [(row["benchmark"], row["sender"]) for row in rows_in_text(job.out)] == [
        ("latency", "0"),
        ("latency", "1"),
    ]


@pytest.mark.long
@pytest.mark.any_library
def test_some_rounds_are_a_sample_and_it_is_said(mpiexec: Run, tmp_path: Path) -> None:
    words = ("--rounds", "2", *QUICK, "--sizes", "8", "--output", str(tmp_path / "p.csv"))
    job = succeeded(mpiexec(6, "pairs", *words))
    assert not missing("6 of 15 pairs measured, 2 others: --rounds 5 all", job.err)
    assert len(omb_py.load(tmp_path / "p.csv").pairs) == 12


@pytest.mark.long
@pytest.mark.any_library
def test_transports_without_mpi_have_pairs_and_a_figure(mpiexec: Run, tmp_path: Path) -> None:
    words = ("--sizes", "8", "--binding", "tcp", "-G", "png", "-q")
    succeeded(mpiexec(3, "pairs", *QUICK, *words))
    assert (tmp_path / "latency-pairs-8.png").read_bytes().startswith(b"\x89PNG")

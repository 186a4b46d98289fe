"""Every column of results is filled by some run: one that nothing writes would stay empty."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

import omb_py
from omb_py.results.columns import OverheadRow, PairRow, Row
from tests import ROOT
from tests.conftest import Run

QUICK = ("-m", "64:64", "-i", "5", "-x", "1")
MORE = (*QUICK, "--label", "x", "-T", "bfloat16")
RUNS = (
    (2, "latency", *MORE, "--target-busy", "5", "--offset", "64", "-z50"),
    (2, "latency", *QUICK, "-c", "--cold"),
    (2, "alltoallv", *QUICK, "--skew", "2"),
    (2, "allreduce", *QUICK, "--sync", "clock", "--coll-algorithm", "default"),
    (2, "file_write", *QUICK, "--per-rank", "--file", "data"),
    (2, "sendrecv_mt", *QUICK),
    (4, "allreduce", *QUICK, "--split", "2"),
    (4, "allreduce", *QUICK, "--split", "2", "--congestor", "alltoall:64"),
    (2, "pairs", "latency", *QUICK),
    (2, "pairs", "bw", *MORE),
    (2, "overhead", "bw", *MORE),
    (2, "overhead", "allreduce", *QUICK, "--bindings", "buffer,tcp"),
)
ELSEWHERE = {"failed", "stopped_s"}
"""Filled only where an MPI library survives a rank, or a job is stopped: test_recovery.py,
test_stopped_jobs.py."""


@pytest.mark.long
@pytest.mark.any_library
def test_every_column_is_filled_by_some_run(mpiexec: Run, tmp_path: Path) -> None:
    for number, (ranks, *words) in enumerate(RUNS):
        job = mpiexec(ranks, *words, "-o", str(tmp_path / f"{number}.csv"))
        assert job.code == 0, (words, job.err)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = omb_py.load(tmp_path, ROOT / "results")
    kinds = ((Row, results.rows), (OverheadRow, results.overhead), (PairRow, results.pairs))
    for kind, table in kinds:
        empty = {name for name in kind.columns if table[name].isna().all()}
        assert empty <= ELSEWHERE, kind.__name__

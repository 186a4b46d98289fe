"""`omb-py history` as a user meets it: tables, documents, the page, exit codes, sentences."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

pytest.importorskip("otava", reason="the extra history is not installed")

from perf.history import write
from tests import ROOT
from tests.conftest import Run, succeeded
from tests.helpers.refusals import assert_refused, missing

NATIVE = (
    "# OSU MPI Latency Test v7.4\n# Size       Avg Latency(us)\n8                       {:.2f}\n"
)


@pytest.fixture
def nightly(tmp_path: Path) -> Path:
    """60 runs of three points, of which one is 10 % slower from run 40 on, with another MPICH."""
    folder = tmp_path / "nightly"
    folder.mkdir()
    write(folder, runs=60, points=3)
    return folder


def test_changes_are_a_table_with_what_changed(in_process: Run, nightly: Path) -> None:
    done = in_process("history", str(nightly), "--where", "benchmark=allreduce")
    assert (done.code, done.err) == (0, "")
    (line,) = [line for line in done.out.splitlines() if "allreduce" in line]
    assert not missing("2026-01-02 µs % slower mpi: MPICH 5.0.1 5.0.2", line)
    assert "1 series of 60 runs were judged: 1 change, 0 outliers" in done.out


def test_limit_below_the_change_fails_one_above_passes(in_process: Run, nightly: Path) -> None:
    failed = in_process("history", str(nightly), "--fail-above", "5%")
    assert failed.code == 4
    assert "FAIL: allreduce" in failed.out
    passed = succeeded(in_process("history", str(nightly), "--fail-above", "1.5x"))
    assert "PASS" in passed.out


@pytest.mark.parametrize("form", ["csv", "json", "parquet", "markdown"])
def test_documents_have_changes_as_rows(in_process: Run, nightly: Path, form: str) -> None:
    succeeded(in_process("history", str(nightly), "--format", form, "-o", str(nightly / "found")))
    path = nightly / "found"
    if form == "markdown":
        assert "## Changes" in path.read_text()
        return
    if form == "json":
        document = json.loads(path.read_text())
        assert "3 series of 60 runs" in document["summary"]
        rows = pd.DataFrame(document["rows"])
    else:
        rows = {"csv": pd.read_csv, "parquet": pd.read_parquet}[form](path)
    assert {"change"} <= set(rows["kind"])
    assert list(rows["benchmark"][rows["kind"] == "change"]) == ["allreduce", "alltoall"]


def test_a_page_begins_with_the_newest_change(in_process: Run, nightly: Path) -> None:
    succeeded(in_process("history", str(nightly), "-o", "history.html"))
    page = (nightly.parent / "history.html").read_text()
    assert page.index("2026-01-02") < page.index('aria-label="Single outliers"')
    assert "Series 1 to 3, newest change first" in page


def test_text_without_a_date_is_named_and_left_out(in_process: Run, tmp_path: Path) -> None:
    for day in range(1, 13):
        (tmp_path / f"osu-2026-11-{day:02}.txt").write_text(NATIVE.format(1 + day / 100))
    (tmp_path / "osu.txt").write_text(NATIVE.format(9.0))
    done = succeeded(in_process("history", str(tmp_path)))
    assert "1 file without a date left out" in done.err
    assert "1 series of 12 runs were judged" in done.out


def test_results_without_any_date_are_refused(in_process: Run, tmp_path: Path) -> None:
    (tmp_path / "osu.txt").write_text(NATIVE.format(9.0))
    done = in_process("history", str(tmp_path / "osu.txt"))
    assert_refused(done, 1, "no row has a date")


def test_few_runs_of_a_log_of_reframe_cannot_be_judged(in_process: Run) -> None:
    logs = ROOT / "tests" / "data" / "reframe"
    done = in_process("history", str(logs), "--fail-above", "5%")
    assert done.code == 7
    assert "2 had fewer than 10 runs" in done.out

"""`omb-py guidelines` as a user meets it: tables, documents, exit codes, sentences."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pandas as pd
import pytest

import omb_py as interface
from omb_py.analysis.guidelines.check import COLUMNS
from omb_py.results.columns import Row
from tests import RESULTS
from tests.analysis.guidelines.synthetic import results
from tests.conftest import Run, succeeded
from tests.helpers.refusals import missing


@pytest.fixture
def slow_gather(tmp_path: Path) -> Path:
    """Results of ten launches in which a gather of 64 bytes takes 1.9 times an allgather's time."""
    path = tmp_path / "results.csv"
    rows = results(("gather", "allgather"), {("gather", 64): 1.9})
    rows.reindex(columns=list(Row.columns)).to_csv(path, index=False)
    return path


def test_violations_are_a_table_and_a_summary(in_process: Run, slow_gather: Path) -> None:
    done = in_process("guidelines", str(slow_gather), "--only", "emulation,gather")
    assert (done.code, done.err) == (0, "")
    (line,) = [line for line in done.out.splitlines() if line.startswith("gather <= allgather")]
    assert "64 B" in line
    assert "5 checks of 1 guideline: 1 violated, 4 hold" in done.out
    assert "not measured: gather <= gatherv, gather <= reduce" in done.out


@pytest.mark.slow
def test_a_violation_beyond_the_limit_fails(in_process: Run, slow_gather: Path) -> None:
    words = ("guidelines", str(slow_gather), "--only", "emulation", "--fail-above")
    failed = in_process(*words, "20%")
    assert failed.code == 4
    assert "FAIL: gather <= allgather at 64 B: " in failed.out
    passed = succeeded(in_process(*words, "3x"))
    assert not missing("PASS: 3.000x", passed.out)
    undecided = in_process(*words, "20%", "--tolerance", "99.9%")
    assert undecided.code == 7
    said = "CANNOT TELL: 4 of 5 checks 1.200x slower, 1 cannot be judged (gather"
    assert not missing(said, undecided.out)


@pytest.mark.slow
def test_documents_have_every_check(in_process: Run, slow_gather: Path) -> None:
    words = ("guidelines", str(slow_gather), "--only", "emulation,gather")
    table = pd.read_csv(io.StringIO(in_process(*words, "--format", "csv").out))
    assert tuple(table.columns) == COLUMNS
    document = json.loads(in_process(*words, "--format", "json").out)
    assert [point["verdict"] for point in document["rows"]] == list(table["verdict"])
    assert (document["tolerance"], document["summary"][0][:8]) == (0.05, "5 checks")
    assert document["not_measured"] == ["gather <= gatherv", "gather <= reduce"]
    done = in_process(*words, "--output", "violations.md")
    assert "## Violated: " in (slow_gather.parent / "violations.md").read_text()
    assert done.out.startswith("5 checks")


def test_the_interface_has_the_same(slow_gather: Path) -> None:
    points = interface.guidelines(interface.load(slow_gather).rows, only=("emulation",))
    assert list(points["verdict"]).count("violated") == 1


def test_results_without_one_check_cannot_tell(in_process: Run) -> None:
    words = ("--where", "benchmark=bw", "--fail-above", "5%")
    done = in_process("guidelines", str(RESULTS / "families-mpich.csv"), *words)
    assert done.code == 7
    assert done.out.splitlines()[-1] == "CANNOT TELL: there is no check to judge"


def test_guideline_that_one_number_of_ranks_lacks_is_undecided(
    in_process: Run, tmp_path: Path
) -> None:
    whole = results(("allreduce", "reduce", "bcast"))
    part = results(("allreduce", "bcast"), {("allreduce", size): 9.0 for size in (64, 1024)})
    rows = pd.concat([whole, part.assign(ranks=8, run=part["run"] + "-8")])
    known = [name for name in Row.columns if name in rows]
    path = tmp_path / "rows.csv"
    rows[known].to_csv(path, index=False)
    options = ("--fail-above", "50%", "--only", "emulation", "--tolerance", "50%")
    done = in_process("guidelines", str(path), *options)
    assert done.code == 7
    assert "1 not measured (allreduce <= reduce + bcast (8 ranks))" in done.out

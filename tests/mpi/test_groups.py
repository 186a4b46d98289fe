"""`--split`: groups of real ranks at the same time."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import omb_py
from tests import ROOT
from tests.conftest import Run, rows_of, run, succeeded
from tests.helpers.battery import Battery, Line, line, passes
from tests.helpers.refusals import missing

QUICK = "--sizes 8,64 -i 5 -x 1"
CHECKED = f"{QUICK} -c"
LINES = [
    line(5, f"alltoall --split 0-1,2+4 {CHECKED}"),
    line(5, f"allreduce --split mod:2 {CHECKED} --binding native"),
    line(5, f"iallgather --split node {CHECKED}"),
    line(5, f"latency --split 0-1,3-4 {CHECKED}"),
    line(5, f"bcast_persistent --split 1-3 {QUICK} --sync clock"),
    line(5, "allreduce --split mod:2 --sizes 8,64 -x auto --max-time 0.01"),
]
GROUPS = [("0-1", "2+4"), ("0-4:2", "1+3"), ("0-4",), ("0-1", "3-4"), ("1-3",), ("0-4:2", "1+3")]


@pytest.mark.long
@pytest.mark.parametrize(("one", "groups"), [*zip(LINES, GROUPS, strict=True)], ids=str)
def test_groups_have_each_size(battery: Battery, one: Line, groups: tuple[str, ...]) -> None:
    record = battery(one)
    if "-c" in one.arguments:
        passes(record, rows=2 * len(groups))
    assert not record.error, record.error
    found = [(row["bytes"], row["group"]) for row in record.rows]
    assert found == [(size, group) for size in (8, 64) for group in groups]
    assert {row["split"] for row in record.rows} == {one.arguments[2]}
    assert len({row["run"] for row in record.rows}) == 1


@pytest.mark.long
@pytest.mark.every_library
def test_a_file_tells_groups_apart(mpiexec: Run, tmp_path: Path) -> None:
    words = ("--sizes", "8,64", "-i", "20", "-z50", "-o", str(tmp_path / "g.csv"))
    job = succeeded(mpiexec(5, "allreduce", "--split", "0-1,2-4", *words))
    assert " slowest" not in job.out
    assert not missing("# groups not compared: number of ranks", job.out)
    rows = omb_py.load(tmp_path / "g.csv").rows
    assert [*zip(rows.group, rows.ranks, strict=True)] == [("0-1", 2), ("2-4", 3)] * 2
    assert "# groups: 0-1 on " in (tmp_path / "g.csv").read_text()
    (latency,) = {row["percentiles"].partition("=")[0] for row in rows_of(tmp_path / "g.csv")}
    assert latency == "p50"


@pytest.mark.long
@pytest.mark.every_library
def test_a_group_that_is_done_keeps_the_network_busy(mpi: str, tmp_path: Path) -> None:
    program = ROOT / "tests" / "mpi" / "programs" / "counting_iterations.py"
    words = "allreduce --split 0-1,2-4 --sizes 4 -i 10 -x 0 --binding late".split()
    command = [mpi, "-n", "6", sys.executable, str(program), *words]
    job = succeeded(run(command, {"OMB_TEST_RANK": "2"}, tmp_path, timeout=60))
    made = dict(re.findall(r"rank (\d) made (\d+)", job.err))
    assert int(made["0"]) == int(made["1"]) > 10
    assert int(made["2"]) == int(made["3"]) == int(made["4"]) >= 10
    assert int(made["5"]) == 0
    assert job.rows[0][0] == "4"


@pytest.mark.long
@pytest.mark.every_library
def test_one_group_with_wrong_data_leaves_the_rows_of_all(mpiexec: Run, tmp_path: Path) -> None:
    words = ("--split", "0-1,2-4", "-c", "--binding", "corrupting", "--sizes", "8", "-i", "2")
    output = ("-o", str(tmp_path / "g.csv"))
    job = mpiexec(5, "allreduce", *words, *output, OMB_TEST_RANK="2")
    assert job.code == 1
    assert "in group 2-4: rank 2, offset 0" in job.sentences[0]
    found = {row["group"]: row["validation"] for row in rows_of(tmp_path / "g.csv")}
    assert found == {"0-1": "Pass", "2-4": "Fail"}

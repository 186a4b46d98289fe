"""One flipped byte on one rank makes any benchmark fail, and the message says where it is."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from omb_py.benchmarks import Benchmark
from tests.conftest import Run
from tests.helpers.battery import Battery, Line, each_line
from tests.helpers.refusals import assert_refused
from tests.mpi.lines import WITH_DATA, lines

ROOT_RECEIVES = ("gather", "gatherv", "reduce")
FETCHES = ("get", "rget", "fop", "cas")


def receiver(benchmark: Benchmark) -> str:
    """A rank in whose memory data arrives."""
    name = benchmark.name.removesuffix("_persistent")
    if benchmark.family.startswith("non-blocking"):
        name = name.removeprefix("i")
    at_first = name in ROOT_RECEIVES or name.split("_")[0] in FETCHES
    return "0" if at_first else "1"


def corrupted(offset: str) -> list[Line]:
    """Every benchmark with one byte flipped, so far from the start or the end of what arrived."""
    options = "-i 2 -u 1 -c --binding corrupting"
    found = []
    for benchmark in WITH_DATA:
        faulty = (("OMB_TEST_RANK", receiver(benchmark)), ("OMB_TEST_OFFSET", offset))
        (line,) = lines([benchmark], options, "--sizes 64,128")
        found.append(replace(line, environment=faulty))
    return found


@pytest.mark.product
@each_line(corrupted("0"), corrupted("-1"))
def test_one_flipped_byte(battery: Battery, line: Line) -> None:
    record, name = battery(line), line.arguments[0]
    environment = dict(line.environment)
    assert record.code == 1, record.error
    (row,) = record.measured
    assert row["validation"] == "Fail"
    assert f"wrong data in {name} with messages of " in record.error
    found = re.search(
        r"rank (\d+), offset (\d+) of (\d+) bytes.*expected (\S+) .*received (\S+) ", record.error
    )
    assert found is not None
    where, position, length, expected, received = found.groups()
    assert where == environment["OMB_TEST_RANK"]
    assert int(position) == int(environment["OMB_TEST_OFFSET"]) % int(length)
    assert expected != received


def test_a_job_that_finds_a_flipped_byte_fails(mpiexec: Run) -> None:
    words = "allreduce --sizes 64,128 -i 2 -c --binding corrupting"
    job = mpiexec(2, *words.split())
    assert len(job.rows) == 1
    assert "Fail" in job.rows[0]
    assert_refused(job, 1, "allreduce 64 bytes")


def test_every_fault_is_logged_on_request(mpiexec: Run, tmp_path: Path) -> None:
    words = "allreduce --sizes 8 -i 3 -clog:faults --binding corrupting"
    job = mpiexec(2, *words.split())
    assert job.code == 1
    assert [path.name for path in (tmp_path / "faults").iterdir()] == ["rank-1.log"]
    assert len((tmp_path / "faults" / "rank-1.log").read_text().splitlines()) == 3


def test_a_corrupted_answer_of_a_window_is_found(mpiexec: Run) -> None:
    words = "bw --sizes 64 -i 1 -c -u 0 --binding corrupting"
    job = mpiexec(2, *words.split(), OMB_TEST_RANK="0")
    assert job.code == 1
    assert "rank 0, offset 0 of 1 bytes" in job.sentences[0]

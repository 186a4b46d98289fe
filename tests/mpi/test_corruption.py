"""One flipped byte on one rank makes any benchmark fail, and the message says where it is."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from omb_py.benchmarks import all_benchmarks
from tests.conftest import Finished

WITH_DATA = [benchmark.name for benchmark in all_benchmarks() if benchmark.sized]
ROOT_RECEIVES = ("gather", "gatherv", "reduce")


@pytest.mark.parametrize("name", WITH_DATA)
@pytest.mark.parametrize("offset", ["0", "-1"])
def test_one_flipped_byte(mpiexec: Callable[..., Finished], name: str, offset: str) -> None:
    rank = "0" if name in ROOT_RECEIVES else "1"
    job = mpiexec(
        2,
        *(name, "--sizes", "64,128", "-i", "2", "-c", "-u", "1", "--binding", "corrupting"),
        OMB_TEST_RANK=rank,
        OMB_TEST_OFFSET=offset,
    )
    assert job.code == 1
    assert len(job.rows) == 1
    assert "Fail" in job.rows[0]
    (sentence,) = job.sentences
    assert f"{name} with messages of 64 bytes" in sentence
    found = re.search(
        r"rank (\d+), offset (\d+) of (\d+) bytes.*expected (\S+) .*received (\S+) ", sentence
    )
    assert found is not None
    where, position, length, expected, received = found.groups()
    assert where == rank
    assert int(position) == (0 if offset == "0" else int(length) - 1)
    assert expected != received


def test_every_fault_is_logged_on_request(mpiexec: Callable[..., Finished], tmp_path: Path) -> None:
    job = mpiexec(
        2,
        *("allreduce", "--sizes", "8", "-i", "3", "-clog:faults", "--binding", "corrupting"),
        OMB_TEST_RANK="1",
        OMB_TEST_OFFSET="0",
    )
    assert job.code == 1
    assert [path.name for path in (tmp_path / "faults").iterdir()] == ["rank-1.log"]
    assert len((tmp_path / "faults" / "rank-1.log").read_text().splitlines()) == 3


def test_a_corrupted_answer_of_a_window_is_found(mpiexec: Callable[..., Finished]) -> None:
    job = mpiexec(
        2,
        *("bw", "--sizes", "64", "-i", "1", "-c", "-u", "0", "--binding", "corrupting"),
        OMB_TEST_RANK="0",
        OMB_TEST_OFFSET="0",
    )
    assert job.code == 1
    assert "rank 0, offset 0 of 1 bytes" in job.sentences[0]

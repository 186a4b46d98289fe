"""Unequal blocks on real ranks: data, memory, bandwidth of the busiest rank, and refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Run, rows_of
from tests.helpers.refusals import assert_refused

NAMES = ("allgatherv", "alltoallv", "gatherv", "scatterv")
MATRIX = "0,4096,0,0\n100,200,300,400\n1,2,3,4\n0,0,0,8192\n"


@pytest.mark.every_library
@pytest.mark.parametrize("binding", ["native", "buffer"])
def test_unequal_blocks_arrive_whole(mpiexec: Run, tmp_path: Path, binding: str) -> None:
    forms = [f"{prefix}{name}{end}" for name in NAMES for prefix, end in (("", ""), ("i", ""))]
    forms += [f"{name}_persistent" for name in NAMES]
    results = tmp_path / "s.csv"
    words = ("--skew", "2.5:3", "-c", "-u", "1", "-i", "2", "--sizes", "0,1,7,4096")
    job = mpiexec(4, "run", *forms, *words, "--binding", binding, "-q", "-o", str(results))
    assert job.code == 0, job.err
    rows = rows_of(results)
    assert len(rows) == 4 * len(forms)
    assert {(row["validation"], row["skew"]) for row in rows} == {("Pass", "2.5:3")}


def test_matrix_sends_its_bytes_and_scales(mpiexec: Run, tmp_path: Path) -> None:
    (tmp_path / "router.csv").write_text(MATRIX)
    matrix, results = str(tmp_path / "router.csv"), tmp_path / "s.csv"
    for more in ((), ("--sizes", "64K")):
        job = mpiexec(
            *(4, "alltoallv", "--matrix", matrix, *more, "-c", "-i", "2", "-o", str(results))
        )
        assert job.code == 0, job.err
    found = [(row["bytes"], row["skew"], row["validation"]) for row in rows_of(results)]
    assert found == [("831", "router.csv", "Pass"), ("65536", "router.csv", "Pass")]


def test_bus_bandwidth_is_the_busiest_ranks(mpiexec: Run, tmp_path: Path) -> None:
    results = tmp_path / "s.csv"
    words = ("-i", "5", "--sizes", "64K", "-q", "-o", str(results))
    assert mpiexec(4, "alltoallv", "--skew", "4", *words).code == 0
    (row,) = rows_of(results)
    assert float(row["busbw_GBps"]) == pytest.approx(3 * float(row["algbw_GBps"]), rel=1e-4)


def test_flipped_byte_of_an_unequal_block_is_found(mpiexec: Run) -> None:
    job = mpiexec(
        *(4, "alltoallv", "--skew", "2", "--sizes", "64", "-i", "2", "-c"),
        *("--binding", "corrupting"),
        OMB_TEST_RANK="1",
        OMB_TEST_OFFSET="-1",
    )
    assert_refused(job, 1, "wrong data alltoallv rank 1")


def test_congestor_keeps_equal_blocks(mpiexec: Run) -> None:
    words = ("--congestor", "bcast:64", "--rounds", "1", "--sizes", "64", "-i", "5")
    assert mpiexec(4, "alltoallv", "--skew", "2", *words).code == 0

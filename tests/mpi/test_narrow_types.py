"""Elements of training, memory off a page, and sizes that are no powers of two, on real ranks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Run, rows_of, succeeded
from tests.helpers.refusals import assert_refused

pytestmark = pytest.mark.every_library

QUICK = ("--sizes", "64,4096", "-c", "-u", "1", "-i", "2", "-q")


PASSED = {
    "bfloat16": {"MPI_UINT16_T"},  # no library here has more
    "float8": {"MPI_UINT8_T"},
    "float16": {"MPI_FLOAT16_T", "MPI_REAL2"},
}
"""The types by which MPI libraries are passed these elements."""


@pytest.mark.parametrize("name", PASSED)
@pytest.mark.parametrize("binding", ["native", "buffer", "array", "pickle"])
def test_narrow_elements_arrive(mpiexec: Run, tmp_path: Path, name: str, binding: str) -> None:
    results = tmp_path / "r.csv"
    words = ("latency", "alltoall", "-T", name, "--binding", binding, "-o", str(results))
    succeeded(mpiexec(2, "run", *words, *QUICK))
    found = [(row["elements"], row["validation"]) for row in rows_of(results)]
    assert found == [(name, "Pass")] * 4
    assert {row["mpi_type"] for row in rows_of(results)} <= PASSED[name]


def test_own_algorithm_adds_bfloat16(mpiexec: Run, tmp_path: Path) -> None:
    results = tmp_path / "r.csv"
    words = ("-T", "bfloat16", "--p2p-algorithm", "ring", "-o", str(results))
    succeeded(mpiexec(3, "allreduce", *words, *QUICK))
    assert [row["validation"] for row in rows_of(results)] == ["Pass", "Pass"]


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("reduce", "choose another -T, or add --p2p-algorithm binomial"),
        ("reduce_scatter", "choose another -T, or add --p2p-algorithm pairwise"),
        ("scan", "choose another -T"),
        ("allreduce --binding persistent", "choose another -T"),
    ],
)
def test_bfloat16_refusal_names_an_algorithm_that_is_there(
    mpiexec: Run, line: str, instead: str
) -> None:
    job = mpiexec(2, *line.split(), "-T", "bfloat16", *QUICK)
    assert_refused(job, 5, "bfloat16")
    assert [one.endswith(instead) for one in job.sentences if "bfloat16" in one] == [True]


@pytest.mark.parametrize("buffer", ["numpy", "bytearray"])
@pytest.mark.parametrize("binding", ["native", "buffer"])
def test_messages_off_a_page_arrive(
    mpiexec: Run, tmp_path: Path, buffer: str, binding: str
) -> None:
    results = tmp_path / "r.csv"
    where = ("--offset", "3", "--buffer", buffer, "--binding", binding, "-o", str(results))
    succeeded(mpiexec(2, "run", "latency", "allreduce", "put_latency", *where, *QUICK))
    found = {(row["offset"], row["validation"]) for row in rows_of(results)}
    assert found == {("3", "Pass")}


def test_flipped_byte_off_a_page_is_found(mpiexec: Run) -> None:
    words = "latency --offset 1 --sizes 64 -i 2 -c --binding corrupting"
    job = mpiexec(2, *words.split())
    assert_refused(job, 1, "wrong data latency rank 1, offset 0")


def test_sizes_grow_by_another_factor_in_whole_elements(mpiexec: Run, tmp_path: Path) -> None:
    results = tmp_path / "r.csv"
    words = ("-m", "8:50:x1.5", "-i", "2", "-x", "0", "-q", "-o", str(results))
    assert mpiexec(2, "run", "latency", "allreduce", *words).code == 0
    sizes = {name: [] for name in ("latency", "allreduce")}  # type: dict[str, list[int]]
    for row in rows_of(results):
        sizes[row["benchmark"]].append(int(row["bytes"]))
    assert sizes == {"latency": [8, 12, 18, 27, 41], "allreduce": [8, 12, 20, 32, 48]}

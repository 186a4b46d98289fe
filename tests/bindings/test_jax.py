"""Binding jax on gloo: real processes, a real JAX where it is installed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.conftest import Run, rows_of, succeeded
from tests.helpers.refusals import missing

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(find_spec("jax") is None, reason="jax is not installed"),
]

QUICK = ("--binding", "jax", "-i", "3", "-x", "1", "-u", "1")


@pytest.mark.parametrize(
    ("line", "ranks"),
    [
        ("latency --sizes 1,64", 2),
        ("allreduce --sizes 8,64 -T mpi_float", 3),
        ("allreduce --sizes 64 -T float64 --buffer bytearray", 2),
        ("allgather --sizes 1,64", 3),
        ("alltoall --sizes 1,64", 3),
        ("reduce_scatter_block --sizes 48", 3),
    ],
)
def test_data_arrives(mpiexec: Run, line: str, ranks: int) -> None:
    done = succeeded(mpiexec(ranks, *line.split(), *QUICK, "-c"))
    assert "Pass" in done.out
    assert "Fail" not in done.out


def test_starting_a_program_is_told_apart_from_waiting_for_it(mpiexec: Run, tmp_path: Path) -> None:
    results = tmp_path / "rows.csv"
    succeeded(mpiexec(2, "allreduce", "--sizes", "64", *QUICK, "-o", str(results)))
    (row,) = rows_of(results)
    assert 0 < float(row["queued_mean_us"]) <= float(row["sample_mean_us"])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("bcast",), "binding jax has no bcast --binding buffer"),
        (("iallreduce",), "no non-blocking calls"),
        (("allreduce", "-l"), "into other memory"),
        (("allreduce", "--backend", "carrier"), "no backend carrier gloo"),
        (("allreduce", "--backend", "mpi"), "MPITRAMPOLINE_LIB --backend gloo"),
    ],
)
def test_what_jax_lacks_is_refused(mpiexec: Run, words: tuple[str, ...], sentence: str) -> None:
    job = mpiexec(2, *words, "--sizes", "64", *QUICK)
    assert job.code != 0
    assert "Traceback" not in job.err
    assert not missing(sentence, job.err)

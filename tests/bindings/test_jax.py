"""Bindings jax (on gloo) and mpi4jax: real processes, real packages where they are installed."""

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

FEW = ("-i", "3", "-x", "1", "-u", "1")
QUICK = ("--binding", "jax", *FEW)

with_mpi4jax = pytest.mark.skipif(find_spec("mpi4jax") is None, reason="mpi4jax is not installed")


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


@with_mpi4jax
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize(
    "line",
    [
        *("allreduce -T float64", "reduce -T mpi_int", "scan", "allgather", "alltoall"),
        *("bcast", "gather", "scatter", "sendrecv", "allreduce --buffer jax"),
    ],
)
def test_data_arrives_by_mpi4jax(mpiexec: Run, line: str, ranks: int) -> None:
    words = ("--binding", "mpi4jax", "--sizes", "8,4096", "-c", *FEW)
    done = succeeded(mpiexec(ranks, *line.split(), *words))
    assert [row[-1] for row in done.rows] == ["Pass"] * 2


@with_mpi4jax
def test_a_send_by_mpi4jax_has_ended_when_it_has_been_waited_for(mpiexec: Run) -> None:
    words = ("--binding", "mpi4jax", "--sizes", "1,4M", "-c", *FEW)
    done = succeeded(mpiexec(2, "latency", *words))
    assert [row[-1] for row in done.rows] == ["Pass"] * 2


@pytest.mark.parametrize("binding", ["jax", pytest.param("mpi4jax", marks=with_mpi4jax)])
def test_starting_a_program_is_told_apart_from_waiting_for_it(
    mpiexec: Run, tmp_path: Path, binding: str
) -> None:
    results = tmp_path / "rows.csv"
    words = ("--binding", binding, "--sizes", "64", *FEW)
    succeeded(mpiexec(2, "allreduce", *words, "-o", str(results)))
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
        (("allreduce", "--backend", "nccl"), "no nccl its platform cpu --backend gloo"),
        (("allreduce", "-T", "longdouble"), "binding jax cannot add longdouble"),
    ],
)
def test_what_jax_lacks_is_refused(mpiexec: Run, words: tuple[str, ...], sentence: str) -> None:
    job = mpiexec(2, *words, "--sizes", "64", *QUICK)
    assert job.code != 0
    assert "Traceback" not in job.err
    assert not missing(sentence, job.err)


@with_mpi4jax
@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("reduce_scatter_block", "binding mpi4jax has no reduce_scatter_block --binding buffer"),
        ("iallreduce", "no non-blocking calls"),
        ("allreduce -l", "no in-place form"),
        ("allreduce -T float16", "binding mpi4jax cannot add float16"),
    ],
)
def test_what_mpi4jax_lacks_is_refused(mpiexec: Run, line: str, sentence: str) -> None:
    job = mpiexec(2, *line.split(), "--binding", "mpi4jax", "--sizes", "64", *FEW)
    assert job.code != 0
    assert "Traceback" not in job.err
    assert not missing(sentence, job.err)

"""Applications over Dask: a real scheduler and real workers, without MPI."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Finished, rows_of


@pytest.mark.parametrize(
    "words",
    [
        ("transpose_sum", "--size", "103"),
        ("merge", "--rows-left", "400", "--rows-right", "300", "--scaling", "weak"),
    ],
    ids=lambda words: words[0],
)
def test_dask_finds_what_one_process_does(
    omb_py: Callable[..., Finished], tmp_path: Path, words: tuple[str, ...]
) -> None:
    done = omb_py("dask", *words, "--workers", "2", "--repeats", "2", "-o", "rows.csv")
    assert done.code == 0, done.err
    assert "Pass" in done.out
    (row,) = rows_of(tmp_path / "rows.csv")
    assert (row["application"], row["binding"], row["ranks"]) == (words[0], "dask-tcp", "2")
    assert float(row["time_low_s"]) <= float(row["time_s"]) <= float(row["time_high_s"])
    assert (row["check"], row["repeats"]) == ("Pass", "2")
    assert "# distributed: 20" in (tmp_path / "rows.csv").read_text()


def test_ranks_of_mpi_are_no_workers(in_process: Callable[..., Finished]) -> None:
    done = in_process("dask", "merge", PMI_SIZE="2", PMI_RANK="0")
    assert done.code == 2
    assert "leave out mpiexec, use --workers" in done.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("kmeans",), "kmeans has no form for Dask: choose from merge, transpose_sum"),
        (("merge", "--protocol", "mpi"), "there is no mpi: choose from tcp, ucxx"),
        (("merge", "-o", "rows.txt"), "name a file that ends in .csv or .json"),
        (("merge", "--protocol", "ucxx"), "pip install distributed-ucxx-cu12"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    in_process: Callable[..., Finished], words: tuple[str, ...], sentence: str
) -> None:
    done = in_process("dask", *words)
    assert done.code != 0
    assert sentence in done.err
    assert "Traceback" not in done.err

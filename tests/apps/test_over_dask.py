"""Applications over Dask: a real scheduler and real workers, without MPI."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from distributed import wait

from omb_py.apps import APPLICATIONS, OverDask
from omb_py.apps.runtime import over_dask
from omb_py.core.errors import OmbError
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


@pytest.mark.parametrize("name", ["transpose_sum", "merge"])
def test_dask_computes_again_what_it_still_has(name: str) -> None:
    application = APPLICATIONS.load(name)
    small = {"transpose_sum": {"size": 103}, "merge": {"rows_left": 400, "rows_right": 300}}
    problem = application.problem(**small[name])
    with over_dask.open_cluster("tcp", application, problem, 2) as cluster:
        kept, ran = [], []
        for _ in range(3):
            before = over_dask.executed(cluster.client)
            kept.append(cluster.client.persist(cluster.program.solve(*cluster.program.inputs)))
            wait(kept)
            ran.append(over_dask.executed(cluster.client) - before)
        assert min(ran) == max(ran) > 4


def test_turn_without_a_task_is_an_error() -> None:
    application = APPLICATIONS.load("transpose_sum")
    with over_dask.open_cluster("tcp", application, application.problem(size=103), 2) as cluster:
        kept = OverDask(cluster.program.inputs, lambda x: x, cluster.program.result)
        with pytest.raises(OmbError, match="ran no task"):
            over_dask.solve(replace(cluster, program=kept))


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

"""Simulations beside measurements: which rows can be simulated, and what errors are said."""

from __future__ import annotations

import pytest

from omb_py.analysis.table import of_rows
from omb_py.core.errors import UsageError
from omb_py.results.metadata import placed_ranks
from omb_py.simulation import checking
from omb_py.simulation.network import Checked
from tests.helpers.refusals import missing, refuses

RUNS = {"a": {"hosts": "node1:2 node2:1", "placement": "in blocks"}, "b": {}}


def row(**columns: object) -> dict[str, object]:
    usual = {"benchmark": "allreduce", "ranks": 3, "buffer": "numpy", "binding": "buffer"}
    return usual | {"bytes": 8, "latency_us": 5.0, "run": "a", "mpi_type": "MPI_INT"} | columns


def test_rows_with_algorithm_and_hosts_are_points() -> None:
    made = of_rows(
        [
            row(algorithm="ring"),
            row(algorithm="ring", latency_us=9.0),
            row(algorithm="ring", latency_us=7.0),
            row(benchmark="bcast", algorithm="pipelined_chain", segment=4096),
            row(library_algorithm="recursive_doubling", mpi="Open MPI 5.0.11"),
            row(),
            row(algorithm="ring", run="b"),
            row(algorithm="ring", binding="simulated"),
        ],
        RUNS,
    )
    found, reasons = checking.points(made.rows, RUNS)
    assert [(one.point.title, one.nodes, one.value) for one in found] == [
        ("allreduce own ring", (0, 0, 1), 7.0),
        ("bcast own pipelined_chain, segments of 4 KiB", (0, 0, 1), 5.0),
        ("allreduce recursive_doubling", (0, 0, 1), 5.0),
    ]
    assert ["algorithm" in reason for reason in reasons] == [True, False]
    assert ["host" in reason for reason in reasons] == [False, True]


@pytest.mark.parametrize("binding", ["nccl", "torch"])
def test_algorithm_of_a_row_by_nccl_is_that_of_nccl(binding: str) -> None:
    made = of_rows([row(library_algorithm="ring", mpi="MPICH 5.0.2", binding=binding)], RUNS)
    ((one,), reasons) = checking.points(made.rows, RUNS)
    assert (one.point.library, reasons) == ("NCCL", [])


@pytest.mark.parametrize(
    ("metadata", "nodes"),
    [
        ({"hosts": "a:2 b:2", "placement": "0,1,0,1"}, (0, 1, 0, 1)),
        ({"hosts": "a:2 b:2", "placement": "in blocks"}, (0, 0, 1, 1)),
        ({"hosts": "a:1 b:1 c:1 d:1"}, (0, 1, 2, 3)),
        ({"hosts": "a:4"}, (0, 0, 0, 0)),
        ({"hosts": "a:2 b:2"}, None),  # before omb-py wrote the placement
        ({"hosts": "a:2 b:2", "placement": "0,1,0,0"}, None),
        ({"hosts": "a:2", "placement": "in blocks"}, None),
    ],
)
def test_placed_ranks_are_those_of_the_metadata(
    metadata: dict[str, str], nodes: tuple[int, ...] | None
) -> None:
    if nodes is not None:
        assert placed_ranks(metadata, 4) == nodes
        return
    with refuses(UsageError, "which host each rank was on: measure again"):
        placed_ranks(metadata, 4)


CHECKED = (
    Checked("allreduce", "latency-bound", 2, 8, 30, 0.02, 0.12),
    Checked("bcast", "contended", 4, 4, 3, 0.05, 0.3),
)


@pytest.mark.parametrize(
    ("checked", "benchmark", "words"),
    [
        (CHECKED, "allreduce", "on 2 to 8 ranks: latency-bound 12% (median 2%). extrapolation"),
        (
            CHECKED,
            "gather",
            "(allreduce, bcast) on 2 to 8 ranks: latency-bound 12% (median 2%); "
            "contended 30% (median 5%). extrapolation",
        ),
        ((), "gather", "Nothing compared --check ratios, not times"),
    ],
)
def test_remark_names_the_check(checked: tuple[Checked, ...], benchmark: str, words: str) -> None:
    assert not missing(words, checking.remark(checked, benchmark))

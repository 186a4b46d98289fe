"""Who fails when, and when a start has written all its rows."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.core.errors import UsageError
from omb_py.core.mpi.recovery import HUNG
from omb_py.core.options import NODE
from omb_py.measure.recovery import victims_of_failures
from omb_py.sweeps.points import SweepPoint, has_all_parts
from tests.helpers.refusals import refuses

ONE_NODE = [0, 0, 0, 0]
TWO_NODES = [0, 0, 2, 2]


def test_the_last_rank_fails_and_then_the_one_before_it() -> None:
    for replaced in (False, True):
        assert victims_of_failures(None, ONE_NODE, 3, replaced) == [(3,), (2,), (1,)]


def test_named_ranks_are_those_of_the_communicator_of_then() -> None:
    assert victims_of_failures((1,), ONE_NODE, 3, replaced=False) == [(1,), (1,), (1,)]
    assert victims_of_failures((1, 2), ONE_NODE, 2, replaced=True) == [(1, 2), (1, 2)]


def test_a_node_fails_with_all_its_ranks() -> None:
    assert victims_of_failures(NODE, TWO_NODES, 1, replaced=False) == [(2, 3)]
    assert victims_of_failures(NODE, [0, 1, 0, 1, 4], 2, replaced=False) == [(4,), (1, 3)]


@pytest.mark.parametrize(
    ("choice", "nodes", "times", "words"),
    [
        (None, ONE_NODE, 4, "failure 4 of 4 rank other than 0 1 rank"),
        ((1, 4), ONE_NODE, 1, "failure 1 of 1 no rank 4 4 ranks"),
        ((2,), ONE_NODE, 3, "failure 3 of 3 no rank 2 2 ranks"),
        (NODE, ONE_NODE, 1, "failure 1 of 1 another node rank 0"),
        (NODE, TWO_NODES, 2, "failure 2 of 2 another node"),
    ],
)
def test_failing_absent_rank_refused(choice: Any, nodes: list[int], times: int, words: str) -> None:
    with refuses(UsageError, words):
        victims_of_failures(choice, nodes, times, replaced=False)


@given(st.integers(2, 50), st.integers(1, 60), st.booleans())
def test_rank_0_is_never_chosen(ranks: int, times: int, replaced: bool) -> None:
    try:
        found = victims_of_failures(None, [0] * ranks, times, replaced)
    except UsageError:
        assert times >= ranks
        return
    assert len(found) == times < ranks
    assert all(failed and 0 not in failed for failed in found)


def point(benchmark: str, *settings: Any) -> SweepPoint:
    return SweepPoint(benchmark, "numpy", "-", 1, 4, (), settings)


def rows(run: str, *parts: str) -> list[dict[str, str]]:
    return [{"run": run, "part": part} for part in parts]


def test_a_start_is_complete_when_one_run_has_all_parts() -> None:
    shrink, detect = point("ft_shrink"), point("ft_detect")
    parts = ("before", "first after", "stable after")
    assert has_all_parts(shrink, rows("a", *parts))
    assert not has_all_parts(shrink, rows("a", *parts[:2]) + rows("b", parts[2]))
    assert has_all_parts(shrink, rows("a", parts[0]) + rows("b", *parts))
    assert not has_all_parts(detect, rows("a", "recv", "barrier"))
    assert has_all_parts(detect, rows("a", "recv", "barrier", "allreduce"))


def test_starts_of_a_job_are_complete_with_their_own_parts() -> None:
    assert has_all_parts(point("init"), rows("a", "MPI_Init"))
    assert has_all_parts(point("hello"), rows("a", "total"))
    assert not has_all_parts(point("import_time"), rows("a", "numpy", "MPI_Init"))


@pytest.mark.slow
def test_rank_that_hangs_in_finalize_is_ended() -> None:
    program = (
        "import time; from omb_py.core.mpi import recovery; recovery.FINALIZE_SECONDS = 0.2; "
        "recovery.limit_finalize({rank}); time.sleep({seconds})"
    )
    for rank, seconds in ((0, 60), (1, 60), (0, 0)):
        code = program.format(rank=rank, seconds=seconds)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
        assert done.returncode == (-signal.SIGKILL if seconds else 0)
        said = done.stderr.decode()
        assert (HUNG in said) == (rank == 0 and seconds > 0)
        assert said.count("\n") == (HUNG in said)

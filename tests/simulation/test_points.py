"""Points of benchmarks: how they are simulated, and which cannot be."""

from __future__ import annotations

from functools import partial

import pytest

from omb_py.core.dataclass import replace
from omb_py.core.options import Options
from omb_py.simulation import points
from omb_py.simulation.engine import Run, SimulatedOutcome
from omb_py.simulation.network import ROUND_FIGURES
from omb_py.simulation.points import SimulatedPoint
from omb_py.simulation.workers import Simulation, run_all
from tests.helpers.refusals import assert_names

RANKS = 40
OPTIONS = Options(binding="simulated")


def whole(point: SimulatedPoint, nodes: tuple[int, ...], run: Run) -> SimulatedOutcome:
    """The simulation without any extension."""
    return run(point.iterations({}, nodes))


def simulated(*points: SimulatedPoint, full: bool = False) -> list[SimulatedOutcome]:
    nodes = tuple(range(points[0].ranks))
    tasks = [
        partial(whole, point, nodes) if full else partial(point.simulate, nodes) for point in points
    ]
    return run_all([Simulation(ROUND_FIGURES, nodes, one) for one in tasks], 1)


def by_library(name: str, word: str, size: int, library: str = "MPICH") -> SimulatedPoint:
    return SimulatedPoint(name, replace(OPTIONS, library_algorithm=word), library, RANKS, size)


@pytest.mark.usefixtures("simgrid")
class TestOnSimGrid:
    @pytest.mark.long
    def test_many_rounds_that_are_alike_are_extended_from_some(self) -> None:
        """As if all of them had been simulated."""
        alike = [
            by_library("allgather", "ring", 1000),
            by_library("allreduce", "ring", 4 << 20),
            by_library("allreduce", "ring", 40_000, "Open MPI"),
        ]
        assert all(max(point.repetitions()) > points.LONG for point in alike)
        for short, long in zip(simulated(*alike), simulated(*alike, full=True), strict=True):
            assert sum(short.ends) == pytest.approx(sum(long.ends), rel=0.02)
            assert short.messages == pytest.approx(long.messages, rel=0.02)

    def test_own_algorithms_take_as_long_as_a_library_s(self) -> None:
        own = SimulatedPoint(
            "allreduce", replace(OPTIONS, algorithm="recursive_doubling"), "", RANKS, 4096
        )
        (first, second) = simulated(own, by_library("allreduce", "recursive_doubling", 4096))
        assert sum(first.ends) == pytest.approx(sum(second.ends), rel=0.02)

    def test_a_common_start_leaves_out_how_ranks_leave_a_barrier(self) -> None:
        point = by_library("bcast", "binomial", 8)
        at_once = replace(point.options, sync="clock")
        after_barrier, together = simulated(
            point, SimulatedPoint("bcast", at_once, "MPICH", RANKS, 8)
        )
        assert max(together.ends) == pytest.approx(6 * (1.5 + 2 * 0.2) * 1e-6, rel=0.3)
        assert after_barrier.messages == together.messages == RANKS - 1

    def test_rows_have_the_benchmarks_definitions(self) -> None:
        """Half a round trip: 2 overheads, the latency and the bytes; a window's bandwidth."""
        latency = SimulatedPoint("latency", OPTIONS, "MPICH", 2, 1000)
        bandwidth = SimulatedPoint("bw", OPTIONS, "MPICH", 2, 1 << 20)
        found = [
            point.row(outcome, "run")
            for point, outcome in zip(
                (latency, bandwidth), simulated(latency, bandwidth), strict=True
            )
        ]
        assert found[0].latency_us == pytest.approx(0.2 + 1.5 + 1000 / 12_500 + 0.2)
        assert found[1].bandwidth_MBps == pytest.approx(12_500, rel=0.01)
        assert [(row.benchmark, row.binding, row.ranks) for row in found] == [
            ("latency", "simulated", 2),
            ("bw", "simulated", 2),
        ]


@pytest.mark.parametrize(
    ("point", "sentence"),
    [
        (SimulatedPoint("latency", OPTIONS, "MPICH", 4, 8), "needs exactly 2 ranks"),
        (
            SimulatedPoint("allreduce", OPTIONS, "MPICH", 4, 8),
            "MPICH allreduce 4 ranks --coll-algorithm",
        ),
        (SimulatedPoint("put_latency", OPTIONS, "MPICH", 2, 8), "is not simulated"),
        (SimulatedPoint("init", OPTIONS, "MPICH", 2, 0), "sends no messages simulated"),
        (
            SimulatedPoint("iallreduce", replace(OPTIONS, library_algorithm="ring"), "MPICH", 4, 8),
            "MPI_Iallreduce is not simulated",
        ),
        (
            SimulatedPoint(
                "allgather", replace(OPTIONS, library_algorithm="ring"), "MPICH", 4, 1 << 29
            ),
            "more than the memory limit",
        ),
        (by_library("bcast", "scatter_allgather", 8), "nothing 40 ranks"),
        (by_library("allreduce", "ring", 8, "Open MPI"), "fewer elements ranks"),
    ],
)
def test_what_cannot_be_simulated_says_why(point: SimulatedPoint, sentence: str) -> None:
    assert_names(point.refusal or "", sentence)

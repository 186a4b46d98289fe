"""Topologies: what their texts mean, and what a lone message takes on SimGrid's."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.core.errors import UsageError
from omb_py.simulation import topologies
from omb_py.simulation.engine import Run, SimulatedOutcome
from omb_py.simulation.network import Network, Path
from omb_py.simulation.program import Operation, Program, Receive, Send
from omb_py.simulation.workers import Simulation, run_all
from tests.helpers.properties import examples
from tests.helpers.refusals import refuses


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("star", topologies.ANY),
        ("fat-tree:4", 4),
        ("fat-tree:64,64", 4096),
        ("fat-tree:4,4:1,2:1,2", 16),
        ("dragonfly:3:2:4:2", 48),
        ("dragonfly:3,2:2,1:4,3:2", 48),
        ("torus:4x4x2", 32),
    ],
)
def test_how_many_nodes_there_are(text: str, nodes: int) -> None:
    assert topologies.parse(text).nodes == nodes


def test_down_alone_is_a_tree_of_full_bisection() -> None:
    assert topologies.parse("fat-tree:8,4,2").numbers == ((8, 4, 2), (1, 8, 4), (1, 1, 1))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mesh:4", "mesh:4 no file no topology: star, fat-tree:DOWN"),
        ("star:4", "star:4 no numbers"),
        ("fat-tree:4,x", "fat-tree:4,x form"),
        ("fat-tree:4,4:1", "fat-tree:4,4:1 number each level"),
        ("fat-tree:0", "fat-tree:0 number from 1"),
        ("dragonfly:9:4:8:4", "dragonfly:9:4:8:4 groups chassis routers"),
        ("dragonfly:2:2:2", "dragonfly:2:2:2 four parts"),
        ("torus:4x1", "torus:4x1 side 2 nodes"),
        ("torus", "torus form"),
        ("torus:2000x2000", "4000000 nodes"),
    ],
)
def test_impossible_topology_refused(text: str, words: str) -> None:
    with refuses(UsageError, words):
        topologies.parse(text)


def test_ranks_are_packed_or_scattered() -> None:
    assert topologies.placed("packed", 6, 2, 9) == (0, 0, 1, 1, 2, 2)
    assert topologies.placed("scattered", 6, 2, 9) == (0, 1, 2, 0, 1, 2)


@examples(100)
@given(
    st.sampled_from(["packed", "scattered"]),
    st.integers(1, 200),
    st.integers(1, 8),
    st.integers(0, 50),
)
def test_no_node_has_too_many_ranks(word: str, ranks: int, per_node: int, free: int) -> None:
    used = -(-ranks // per_node)
    found = topologies.placed(word, ranks, per_node, used + free)
    assert len(found) == ranks
    assert set(found) == set(range(used))
    assert max(map(found.count, found)) <= per_node


@pytest.mark.parametrize(
    ("word", "ranks", "words"),
    [("packt", 4, "packt packed, scattered"), ("packed", 9, "9 ranks, 2 5 nodes")],
)
def test_impossible_placement_refused(word: str, ranks: int, words: str) -> None:
    with refuses(UsageError, words):
        topologies.placed(word, ranks, 2, 4)


def lone(source: int, target: int, ranks: int, run: Run) -> SimulatedOutcome:
    """A message of 10,000 bytes."""

    def operations(rank: int) -> Iterator[Operation]:
        if rank == source:
            yield Send(target, 10_000)
        elif rank == target:
            yield Receive(source)

    return run(Program(ranks, operations))


def times(text: str, nodes: int, *targets: int) -> list[float]:
    """What it takes from node 0 to others, in us: 100 us for its bytes, and its latency."""
    network = Network(text, Path(10.0, 100.0, 1e9), Path(1.0, 1000.0))
    tasks = [partial(lone, 0, target, nodes) for target in targets]
    outcomes = run_all([Simulation(network, tuple(range(nodes)), one) for one in tasks], 1)
    return [max(outcome.ends) * 1e6 for outcome in outcomes]


@pytest.mark.usefixtures("simgrid")
class TestOnSimGrid:
    def test_neighbours_have_the_latency_and_others_more(self) -> None:
        """Of a fat tree or a dragonfly a link has half of it; of a torus, all."""
        assert times("star", 8, 1, 7) == pytest.approx([110, 110])
        assert times("fat-tree:4,4", 16, 1, 4, 15) == pytest.approx([110, 120, 120])
        assert times("dragonfly:2:2:2:2", 16, 1, 2) == pytest.approx([110, 115])
        assert times("torus:4x4", 16, 1, 5) == pytest.approx([110, 120])

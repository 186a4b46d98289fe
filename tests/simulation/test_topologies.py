"""Topologies: what their texts mean, and what a lone message takes on SimGrid's."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path as FilePath
from typing import Any

import pytest

from omb_py.core.errors import OmbError, UsageError
from omb_py.simulation import network, topologies
from omb_py.simulation.engine import Run, SimulatedOutcome
from omb_py.simulation.network import Network, Path
from omb_py.simulation.program import Operation, Program, Receive, Send
from omb_py.simulation.workers import SimulationJob, run_jobs
from tests.helpers.refusals import missing, refuses


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
        ("platform:nothing.xml", "nothing.xml no file"),
        ("platform:empty.xml", "empty.xml cluster hosts 5-1"),
    ],
)
def test_impossible_topology_refused(
    text: str, words: str, tmp_path: FilePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cluster = '<platform version="4.1"><cluster id="c" radical="5-1"/></platform>'
    (tmp_path / "empty.xml").write_text(cluster)
    with refuses(UsageError, words):
        topologies.parse(text)


def lone(source: int, target: int, ranks: int, run: Run) -> SimulatedOutcome:
    """A message of 10,000 bytes."""

    def operations(rank: int) -> Iterator[Operation]:
        if rank == source:
            yield Send(target, 10_000)
        elif rank == target:
            yield Receive(source)

    return run(Program(ranks, operations))


def times(text: str, nodes: int, *targets: int, **changes: Any) -> list[float]:
    """What it takes from node 0 to others, in us: 100 us for its bytes, and its latency."""
    network = Network(text, Path(10.0, 100.0, 1e9), Path(1.0, 1000.0), **changes)
    tasks = tuple(partial(lone, 0, target, nodes) for target in targets)
    found: dict[int, float] = {}

    def done(job: int, place: int, outcome: SimulatedOutcome) -> None:
        found[place] = max(outcome.ends) * 1e6

    run_jobs([SimulationJob(0, network, tuple(range(nodes)), tasks)], 1, done)
    return [found[place] for place in range(len(targets))]


@pytest.mark.usefixtures("simgrid")
class TestOnSimGrid:
    def test_neighbours_have_the_latency_and_others_more(self) -> None:
        """Of a fat tree or a dragonfly a link has half of it; of a torus, all."""
        assert times("star", 8, 1, 7) == pytest.approx([110, 110])
        assert times("fat-tree:4,4", 16, 1, 4, 15) == pytest.approx([110, 120, 120])
        assert times("dragonfly:2:2:2:2", 16, 1, 2) == pytest.approx([110, 115])
        assert times("torus:4x4", 16, 1, 5) == pytest.approx([110, 120])

    def test_a_slow_node_is_slow_in_both_directions(self) -> None:
        """Its link takes ten times as long for a byte, and has ten times the latency."""
        slow = ((1, 10.0),)
        assert times("star", 3, 1, 2, slow=slow) == pytest.approx([5 + 50 + 1000, 110])
        assert times("fat-tree:2,2", 4, 1, 2, slow=slow) == pytest.approx([5 + 50 + 1000, 120])

    def test_platform_without_routes_shows_simgrids_error(self, tmp_path: FilePath) -> None:
        path = tmp_path / "platform.xml"
        path.write_text(
            """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="z" routing="Full"><host id="a" speed="1Gf"/><host id="b" speed="1Gf"/></zone>
</platform>
"""
        )
        with pytest.raises(OmbError, match=r"ended by signal (6|11)") as caught:
            times(f"platform:{path}", 2, 1)
        assert "memory" not in str(caught.value)

    def test_a_platform_file_has_hosts_in_natural_order(self, tmp_path: FilePath) -> None:
        path = tmp_path / "platform.xml"
        path.write_text(
            """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="n" suffix="" radical="0-11" speed="1Gf" bw="100MBps" lat="5us"/>
</platform>
"""
        )
        text = f"platform:{path}"
        assert topologies.parse(text).nodes == 12
        assert times(text, 12, 1, 11) == pytest.approx([110, 110])
        found = network.find(str(path))
        assert found.topology == text
        assert not missing("costs: links of platform.xml; round figures", found.description)

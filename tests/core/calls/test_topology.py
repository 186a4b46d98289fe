"""Who is whose neighbour: native OMB's -N."""

from __future__ import annotations

from math import prod
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from omb_py.core.calls.topology import Topology, coordinates, grid, number_of, parse_topology
from omb_py.core.errors import UsageError
from tests.helpers.refusals import refuses

RANKS = st.integers(1, 200)
DIMENSIONS = st.integers(1, 4)


def fits(ranks: int, dimensions: int, radius: int) -> bool:
    return min(grid(ranks, dimensions)) >= 2 * radius + 1


@given(RANKS, DIMENSIONS)
def test_grid_holds_all_ranks_the_longest_side_first(ranks: int, dimensions: int) -> None:
    lengths = grid(ranks, dimensions)
    assert len(lengths) == dimensions
    assert prod(lengths) == ranks
    assert list(lengths) == sorted(lengths, reverse=True)


@pytest.mark.parametrize(
    ("ranks", "dimensions", "lengths"),
    [(12, 2, (4, 3)), (8, 3, (2, 2, 2)), (9, 2, (3, 3)), (7, 2, (7, 1)), (24, 3, (4, 3, 2))],
)
def test_lengths_of_a_grid_similar(ranks: int, dimensions: int, lengths: tuple[int, ...]) -> None:
    assert grid(ranks, dimensions) == lengths


@given(RANKS, DIMENSIONS, st.data())
def test_each_rank_has_a_place_of_its_own(ranks: int, dimensions: int, data: st.DataObject) -> None:
    rank = data.draw(st.integers(0, ranks - 1))
    lengths = grid(ranks, dimensions)
    place = coordinates(rank, lengths)
    assert all(0 <= here < length for here, length in zip(place, lengths, strict=True))
    assert number_of(list(place), lengths) == rank
    around = [here + length for here, length in zip(place, lengths, strict=True)]
    assert number_of(around, lengths) == rank, "a grid is periodic"


@given(RANKS, DIMENSIONS, st.integers(1, 3), st.data())
def test_neighbours_agree(ranks: int, dimensions: int, radius: int, data: st.DataObject) -> None:
    assume(fits(ranks, dimensions, radius))
    topology = Topology("", dimensions, radius)
    rank = data.draw(st.integers(0, ranks - 1))
    sources, destinations = topology.neighbors(rank, ranks)
    assert len(sources) == len(destinations) == (2 * radius + 1) ** dimensions - 1
    assert set(sources) == set(destinations)
    assert len(set(sources)) == len(sources)
    assert rank not in sources
    for source in set(sources):
        assert rank in topology.neighbors(source, ranks)[1]
        assert rank in topology.neighbors(source, ranks)[0]


def test_a_ring_has_a_rank_on_either_side() -> None:
    assert parse_topology("cart:1:1").neighbors(0, 4) == ((1, 3), (3, 1))


@given(st.sets(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1))
def test_what_one_rank_of_a_graph_sends_another_receives(edges: set[tuple[int, int]]) -> None:
    topology = Topology("", edges=tuple(edges))
    for rank in range(10):
        sources, destinations = topology.neighbors(rank, 10)
        assert set(sources) == {source for source, target in edges if target == rank}
        assert set(destinations) == {target for source, target in edges if source == rank}


@pytest.mark.parametrize(
    ("topology", "ranks", "words"),
    [
        (parse_topology("cart:2:1"), 8, "grid 4 x 2 start 9 ranks"),
        (Topology("graph:x", edges=((0, 7),)), 4, "rank 7; last of 4 ranks 3"),
    ],
)
def test_topology_on_too_few_ranks_refused(topology: Topology, ranks: int, words: str) -> None:
    with refuses(UsageError, words):
        topology.neighbors(0, ranks)


def test_a_file_of_edges(tmp_path: Path) -> None:
    path = tmp_path / "graph.txt"
    path.write_text("# a comment\n0,1\n\n1, 2 # another\n0,1\n2,0")
    topology = parse_topology(f"graph:{path}")
    assert topology.edges == ((0, 1), (1, 2), (2, 0))
    assert topology.text == f"graph:{path}"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("cart", "cart:DIMENSIONS:RADIUS"),
        ("cart:1", "cart:DIMENSIONS:RADIUS"),
        ("cart:x:1", "two whole numbers"),
        ("cart:0:1", "1 to 8 dimensions"),
        ("cart:9:1", "1 to 8 dimensions"),
        ("cart:1:0", "radius of at least 1"),
        ("ring", "use cart"),
        ("graph:", "use cart"),
        ("graph:/no/such/file", "cannot read"),
        ("graph:FILE|", "has no line"),
        ("graph:FILE|0;1", "line 1"),
    ],
)
def test_impossible_topology_refused(tmp_path: Path, text: str, word: str) -> None:
    name, _, content = text.partition("|")  # of FILE
    (tmp_path / "graph.txt").write_text(content)
    with pytest.raises(UsageError, match=word):
        parse_topology(name.replace("FILE", str(tmp_path / "graph.txt")))

"""Which node each rank is on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.core.errors import UsageError
from omb_py.simulation.placement import PLACEMENTS, nodes_of
from omb_py.simulation.topologies import ANY
from tests.helpers.properties import examples
from tests.helpers.refusals import refuses


def test_words() -> None:
    assert nodes_of("packed", 6, 2, 9) == (0, 0, 1, 1, 2, 2)
    assert nodes_of("scattered", 6, 2, 9) == (0, 1, 2, 0, 1, 2)
    assert nodes_of("spread", 6, 2, 9) == (0, 0, 3, 3, 6, 6)
    assert nodes_of("7-8:2", 6, 2, 9) == (7, 7, 8, 8, 2, 2)
    assert nodes_of("random:3", 6, 2, 9) == nodes_of("random:3", 6, 2, 9)
    assert nodes_of("random:3", 60, 2, 99) != nodes_of("random:4", 60, 2, 99)


def test_star_gives_each_word_the_first_nodes() -> None:
    assert nodes_of("spread", 6, 2, ANY) == (0, 0, 1, 1, 2, 2)
    assert set(nodes_of("random", 6, 2, ANY)) == {0, 1, 2}


@examples(100)
@given(st.sampled_from([*PLACEMENTS]), st.integers(1, 200), st.integers(1, 8), st.integers(0, 50))
def test_no_node_has_too_many_ranks(word: str, ranks: int, per_node: int, free: int) -> None:
    used = -(-ranks // per_node)
    found = nodes_of(word, ranks, per_node, used + free)
    assert len(found) == ranks
    assert len(set(found)) == used
    assert max(map(found.count, found)) <= per_node
    assert 0 <= min(found) <= max(found) < used + free


@pytest.mark.parametrize(
    ("word", "ranks", "words"),
    [
        ("packt", 4, "packt packed, scattered, spread, random random:SEED"),
        ("0:0", 4, "once each"),
        ("0-99", 4, "nodes 0 to 3"),
        ("0-99999999999", 4, "once each"),
        ("3", 4, "2 nodes more"),
        ("random:x", 4, "'x' seed"),
        ("packed", 9, "9 ranks, 2 5 nodes"),
    ],
)
def test_impossible_placement_refused(word: str, ranks: int, words: str) -> None:
    with refuses(UsageError, words):
        nodes_of(word, ranks, 2, 4)

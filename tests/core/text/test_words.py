"""Words in which people are told of things."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.core.text.words import nearest

NAMES = ("allreduce", "allgather", "reduce", "cores_per_node", "gpus_per_node", "nodes", "walltime")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("cores", ["cores_per_node"]),
        ("GPUs", ["gpus_per_node"]),
        ("node", ["nodes"]),
        ("node-count", ["nodes"]),
        ("wall-time", ["walltime"]),
        ("max_walltime", ["walltime"]),
        ("alreduce", ["allreduce"]),
        ("allr", ["allreduce"]),
        ("zzz", []),
        ("n", []),
        ("", []),
    ],
)
def test_name_is_found_by_prefix_misspelling_or_word(word: str, meant: list[str]) -> None:
    assert nearest(word, NAMES) == meant


def test_the_shortest_name_with_that_beginning_comes_first() -> None:
    assert nearest("all", NAMES, most=2) == ["allreduce", "allgather"]
    assert nearest("module", ["module_paths", "modules"]) == ["modules"]


@given(st.text(), st.lists(st.text()), st.integers(1, 3))
def test_only_names_that_there_are_come_back(word: str, names: list[str], most: int) -> None:
    found = nearest(word, names, most)
    assert len(found) <= most
    assert set(found) <= set(names)

"""Sides of messages find each other, as a search through all of them would."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from omb_py.tracing.records.messages import KEY, SIDE, partners, unique

Keys = list[tuple[int, ...]]

keys = st.tuples(*(st.integers(0, 1) for _ in KEY))


def sides(found: Keys) -> np.ndarray:
    return np.array([(*key, 0, event) for event, key in enumerate(found)], SIDE)


@given(st.lists(keys, max_size=20), st.lists(keys, max_size=20))
def test_partners_are_the_first_sides_of_the_same_message(ours: Keys, others: Keys) -> None:
    expected = [others.index(key) if key in others else -1 for key in ours]
    assert partners(sides(ours), sides(others)).tolist() == expected


@given(st.lists(keys, max_size=20))
def test_of_sides_of_the_same_message_the_first_is_kept(found: Keys) -> None:
    kept = unique(sides(found))
    assert [tuple(side)[: len(KEY)] for side in kept.tolist()] == sorted(set(found))
    assert all(found.index(tuple(side)[: len(KEY)]) == side[-1] for side in kept.tolist())

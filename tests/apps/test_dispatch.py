"""Tokens to experts: the routing table, the data that proves where tokens went, and refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.apps import share
from omb_py.apps.dispatch import BYTES, Routing, compare, elements, routed
from omb_py.core.errors import UsageError
from tests.helpers.refusals import refuses

SMALL = Routing(tokens=40, hidden=4, experts=12, top_k=3)


@given(st.integers(1, 12))
def test_every_token_goes_to_its_experts_whatever_the_number_of_ranks(ranks: int) -> None:
    whole = sorted(routed(SMALL, 1, 0)[0].tolist())
    parts = [routed(SMALL, ranks, rank) for rank in range(ranks)]
    assert sorted(np.concatenate([tokens for tokens, _ in parts]).tolist()) == whole
    for rank, (tokens, to) in enumerate(parts):
        begin, end = share(SMALL.tokens, ranks, rank)
        assert np.bincount(tokens - begin, minlength=end - begin).tolist() == [3] * (end - begin)
        assert (np.diff(to) >= 0).all()
        assert 0 <= to.min() <= to.max() < ranks


def test_popularity_makes_an_expert_popular() -> None:
    routing = Routing(tokens=2000, experts=8, top_k=1, popularity=4.0)
    counts = np.bincount(routed(routing, 8, 0)[1], minlength=8)
    ranks = [np.bincount(routed(routing, 8, rank)[1], minlength=8) for rank in range(8)]
    everywhere = np.sum(ranks, axis=0)
    assert counts.max() > 0
    assert everywhere.max() == pytest.approx(4 * everywhere.mean(), rel=0.1)


@pytest.mark.parametrize("dtype", BYTES)
def test_rows_of_tokens_differ(dtype: str) -> None:
    rows = elements(Routing(hidden=6, dtype=dtype), np.arange(50))
    assert rows.itemsize == BYTES[dtype]
    assert len({row.tobytes() for row in rows}) == 50


@pytest.mark.parametrize(("wrong", "passed"), [([0, 0], True), ([0, 1], False), ([1, 0], False)])
def test_any_wrong_element_fails(wrong: list[int], passed: bool) -> None:
    found = [np.zeros(2, "int64"), np.array(wrong)]
    assert compare(SMALL, found, None).passed is passed


@pytest.mark.parametrize(
    ("values", "words"),
    [({"top_k": 65}, "--top-k 65 --experts"), ({"popularity": 65.0}, "--popularity 65 64")],
)
def test_routing_that_cannot_be_is_refused(values: dict[str, float], words: str) -> None:
    with refuses(UsageError, words):
        Routing(**values)  # type: ignore[arg-type]

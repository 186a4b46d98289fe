"""Plans of buckets: every gradient once and in order, within the limits of the frameworks."""

from __future__ import annotations

from itertools import chain, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.apps.training import Training
from omb_py.apps.training.exchange import Plan, ddp, horovod, plan_of

SIZES = st.lists(st.integers(1, 100), max_size=60)
LIMIT = st.integers(1, 250)


def together(plan: Plan, sizes: list[int]) -> list[int]:
    """The bytes of each bucket."""
    return [sum(sizes[begin:end]) for begin, end in plan]


@given(SIZES, LIMIT, st.integers(1, 250))
def test_every_gradient_travels_once_and_in_order(sizes: list[int], limit: int, first: int) -> None:
    for plan in (horovod(sizes, limit), ddp(sizes, limit, first)):
        places = chain.from_iterable(range(begin, end) for begin, end in plan)
        assert list(places) == list(range(len(sizes)))
        assert all(begin < end for begin, end in plan)


@given(SIZES, LIMIT)
def test_horovod_keeps_the_fusion_threshold(sizes: list[int], limit: int) -> None:
    plan = horovod(sizes, limit)
    for (begin, end), held in zip(plan, together(plan, sizes), strict=True):
        assert held <= limit or end - begin == 1


@given(SIZES, LIMIT)
def test_horovod_leaves_no_gradient_for_later_that_fits(sizes: list[int], limit: int) -> None:
    plan = horovod(sizes, limit)
    for bucket, (begin, _) in pairwise(plan):
        assert sum(sizes[slice(*bucket)]) + sizes[begin] > limit


@given(SIZES, LIMIT, st.integers(1, 250))
def test_ddp_closes_a_bucket_at_its_limit(sizes: list[int], limit: int, first: int) -> None:
    plan = ddp(sizes, limit, first)
    limits = [first] + [limit] * len(plan)
    held = together(plan, sizes)
    assert all(size >= minimum for size, minimum in zip(held[:-1], limits, strict=False))
    for (begin, end), minimum in zip(plan, limits, strict=False):
        assert sum(sizes[begin : end - 1]) < minimum


@pytest.mark.parametrize("buckets", ["horovod", "ddp"])
def test_without_fusion_each_gradient_travels_by_itself(buckets: str) -> None:
    plan = plan_of(Training(fusion=0, buckets=buckets), [4, 4, 4])
    assert plan == [(0, 1), (1, 2), (2, 3)]


def test_horovod_and_ddp_differ_beyond_the_limit() -> None:
    assert horovod([6, 6, 6], 10) == [(0, 1), (1, 2), (2, 3)]
    assert ddp([6, 6, 6], 10, 1) == [(0, 1), (1, 3)]

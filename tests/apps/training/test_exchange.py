"""What an exchange is asked for: options that exclude each other, and room to pack gradients."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.apps import train
from omb_py.apps.training import Training
from omb_py.apps.training.exchange import Plan, check, ddp, horovod, plan_of, room
from omb_py.core.errors import UsageError
from tests.helpers.refusals import refuses

SIZES = st.lists(st.integers(1, 100), min_size=1, max_size=40)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"overlap": True, "allreduce": "ring"}, "leave out --overlap"),
        ({"buckets": "ddp", "fusion": 0}, "--buckets"),
    ],
)
def test_options_that_exclude_each_other(options: dict[str, Any], words: str) -> None:
    with refuses(UsageError, words):
        check(Training(**options))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ranks_per_node": 2}, "--ranks-per-node --allreduce hierarchical"),
        ({"micro_batches": 2}, "--micro-batches --strategy"),
        ({"strategy": "model", "overlap": True}, "--overlap --strategy data hybrid"),
        ({"strategy": "model", "allreduce": "ring"}, "--allreduce --strategy data"),
        ({"strategy": "model", "buckets": "ddp"}, "--buckets --strategy data"),
        ({"strategy": "model", "fusion": 0}, "--fusion --strategy data"),
        ({"strategy": "model", "stages": 4}, "--stages --strategy hybrid"),
        ({"strategy": "model", "negotiate": True}, "--negotiate --strategy data"),
        ({"model": "vgg16", "layers": 20}, "--layers --model resnet110"),
    ],
)
def test_option_without_its_other_refused(options: dict[str, Any], words: str) -> None:
    with refuses(UsageError, words):
        train.check(Training(**options))


def test_options_as_they_are_mean_something() -> None:
    train.check(Training())


@given(SIZES, st.integers(0, 300))
def test_every_planned_bucket_has_room(sizes: list[int], fusion: int) -> None:
    training = Training(fusion=fusion)
    plan = plan_of(training, sizes)
    for begin, end in plan:
        if end - begin > 1:
            assert sum(sizes[begin:end]) <= room(sizes, plan, training)


def test_single_gradients_are_not_packed() -> None:
    for training in (Training(fusion=0), Training(fusion=0, overlap=True), Training(fusion=4)):
        assert room([4, 8], plan_of(training, [4, 8]), training) == 0
        half = replace(training, dtype="float16")
        assert room([4, 8], plan_of(half, [4, 8]), half) == (12 if half.overlap else 8)


def test_concurrent_gradients_have_their_own_places() -> None:
    training = Training(fusion=12, overlap=True)
    assert room([4, 8, 16], plan_of(training, [4, 8, 16]), training) == 28


BUCKET_SIZES = st.lists(st.integers(1, 100), max_size=60)
LIMIT = st.integers(1, 250)


def together(plan: Plan, sizes: list[int]) -> list[int]:
    """The bytes of each bucket."""
    return [sum(sizes[begin:end]) for begin, end in plan]


@given(BUCKET_SIZES, LIMIT, st.integers(1, 250))
def test_every_gradient_travels_once_and_in_order(sizes: list[int], limit: int, first: int) -> None:
    for plan in (horovod(sizes, limit), ddp(sizes, limit, first)):
        places = chain.from_iterable(range(begin, end) for begin, end in plan)
        assert list(places) == list(range(len(sizes)))
        assert all(begin < end for begin, end in plan)


@given(BUCKET_SIZES, LIMIT)
def test_horovod_keeps_the_fusion_threshold(sizes: list[int], limit: int) -> None:
    plan = horovod(sizes, limit)
    for (begin, end), held in zip(plan, together(plan, sizes), strict=True):
        assert held <= limit or end - begin == 1


@given(BUCKET_SIZES, LIMIT)
def test_horovod_leaves_no_gradient_for_later_that_fits(sizes: list[int], limit: int) -> None:
    plan = horovod(sizes, limit)
    for bucket, (begin, _) in pairwise(plan):
        assert sum(sizes[slice(*bucket)]) + sizes[begin] > limit


@given(BUCKET_SIZES, LIMIT, st.integers(1, 250))
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

"""What an exchange is asked for: options that exclude each other, and room to pack gradients."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.apps import train
from omb_py.apps.training import Training
from omb_py.apps.training.exchange import check, plan_of, room
from omb_py.core.errors import UsageError
from tests.helpers.refusals import refuses

SIZES = st.lists(st.integers(1, 100), min_size=1, max_size=40)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"overlap": True, "hierarchical": True}, "leave out --overlap"),
        ({"buckets": "ddp", "fusion": 0}, "--buckets"),
    ],
)
def test_options_that_exclude_each_other(options: dict[str, Any], words: str) -> None:
    with refuses(UsageError, words):
        check(Training(**options))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ranks_per_node": 2}, "--ranks-per-node --hierarchical"),
        ({"micro_batches": 2}, "--micro-batches --strategy"),
        ({"strategy": "model", "overlap": True}, "--overlap --strategy data hybrid"),
        ({"strategy": "model", "allreduce": "ring"}, "--allreduce --strategy data"),
        ({"model": "vgg16", "layers": 3}, "--layers --model resnet"),
        ({"strategy": "model", "stages": 4}, "--stages --strategy hybrid"),
    ],
)
def test_option_without_its_other_refused(options: dict[str, Any], words: str) -> None:
    with refuses(UsageError, words):
        train.check(Training(**options))


def test_options_as_they_are_mean_something() -> None:
    train.check(Training())


@given(SIZES, st.integers(0, 300), st.sampled_from(["none", "fp16"]))
def test_every_planned_bucket_has_room(sizes: list[int], fusion: int, compression: str) -> None:
    training = Training(fusion=fusion, compression=compression)
    for begin, end in plan_of(training, sizes):
        if end - begin > 1 or compression == "fp16":
            assert sum(sizes[begin:end]) <= room(sizes, training)


def test_single_gradients_are_not_packed() -> None:
    assert room([4, 8], Training(fusion=0)) == 0
    assert room([4, 8], Training(fusion=4)) == 0


def test_concurrent_gradients_have_their_own_places() -> None:
    assert room([4, 8, 16], Training(fusion=12, overlap=True)) == 28

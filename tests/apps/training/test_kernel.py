"""How ranks are divided into pipelines, and what they refuse."""

from __future__ import annotations

import pytest

from omb_py.apps import Detail
from omb_py.apps.training import Training
from omb_py.apps.training.kernel import check, depth, epoch_parts
from omb_py.core.errors import UsageError
from tests.helpers.refusals import refuses


@pytest.mark.parametrize(
    ("strategy", "ranks", "stages"),
    [
        ("data", 6, 1),
        ("model", 1, 1),
        ("model", 6, 6),
        ("hybrid", 1, 1),
        ("hybrid", 2, 2),
        ("hybrid", 6, 2),
    ],
)
def test_pipeline_has_all_ranks_or_given_stages(strategy: str, ranks: int, stages: int) -> None:
    assert depth(Training(strategy=strategy, stages=2), ranks) == stages


REFUSED = [
    (Training(strategy="hybrid", stages=2), 3, "multiple of 2 ranks, or choose other --stages"),
    (Training(strategy="hybrid", stages=4), 2, "pipelines of 4 stages do not fit 2 ranks"),
]


@pytest.mark.parametrize(("training", "ranks", "words"), REFUSED, ids=[row[-1] for row in REFUSED])
def test_impossible_pipeline_refused(training: Training, ranks: int, words: str) -> None:
    with refuses(UsageError, words):
        check(training, ranks, "buffer")


def test_neighbours_that_send_to_each_other_are_not_for_nccl() -> None:
    training = Training(strategy="model", schedule="1f1b")
    check(training, 2, "buffer")
    check(training, 1, "nccl")
    with refuses(UsageError, "use --schedule gpipe"):
        check(training, 2, "nccl")


def parts(found: list[Detail]) -> dict[str, Detail]:
    """By their names."""
    return {part.name: part for part in found}


def test_an_epoch_takes_as_long_as_on_the_slowest_rank() -> None:
    ranks = [[5.0, 1.0], [4.0, 2.0]]
    found = parts(epoch_parts(ranks, 100))
    assert found["Epoch 1"].seconds == 5
    assert found["Epoch 2"].seconds == 2
    assert found["Later epochs, each"].seconds == 2
    assert found["Throughput of later epochs"].value == 50


def test_a_single_epoch_has_no_later_ones() -> None:
    found = parts(epoch_parts([[5.0]], 100))
    assert found["Throughput of epoch 1"].value == 20
    assert "Later epochs, each" not in found

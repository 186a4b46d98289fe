"""What pipelines are expected to wait, and what they refuse."""

from __future__ import annotations

import pytest

from omb_py.apps.training import Training
from omb_py.apps.training.epochs import epochs, learning, slowest
from omb_py.apps.training.pipeline import bubble, check, depth
from omb_py.core.errors import UsageError


@pytest.mark.parametrize(
    ("stages", "parts", "idle"),
    [(1, 1, 0), (1, 8, 0), (2, 1, 1 / 2), (4, 4, 3 / 7), (4, 29, 3 / 32)],
)
def test_the_bubble_is_that_of_the_paper(stages: int, parts: int, idle: float) -> None:
    assert bubble(stages, parts) == pytest.approx(idle)


@pytest.mark.parametrize(
    ("strategy", "ranks", "stages"),
    [("model", 1, 1), ("model", 6, 6), ("hybrid", 1, 1), ("hybrid", 2, 2), ("hybrid", 6, 2)],
)
def test_a_pipeline_is_of_all_ranks_or_of_the_stages_asked_for(
    strategy: str, ranks: int, stages: int
) -> None:
    assert depth(Training(strategy=strategy, stages=2), ranks) == stages


REFUSED = [
    (Training(strategy="hybrid", stages=2), 3, "multiple of 2 ranks, or choose other --stages"),
    (Training(strategy="hybrid", stages=4), 2, "pipelines of 4 stages do not fit 2 ranks"),
    (Training(strategy="model", overlap=True), 2, "no --overlap: leave it out"),
    (Training(strategy="model", cycle_time=2.0), 2, "no --cycle-time: leave it out"),
    (Training(strategy="hybrid", compression="fp16"), 2, "no --compression: leave it out"),
]


@pytest.mark.parametrize(("training", "ranks", "words"), REFUSED, ids=[row[-1] for row in REFUSED])
def test_what_a_pipeline_cannot_do_is_refused(training: Training, ranks: int, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        check(training, ranks)
    assert words in str(caught.value)


def test_an_epoch_ends_when_the_slowest_rank_ends_it() -> None:
    assert slowest([[1.0, 4.0], [2.0, 3.0]]) == [2.0, 4.0]


def test_the_first_epoch_is_told_apart_from_the_mean_of_later_ones() -> None:
    parts = {part.name: part for part in epochs([5.0, 6.0, 9.0], samples=100)}
    assert parts["Epoch 1"].seconds == 5
    assert parts["Later epochs, each"].seconds == 2
    assert parts["Throughput of later epochs"].value == 50
    assert parts["Samples of an epoch"].value == 100


def test_a_single_epoch_has_no_later_ones() -> None:
    parts = {part.name: part for part in epochs([5.0], samples=100)}
    assert "Later epochs, each" not in parts
    assert parts["Throughput of epoch 1"].value == 20


def test_losses_are_told_from_the_first_to_the_last() -> None:
    assert [part.value for part in learning([3.0, 2.0, 1.0])] == [3, 1]

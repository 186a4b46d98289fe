"""What is said of epochs: each one, and why the first takes longer."""

from __future__ import annotations

from omb_py.apps import Detail
from omb_py.apps.training.epochs import Epochs, StepTimes, epoch_parts, first_training


def parts(found: list[Detail]) -> dict[str, Detail]:
    """By their names."""
    return {part.name: part for part in found}


def test_an_epoch_takes_as_long_as_on_the_slowest_rank() -> None:
    ranks = [Epochs([5.0, 1.0]), Epochs([4.0, 2.0])]
    found = parts(epoch_parts(ranks, 100))
    assert found["Epoch 1"].seconds == 5
    assert found["Epoch 2"].seconds == 2
    assert found["Later epochs, each"].seconds == 2
    assert found["Throughput of later epochs"].value == 50


def test_a_single_epoch_has_no_later_ones() -> None:
    found = parts(epoch_parts([Epochs([5.0])], 100))
    assert found["Throughput of epoch 1"].value == 20
    assert "Later epochs, each" not in found


def test_first_epoch_is_longer_by_its_first_step() -> None:
    usual, first = StepTimes(0.25, 0.5), StepTimes(1.25, 1.5)
    epochs = Epochs([7.0, 4.0], [first, usual, usual, usual])
    found = parts(list(first_training([epochs], 3.0)))
    assert found["First training: preparing"].seconds == 3
    assert found["First training: epoch 1"].seconds == 7
    assert found["First training: later epochs, each"].seconds == 4
    assert found["First training: connection set-up"].seconds == 1
    assert found["First training: first use of memory"].seconds == 1

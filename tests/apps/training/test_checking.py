"""A training that went wrong is found out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from omb_py.apps import RunSettings
from omb_py.apps.train import APPLICATION, compare
from omb_py.apps.training import Training
from omb_py.apps.training.checking import sum_over_ranks

TRAINING = Training(epochs=2)


def result(**changes: Any) -> dict[str, Any]:
    """A training as it should be, but for some changes."""
    right = {"losses": [2.0, 1.0], "gradients": 1e-6, "averages": 0.3, "different": []}
    return right | changes


def test_the_same_as_in_one_process_passes() -> None:
    assert compare(TRAINING, result(), result()).passed


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"losses": [1.0, 1.0]}, "DOES NOT fall"),
        ({"losses": [1.0, float("nan")]}, "DOES NOT fall"),
        ({"gradients": 0.01}, "differ from NumPy's of the same parameters by 0.01"),
        ({"gradients": float("nan")}, "nan"),
        ({"averages": 1.1}, "averages are off by 1.1 of what rounding allows"),
        ({"averages": float("nan")}, "nan"),
        ({"different": [3]}, "rank 3 has OTHER parameters"),
    ],
)
def test_what_went_wrong_is_said(wrong: dict[str, Any], words: str) -> None:
    found = compare(TRAINING, result(**wrong), result())
    assert not found.passed
    assert words in found.text


class Ranks:
    """Rank 0 of several, whose numbers are known: a team, and its communicator."""

    rank = 0

    def __init__(self, numbers: NDArray[Any]) -> None:
        self.ranks, self.comm = len(numbers), self
        self._sums = iter((numbers.sum(0, float), np.abs(numbers).sum(0, dtype=float)))

    def Reduce(self, own: NDArray[Any], into: NDArray[Any]) -> None:  # noqa: N802 - mpi4py's
        into[...] = next(self._sums)


NUMBERS = st.integers(2, 9).flatmap(
    lambda ranks: st.lists(
        st.lists(st.floats(-1e4, 1e4, width=16), min_size=ranks, max_size=ranks),
        min_size=1,
        max_size=5,
    )
)


@given(NUMBERS, st.sampled_from(["none", "fp16"]), st.randoms(use_true_random=False))
def test_averages_in_any_order_are_within_what_rounding_allows(
    columns: list[list[float]], compression: str, random: Any
) -> None:
    kind = np.float16 if compression == "fp16" else np.float32
    numbers = np.array(columns, np.float32).T
    ranks = list(range(len(numbers)))
    random.shuffle(ranks)
    total: Any = np.zeros(len(columns), kind)
    for rank in ranks:
        total += (numbers[rank] / len(ranks)).astype(kind)
    found = total.astype(np.float32) * len(ranks)
    team: Any = Ranks(numbers)
    exact, worst = sum_over_ranks(team, Training(compression=compression), numbers[0], found)
    assert worst <= 1
    assert exact == pytest.approx(numbers.sum(0, float))


@pytest.mark.parametrize("compression", ["none", "fp16"])
def test_an_average_that_is_off_by_a_part_is_not(compression: str) -> None:
    numbers = np.ones((2, 3), np.float32)
    part = 1e-6 if compression == "none" else 0.01
    team: Any = Ranks(numbers)
    _, worst = sum_over_ranks(
        team, Training(compression=compression), numbers[0], 2 * numbers[0] + part
    )
    assert worst > 1


@pytest.mark.parametrize("difference", [1e-7, float("nan")])
def test_replayed_averages_are_exact(difference: float) -> None:
    replayed = Training(model="resnet50")
    assert compare(replayed, {"difference": 0.0}, None).passed
    assert not compare(replayed, {"difference": difference}, None).passed


@pytest.mark.parametrize(
    ("training", "has_references"),
    [
        (Training(), True),
        (Training(model="resnet50"), True),
        (Training(model="resnet50", sample_time=0.0), False),
        (Training(model="resnet50", sample_time=0.0, compute="matmul"), False),
    ],
)
def test_what_computes_nothing_has_no_speed_up(training: Training, has_references: bool) -> None:
    assert APPLICATION.applicable(RunSettings(), training).references == has_references


def test_a_problem_that_grows_has_as_many_samples_for_each_rank() -> None:
    assert APPLICATION.weak_scaled is not None
    grown = APPLICATION.weak_scaled(Training(samples=100, batch=10), 4)
    assert (grown.samples, grown.batch) == (400, 40)

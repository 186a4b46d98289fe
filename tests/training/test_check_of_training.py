"""A training that went wrong is found out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from omb_py.apps.train import APPLICATION, compare
from omb_py.training import Training

TRAINING = Training(epochs=2)


def result(**changes: Any) -> dict[str, Any]:
    """A training as it should be, but for some changes."""
    right = {"losses": [2.0, 1.0], "parameters": [np.ones((2, 2), np.float32)], "different": []}
    return right | changes


def test_the_same_as_in_one_process_passes() -> None:
    assert compare(TRAINING, result(), result()).passed


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"losses": [1.0, 1.0]}, "DOES NOT fall"),
        ({"losses": [1.0, float("nan")]}, "DOES NOT fall"),
        ({"parameters": [np.full((2, 2), 1.01, np.float32)]}, "differ from NumPy's by 0.01"),
        ({"parameters": [np.full((2, 2), np.nan, np.float32)]}, "nan"),
        ({"different": [3]}, "rank 3 has OTHER parameters"),
    ],
)
def test_what_went_wrong_is_said(wrong: dict[str, Any], words: str) -> None:
    found = compare(TRAINING, result(**wrong), result())
    assert not found.passed
    assert words in found.text


def test_half_precision_is_compared_less_closely() -> None:
    near = result(parameters=[np.full((2, 2), 1.01, np.float32)])
    assert compare(replace(TRAINING, compression="fp16"), near, result()).passed


@pytest.mark.parametrize("difference", [1e-7, float("nan")])
def test_replayed_averages_are_exact(difference: float) -> None:
    replayed = Training(model="resnet50")
    assert compare(replayed, {"difference": 0.0}, None).passed
    assert not compare(replayed, {"difference": difference}, None).passed


def test_a_problem_that_grows_has_as_many_samples_for_each_rank() -> None:
    assert APPLICATION.grown is not None
    grown = APPLICATION.grown(Training(samples=100, batch=10), 4)
    assert (grown.samples, grown.batch) == (400, 40)

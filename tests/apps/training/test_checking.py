"""A training that went wrong is found out."""

from __future__ import annotations

import pytest

from omb_py.apps import RunSettings
from omb_py.apps.train import APPLICATION, compare
from omb_py.apps.training import Training
from omb_py.apps.training.exchange import limit


@pytest.mark.parametrize("difference", [1e-7, float("nan")])
def test_averages_are_exact(difference: float) -> None:
    found = {"lost": [], "limit": limit(Training(), 4)}
    assert compare(Training(), found | {"difference": 0.0}, None).passed
    assert not compare(Training(), found | {"difference": difference}, None).passed


@pytest.mark.parametrize(("dtype", "rounding"), [("float16", 2**-11), ("bfloat16", 2**-8)])
def test_averages_in_half_precision_are_rounded_once_a_rank(dtype: str, rounding: float) -> None:
    training = Training(dtype=dtype)
    found = {"lost": [], "limit": limit(training, 4)}
    assert compare(training, found | {"difference": (1 + rounding) ** 4 - 1}, None).passed
    assert not compare(training, found | {"difference": 5 * rounding}, None).passed
    assert not compare(training, found | {"difference": float("nan")}, None).passed


def test_what_did_not_arrive_at_a_stage_is_said() -> None:
    found = compare(
        Training(model="resnet50"), {"difference": None, "limit": 0.0, "lost": [2]}, None
    )
    assert not found.passed
    assert "rank 2 has OTHER values" in found.text


@pytest.mark.parametrize(
    ("training", "has_references"),
    [
        (Training(), True),
        (Training(model="resnet50"), True),
        (Training(model="resnet50", sample_time=0.0), False),
    ],
)
def test_what_computes_nothing_has_no_speed_up(training: Training, has_references: bool) -> None:
    assert APPLICATION.settings(training, RunSettings()).references == has_references


def test_a_problem_that_grows_has_as_many_samples_for_each_rank() -> None:
    assert APPLICATION.weak_scaled is not None
    grown = APPLICATION.weak_scaled(Training(samples=100, batch=10), 4)
    assert (grown.samples, grown.batch) == (400, 40)

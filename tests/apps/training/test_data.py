"""Samples: what they look like, and that a seed decides on them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from omb_py.apps.training import Training
from omb_py.apps.training.data import DIGITS, load
from omb_py.core.errors import UsageError

KINDS = ("digits", "generated")


@pytest.mark.parametrize("data", KINDS)
def test_samples_are_images_of_all_classes(data: str) -> None:
    samples, labels, classes = load(Training(data=data, samples=300))
    assert samples.shape == (300, 8, 8)
    assert (samples.dtype, labels.dtype) == (np.float32, np.int64)
    assert set(labels) == set(range(classes))


@pytest.mark.parametrize("data", KINDS)
def test_the_same_seed_gives_the_same_samples_and_another_one_others(data: str) -> None:
    training = Training(data=data, samples=300)
    (samples, labels, _), (again, alike, _) = load(training), load(training)
    other, _, _ = load(replace(training, seed=2))
    assert np.array_equal(samples, again)
    assert np.array_equal(labels, alike)
    assert not np.array_equal(samples, other)


def test_more_digits_than_there_are_are_refused() -> None:
    samples, _, _ = load(Training(data="digits", samples=DIGITS))
    assert len(samples) == DIGITS
    assert (samples.min(), samples.max()) == (0, 1)
    more = Training(data="digits", samples=DIGITS + 1)
    with pytest.raises(UsageError, match="there are 1797 handwritten digits, not 1798"):
        load(more)
    assert len(load(replace(more, data="generated"))[0]) == DIGITS + 1

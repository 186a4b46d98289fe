"""Samples: what they look like, and that a seed decides on them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from omb_py.apps.training import Training
from omb_py.apps.training.data import CLASSES, DIGITS, load
from omb_py.core.errors import UsageError

KINDS = ("digits", "generated")
SHAPE = (8, 8)


@pytest.mark.parametrize("data", KINDS)
def test_samples_are_images_of_all_classes(data: str) -> None:
    found = load(Training(data=data, samples=300), SHAPE)
    assert found.images.shape == (300, 8, 8)
    assert (found.images.dtype, found.labels.dtype) == (np.float32, np.int64)
    assert set(found.labels) == set(range(CLASSES))


@pytest.mark.parametrize("data", KINDS)
def test_the_same_seed_gives_the_same_samples_and_another_one_others(data: str) -> None:
    training = Training(data=data, samples=300)
    found, again = load(training, SHAPE), load(training, SHAPE)
    other = load(replace(training, seed=2), SHAPE)
    assert np.array_equal(found.images, again.images)
    assert np.array_equal(found.labels, again.labels)
    assert not np.array_equal(found.images, other.images)


def test_images_for_another_network_have_its_shape() -> None:
    training = Training(model="resnet110", compute="real", samples=5)
    assert load(training, (12, 12, 3)).images.shape == (5, 12, 12, 3)


def test_samples_to_test_are_others_than_those_to_train() -> None:
    training = Training(data="digits", samples=1000, test="parallel", test_samples=100)
    assert len(load(training, SHAPE).images) == 1100
    with pytest.raises(UsageError, match=r"not 1798: .* fewer --samples or --test-samples"):
        load(replace(training, samples=DIGITS - 99), SHAPE)


@pytest.mark.parametrize("data", KINDS)
def test_samples_to_train_are_the_same_with_any_test(data: str) -> None:
    training = Training(data=data, samples=100)
    tested = replace(training, test="parallel", test_samples=7)
    found, other = load(training, SHAPE), load(tested, SHAPE)
    assert np.array_equal(found.images, other.images[:100])
    assert np.array_equal(found.labels, other.labels[:100])


def test_more_digits_than_there_are_are_refused() -> None:
    samples = load(Training(data="digits", samples=DIGITS), SHAPE).images
    assert len(samples) == DIGITS
    assert (samples.min(), samples.max()) == (0, 1)
    more = Training(data="digits", samples=DIGITS + 1)
    with pytest.raises(UsageError, match="there are 1797 handwritten digits, not 1798"):
        load(more, SHAPE)
    assert len(load(replace(more, data="generated"), SHAPE).images) == DIGITS + 1

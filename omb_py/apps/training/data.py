"""Samples to learn from, the same on every rank, and the batches that they are divided into."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from omb_py.apps import share
from omb_py.apps.training import REAL_MODELS, Training
from omb_py.core.errors import UsageError, needing

SIDE = 8
CLASSES = 10
"""Handwritten digits are images of 8 x 8, and generated ones alike."""

DIGITS = 1797
"""As many handwritten digits are there."""

NOISE = 0.3
"""Standard deviation of the pixels of generated images, whose means are from 0 to 1."""


def check_samples(training: Training, samples: int) -> None:
    """Raise `UsageError` where there are not so many samples to learn from."""
    if training.model in REAL_MODELS and training.data == "digits" and samples > DIGITS:
        raise UsageError(
            f"there are {DIGITS} handwritten digits, not {samples}: use --data generated, or fewer "
            "--samples"
        )


def load(training: Training) -> tuple[Any, Any, int]:
    """Images of float32, samples x 8 x 8 and mostly from 0 to 1, labels of int64, and the classes.

    The seed decides on their order, or generates them. Raises `UsageError` where there are not so
    many, `MissingPackageError` where scikit-learn's are asked for and it is not installed.
    """
    import numpy as np

    random = np.random.default_rng(training.seed)
    count = training.samples
    check_samples(training, count)
    if training.data == "generated":
        means = random.uniform(0, 1, (CLASSES, SIDE, SIDE))
        labels = random.integers(CLASSES, size=count)
        samples = random.normal(means[labels], NOISE).astype(np.float32)
        return samples, labels.astype(np.int64), CLASSES
    with needing("apps"):
        from sklearn.datasets import load_digits
    digits = load_digits()
    order = random.permutation(DIGITS)[:count]
    samples = (digits.images[order] / 16).astype(np.float32)
    return samples, digits.target[order].astype(np.int64), CLASSES


Stretch: TypeAlias = tuple[int, int]
"""Where something begins and ends."""


def batches(samples: int, batch: int) -> list[Stretch]:
    """The batches of an epoch; the last one may be smaller."""
    return [(start, min(start + batch, samples)) for start in range(0, samples, batch)]


def micro_batches(samples: int, parts: int) -> list[Stretch]:
    """The parts of so many samples, as even as can be; none of them is empty."""
    parts = min(parts, samples)
    return [share(samples, parts, part) for part in range(parts)]


@dataclass(frozen=True)
class Portion:
    """What one of several pipelines takes of a batch of ``size``: the epoch's samples ``own``.

    ``parts`` are its micro-batches, counted from the first of its own samples.
    """

    size: int
    own: Stretch
    parts: tuple[Stretch, ...]


def portion(batch: Stretch, pipelines: int, pipeline: int, parts: int) -> Portion:
    """What number ``pipeline`` takes of a batch; nothing where there are fewer samples."""
    start, stop = batch
    begin, end = share(stop - start, pipelines, pipeline)
    divided = tuple(micro_batches(end - begin, parts))
    return Portion(stop - start, (start + begin, start + end), divided)

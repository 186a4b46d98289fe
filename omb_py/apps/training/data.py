"""Samples to learn from, the same on every rank, and the batches that they are divided into."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from omb_py.apps import share
from omb_py.apps.training import SMALL_MODELS, Training
from omb_py.core.errors import UsageError, needing

SIDE = 8
CLASSES = 10
"""Handwritten digits are images of 8 x 8, and generated ones alike."""

DIGITS = 1797
"""As many handwritten digits are there."""

NOISE = 0.3
"""Standard deviation of the pixels of generated images, whose means are from 0 to 1."""


@dataclass(frozen=True)
class Samples:
    """Images of float32, mostly from 0 to 1, and labels of int64; none where nothing is computed.

    Those to train come first, and those to test behind them.
    """

    images: Any = None
    labels: Any = None


def check_samples(training: Training, samples: int) -> None:
    """Raise `UsageError` where there are not so many samples to learn from, and to test."""
    tested = training.test_samples if training.test != "none" else 0
    if training.model in SMALL_MODELS and training.data == "digits" and samples + tested > DIGITS:
        fewer = "--samples or --test-samples" if tested else "--samples"
        raise UsageError(
            f"there are {DIGITS} handwritten digits, not {samples + tested}: use --data generated, "
            f"or fewer {fewer}"
        )


def load(training: Training, shape: tuple[int, ...]) -> Samples:
    """Images of a shape: of 8 x 8 where they are handwritten digits.

    The seed decides on their order, or generates them. Raises `UsageError` where there are not so
    many, `MissingPackageError` where scikit-learn's are asked for and it is not installed.
    """
    import numpy as np

    random = np.random.default_rng(training.seed)
    tested = training.test_samples if training.test != "none" else 0
    check_samples(training, training.samples)
    if training.data == "generated" or training.model not in SMALL_MODELS:
        means = random.uniform(0, 1, (CLASSES, *shape))
        found = []
        for generator, count in (
            (random, training.samples),
            (np.random.default_rng((training.seed, 1)), tested),
        ):
            labels = generator.integers(CLASSES, size=count)
            found.append((generator.normal(means[labels], NOISE).astype(np.float32), labels))
        images, labels = map(np.concatenate, zip(*found, strict=True))
        return Samples(images, labels.astype(np.int64))
    with needing("apps"):
        from sklearn.datasets import load_digits
    digits = load_digits()
    order = random.permutation(DIGITS)[: training.samples + tested]
    images = (digits.images[order] / 16).astype(np.float32)
    return Samples(images, digits.target[order].astype(np.int64))


Range: TypeAlias = tuple[int, int]
"""Where something begins and ends."""


def batches(samples: int, batch: int) -> list[Range]:
    """The batches of an epoch; the last one may be smaller."""
    return [(start, min(start + batch, samples)) for start in range(0, samples, batch)]


def micro_batches(samples: int, parts: int) -> list[Range]:
    """The parts of so many samples, as even as can be; none of them is empty."""
    parts = min(parts, samples)
    return [share(samples, parts, part) for part in range(parts)]


@dataclass(frozen=True)
class BatchShare:
    """What one of several pipelines takes of a batch of ``size``: the epoch's samples ``own``.

    ``parts`` are its micro-batches, counted from the first of its own samples.
    """

    size: int
    own: Range
    parts: tuple[Range, ...]

    @property
    def samples(self) -> int:
        """Its own."""
        return self.own[1] - self.own[0]


def batch_share(batch: Range, pipelines: int, pipeline: int, parts: int) -> BatchShare:
    """What number ``pipeline`` takes of a batch; nothing where there are fewer samples."""
    start, stop = batch
    begin, end = share(stop - start, pipelines, pipeline)
    divided = tuple(micro_batches(end - begin, parts))
    return BatchShare(stop - start, (start + begin, start + end), divided)

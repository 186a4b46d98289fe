"""The batches that an epoch is divided into, and what each pipeline takes of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from omb_py.apps import share

Range: TypeAlias = tuple[int, int]
"""Where something begins and ends."""


def batches(samples: int, batch: int) -> list[Range]:
    """The batches of an epoch; the last one may be smaller."""
    return [(start, min(start + batch, samples)) for start in range(0, samples, batch)]


def micro_batches(samples: int, parts: int) -> list[Range]:
    """Divide samples into parts of nearly equal size, none of them empty."""
    parts = min(parts, samples)
    return [share(samples, parts, part) for part in range(parts)]


@dataclass(frozen=True)
class BatchShare:
    """What one of several pipelines takes of a batch: so many ``samples``.

    ``parts`` are its micro-batches, counted from the first of its own samples.
    """

    samples: int
    parts: tuple[Range, ...]


def batch_share(batch: Range, pipelines: int, pipeline: int, parts: int) -> BatchShare:
    """What number ``pipeline`` takes of a batch; nothing where there are fewer samples."""
    start, stop = batch
    begin, end = share(stop - start, pipelines, pipeline)
    return BatchShare(end - begin, tuple(micro_batches(end - begin, parts)))

"""Which samples belong together: batches of an epoch, and their parts that pass a pipeline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from omb_py.apps import share

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

"""Residual networks for ImageNet, as torchvision builds them.

He et al.: Deep Residual Learning for Image Recognition, CVPR 2016, table 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from omb_py.training.tensors import Tensor, normalization, weighted

STEM = 64
"""Channels after the first convolution."""

EXPANSION = 4
"""A block gives so many times the channels that it works with."""

CLASSES = 1000


def bottlenecks(blocks: Sequence[int]) -> Iterator[Tensor]:
    """A network with so many bottleneck blocks in each of its groups."""
    yield from weighted("conv1", STEM, 3, 7, 7)
    yield from normalization("bn1", STEM)
    given = STEM
    for group, count in enumerate(blocks):
        width = STEM << group
        for block in range(count):
            yield from _bottleneck(f"layer{group + 1}.{block}", given, width)
            given = width * EXPANSION
    yield from weighted("fc", CLASSES, given, bias=CLASSES)


def _bottleneck(name: str, given: int, width: int) -> Iterator[Tensor]:
    """Convolutions of 1, 3 and 1 pixels, and one around them where the channels change."""
    gives = width * EXPANSION
    sizes = (given, width, 1), (width, width, 3), (width, gives, 1)
    for number, (inputs, outputs, side) in enumerate(sizes, start=1):
        yield from weighted(f"{name}.conv{number}", outputs, inputs, side, side)
        yield from normalization(f"{name}.bn{number}", outputs)
    if given != gives:
        yield from weighted(f"{name}.downsample.0", gives, given, 1, 1)
        yield from normalization(f"{name}.downsample.1", gives)

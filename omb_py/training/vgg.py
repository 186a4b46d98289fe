"""VGG-16: Simonyan and Zisserman, Very Deep Convolutional Networks for Large-Scale Image
Recognition, ICLR 2015, table 1, column D."""

from __future__ import annotations

from collections.abc import Iterator

from omb_py.training.tensors import Tensor, weighted

GROUPS = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
"""Channels, and convolutions with so many; pooling follows each group."""

SIDE = 7
"""Pixels in a row of what the convolutions give for images of 224 x 224."""

DENSE = (4096, 4096, 1000)


def vgg() -> Iterator[Tensor]:
    """Thirteen convolutions and three dense layers, all with a bias."""
    given = 3
    for group, (channels, count) in enumerate(GROUPS, start=1):
        for number in range(1, count + 1):
            name = f"conv{group}_{number}"
            yield from weighted(name, channels, given, 3, 3, bias=channels)
            given = channels
    given *= SIDE * SIDE
    for number, width in enumerate(DENSE, start=6):
        yield from weighted(f"fc{number}", width, given, bias=width)
        given = width

"""Residual networks for CIFAR-10, as the example of Keras builds them.

Their convolutions have a bias, and there is no normalization around a block. Version 1 is that of
He et al. (CVPR 2016, section 4.2), version 2 has bottlenecks that normalize before they convolve
(He et al.: Identity Mappings in Deep Residual Networks, ECCV 2016) with more channels than theirs.
"""

from __future__ import annotations

from collections.abc import Iterator

from omb_py.training.tensors import Tensor, normalization, weighted

STEM = 16
"""Channels after the first convolution."""

GROUPS = 3
CLASSES = 10


def cifar_first(depth: int) -> Iterator[Tensor]:
    """Version 1 with so many layers, 2 more than a multiple of 6."""
    yield from _convolution("conv", 3, STEM, 3)
    yield from normalization("bn", STEM)
    given = STEM
    for group in range(GROUPS):
        width = STEM << group
        for block in range((depth - 2) // (2 * GROUPS)):
            name = f"group{group + 1}.{block}"
            for number, inputs in enumerate((given, width), start=1):
                yield from _convolution(f"{name}.conv{number}", inputs, width, 3)
                yield from normalization(f"{name}.bn{number}", width)
            if given != width:
                yield from _convolution(f"{name}.shortcut", given, width, 1)
            given = width
    yield from _dense(given)


def cifar_second(depth: int) -> Iterator[Tensor]:
    """Version 2 with so many layers, 2 more than a multiple of 9."""
    yield from _convolution("conv", 3, STEM, 3)
    yield from normalization("bn", STEM)
    given, width = STEM, STEM
    for group in range(GROUPS):
        gives = 2 * given if group else 4 * given
        for block in range((depth - 2) // (3 * GROUPS)):
            name = f"group{group + 1}.{block}"
            sizes = (given, width, 1), (width, width, 3), (width, gives, 1)
            for number, (inputs, outputs, side) in enumerate(sizes, start=1):
                if (group, block, number) != (0, 0, 1):  # the stem has just normalized
                    yield from normalization(f"{name}.bn{number}", inputs)
                yield from _convolution(f"{name}.conv{number}", inputs, outputs, side)
            if block == 0:
                yield from _convolution(f"{name}.shortcut", given, gives, 1)
            given = gives
        width = gives
    yield from normalization("bn.last", given)
    yield from _dense(given)


def _convolution(name: str, inputs: int, outputs: int, side: int) -> Iterator[Tensor]:
    return weighted(name, side, side, inputs, outputs, bias=outputs)


def _dense(given: int) -> Iterator[Tensor]:
    return weighted("dense", given, CLASSES, bias=CLASSES)

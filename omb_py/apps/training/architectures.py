"""The parameters of well-known networks: names and shapes, in order of declaration.

Each family generates them from how its networks are built; nothing is computed with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod


@dataclass(frozen=True)
class Tensor:
    """A parameter, and so its gradient: a name and a shape."""

    name: str
    shape: tuple[int, ...]

    @property
    def elements(self) -> int:
        """Its numbers."""
        return prod(self.shape)


def weighted(name: str, *shape: int, bias: int = 0) -> Iterator[Tensor]:
    """The weights of a layer, and so many numbers of bias where it has one."""
    yield Tensor(f"{name}.weight", shape)
    if bias:
        yield Tensor(f"{name}.bias", (bias,))


def normalization(name: str, features: int) -> Iterator[Tensor]:
    """What a batch or layer normalization learns: a factor and an offset for each feature."""
    return weighted(name, features, bias=features)


# Residual networks for ImageNet, as torchvision builds them.
#
# He et al.: Deep Residual Learning for Image Recognition, CVPR 2016, table 1.

RESIDUAL_STEM = 64
"""Channels after the first convolution."""

EXPANSION = 4
"""A block gives so many times the channels that it works with."""

IMAGENET_CLASSES = 1000


def bottlenecks(blocks: Sequence[int]) -> Iterator[Tensor]:
    """A network with so many bottleneck blocks in each of its groups."""
    yield from weighted("conv1", RESIDUAL_STEM, 3, 7, 7)
    yield from normalization("bn1", RESIDUAL_STEM)
    given = RESIDUAL_STEM
    for group, count in enumerate(blocks):
        width = RESIDUAL_STEM << group
        for block in range(count):
            yield from _bottleneck(f"layer{group + 1}.{block}", given, width)
            given = width * EXPANSION
    yield from weighted("fc", IMAGENET_CLASSES, given, bias=IMAGENET_CLASSES)


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


# VGG-16: Simonyan and Zisserman, Very Deep Convolutional Networks for Large-Scale Image
# Recognition, ICLR 2015, table 1, column D.

VGG_GROUPS = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
"""Channels, and convolutions with so many; pooling follows each group."""

SIDE = 7
"""Pixels in a row of what the convolutions give for images of 224 x 224."""

DENSE = (4096, 4096, 1000)


def vgg() -> Iterator[Tensor]:
    """Thirteen convolutions and three dense layers, all with a bias."""
    given = 3
    for group, (channels, count) in enumerate(VGG_GROUPS, start=1):
        for number in range(1, count + 1):
            name = f"conv{group}_{number}"
            yield from weighted(name, channels, given, 3, 3, bias=channels)
            given = channels
    given *= SIDE * SIDE
    for number, width in enumerate(DENSE, start=6):
        yield from weighted(f"fc{number}", width, given, bias=width)
        given = width


# Transformers: BERT's encoder and GPT-2's decoder, as Hugging Face builds them.
#
# Devlin et al.: BERT, NAACL 2019, with the layer that pools for a classifier; Radford et al.:
# Language Models are Unsupervised Multitask Learners, 2019, whose output layer is its embedding.

BERT_WORDS, BERT_POSITIONS, BERT_SEGMENTS = 30_522, 512, 2
GPT2_WORDS, GPT2_POSITIONS = 50_257, 1024
"""What is embedded: words of the vocabulary, places in a text, and which of two texts it is."""

INNER = 4
"""The layer inside a block's perceptron is so many times as wide as the block."""


def bert(layers: int, width: int) -> Iterator[Tensor]:
    """An encoder of so many layers."""
    yield Tensor("embeddings.word", (BERT_WORDS, width))
    yield Tensor("embeddings.position", (BERT_POSITIONS, width))
    yield Tensor("embeddings.segment", (BERT_SEGMENTS, width))
    yield from normalization("embeddings.norm", width)
    for layer in range(layers):
        name = f"layer.{layer}"
        for part in ("query", "key", "value", "output"):
            yield from _transformer_dense(f"{name}.attention.{part}", width, width)
        yield from normalization(f"{name}.attention.norm", width)
        yield from _transformer_dense(f"{name}.inner", width, INNER * width)
        yield from _transformer_dense(f"{name}.outer", INNER * width, width)
        yield from normalization(f"{name}.norm", width)
    yield from _transformer_dense("pooler", width, width)


def gpt2(layers: int, width: int) -> Iterator[Tensor]:
    """A decoder of so many layers."""
    yield Tensor("word", (GPT2_WORDS, width))
    yield Tensor("position", (GPT2_POSITIONS, width))
    for layer in range(layers):
        name = f"layer.{layer}"
        yield from normalization(f"{name}.norm1", width)
        yield from _transformer_dense(f"{name}.attention.inputs", width, 3 * width)
        yield from _transformer_dense(f"{name}.attention.output", width, width)
        yield from normalization(f"{name}.norm2", width)
        yield from _transformer_dense(f"{name}.inner", width, INNER * width)
        yield from _transformer_dense(f"{name}.outer", INNER * width, width)
    yield from normalization("norm", width)


def _transformer_dense(name: str, given: int, gives: int) -> Iterator[Tensor]:
    return weighted(name, given, gives, bias=gives)


# Residual networks for CIFAR-10, as the example of Keras builds them.
#
# Their convolutions have a bias, and there is no normalization around a block. Version 1 is that of
# He et al. (CVPR 2016, section 4.2), version 2 has bottlenecks that normalize before they convolve
# (He et al.: Identity Mappings in Deep Residual Networks, ECCV 2016) with more channels.

CIFAR_STEM = 16
"""Channels after the first convolution."""

CIFAR_GROUPS = 3
CIFAR_CLASSES = 10


def cifar_first(depth: int) -> Iterator[Tensor]:
    """Version 1 with so many layers, 2 more than a multiple of 6."""
    yield from _convolution("conv", 3, CIFAR_STEM, 3)
    yield from normalization("bn", CIFAR_STEM)
    given = CIFAR_STEM
    for group in range(CIFAR_GROUPS):
        width = CIFAR_STEM << group
        for block in range((depth - 2) // (2 * CIFAR_GROUPS)):
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
    yield from _convolution("conv", 3, CIFAR_STEM, 3)
    yield from normalization("bn", CIFAR_STEM)
    given, width = CIFAR_STEM, CIFAR_STEM
    for group in range(CIFAR_GROUPS):
        gives = 2 * given if group else 4 * given
        for block in range((depth - 2) // (3 * CIFAR_GROUPS)):
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
    return weighted("dense", given, CIFAR_CLASSES, bias=CIFAR_CLASSES)


ARCHITECTURES: dict[str, Callable[[], Iterator[Tensor]]] = {
    "resnet50": partial(bottlenecks, (3, 4, 6, 3)),
    "resnet101": partial(bottlenecks, (3, 4, 23, 3)),
    "resnet152": partial(bottlenecks, (3, 8, 36, 3)),
    "vgg16": vgg,
    "bert-base": partial(bert, layers=12, width=768),
    "bert-large": partial(bert, layers=24, width=1024),
    "gpt2": partial(gpt2, layers=12, width=768),
    "gpt2-medium": partial(gpt2, layers=24, width=1024),
    "resnet110": partial(cifar_first, 110),
    "resnet1001": partial(cifar_second, 1001),
}
"""By the names that ``--model`` has for them."""


def tensors_of(model: str) -> tuple[Tensor, ...]:
    """The tensors of one of `ARCHITECTURES`, in order of declaration."""
    return tuple(ARCHITECTURES[model]())

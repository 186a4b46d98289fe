"""Well-known networks as lists of their layers, in order of declaration.

Each family generates them from how its networks are built. Of transformers there are the parameters
only, names and shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

from omb_py.apps.training import Training
from omb_py.apps.training.layers import (
    Convolution,
    Dense,
    DepthwiseConvolution,
    Layer,
    MaxPooling,
    MeanPooling,
    ReLU,
    Reshape,
    Scale,
    Shape,
    Skip,
)
from omb_py.apps.training.networks import Named, Network
from omb_py.core.errors import UsageError

CIFAR_SIDE, IMAGENET_SIDE = 32, 224
CIFAR_CLASSES, IMAGENET_CLASSES = 10, 1000


@dataclass(frozen=True)
class Tensor:
    """A parameter, and so its gradient: a name and a shape."""

    name: str
    shape: tuple[int, ...]

    @property
    def elements(self) -> int:
        """Its numbers."""
        return prod(self.shape)


class Layers:
    """Layers put one after the other, each given what the one before it gives."""

    def __init__(self, shape: Shape) -> None:
        self.named: list[Named] = []
        self.shape = shape
        self._around: list[Shape] = []

    def add(self, name: str, layer: Callable[..., Layer], *arguments: Any, **fields: Any) -> None:
        """Another layer, made from its shape and these."""
        made = layer(self.shape, *arguments, **fields)
        self.named.append((name, made))
        self.shape = made.gives

    def convolve(self, name: str, side: int, filters: int, stride: int = 1, **fields: Any) -> None:
        """A convolution."""
        self.add(name, Convolution, side, stride, filters, **fields)

    def fork(self, name: str) -> None:
        """A residual block begins."""
        self.named.append((f"{name}.fork", Skip.FORK))
        self._around.append(self.shape)

    def around(self, name: str) -> None:
        """The layers that follow are on the way around the block."""
        self.named.append((f"{name}.swap", Skip.SWAP))
        self.shape, self._around[-1] = self._around[-1], self.shape

    def join(self, name: str) -> None:
        """A residual block ends."""
        self.named.append((f"{name}.join", Skip.JOIN))
        self._around.pop()


# Residual networks for ImageNet, as torchvision builds them.
#
# He et al.: Deep Residual Learning for Image Recognition, CVPR 2016, table 1. As there, the second
# convolution of a block makes images smaller (version 1.5).

RESIDUAL_STEM = 64
"""Channels after the first convolution."""

BASIC, BOTTLENECK = (3, 3), (1, 3, 1)
"""Sides of the convolutions of a block."""

EXPANSION = 4
"""Factor from the channels inside a bottleneck to those that it gives."""


def residual(
    blocks: Sequence[int], sides: Sequence[int], training: Training, layers: Layers
) -> None:
    """Groups of residual blocks: how many each has, and the sides of a block's convolutions."""
    layers.convolve("conv1", 7, RESIDUAL_STEM, 2, bias=False)
    layers.add("bn1", Scale)
    layers.add("relu", ReLU)
    layers.add("maxpool", MaxPooling, 3, 2)
    for group, count in enumerate(blocks):
        for block in range(count):
            stride = 2 if group and not block else 1
            _block(layers, f"layer{group + 1}.{block}", sides, RESIDUAL_STEM << group, stride)
    layers.add("avgpool", MeanPooling)
    layers.add("fc", Dense, IMAGENET_CLASSES)


def _block(layers: Layers, name: str, sides: Sequence[int], width: int, stride: int) -> None:
    """Convolutions one after the other, and one around them where the channels change."""
    given, gives = layers.shape[-1], width * (EXPANSION if sides == BOTTLENECK else 1)
    layers.fork(name)
    strided = 2 if sides == BOTTLENECK else 1
    for number, side in enumerate(sides, start=1):
        outputs = gives if number == len(sides) else width
        step = stride if number == strided else 1
        layers.convolve(f"{name}.conv{number}", side, outputs, step, bias=False)
        layers.add(f"{name}.bn{number}", Scale)
        if number < len(sides):
            layers.add(f"{name}.relu{number}", ReLU)
    if given != gives:
        layers.around(name)
        layers.convolve(f"{name}.downsample.0", 1, gives, stride, bias=False)
        layers.add(f"{name}.downsample.1", Scale)
    layers.join(name)
    layers.add(f"{name}.relu{len(sides)}", ReLU)


# VGG-16: Simonyan and Zisserman, Very Deep Convolutional Networks for Large-Scale Image
# Recognition, ICLR 2015, table 1, column D.

VGG_GROUPS = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
"""Channels, and convolutions with so many; pooling follows each group."""

VGG_DENSE = (4096, 4096, IMAGENET_CLASSES)


def vgg(training: Training, layers: Layers) -> None:
    """Thirteen convolutions and three dense layers, all with a bias."""
    for group, (channels, count) in enumerate(VGG_GROUPS, start=1):
        for number in range(1, count + 1):
            layers.convolve(f"conv{group}_{number}", 3, channels)
            layers.add(f"relu{group}_{number}", ReLU)
        layers.add(f"pool{group}", MaxPooling)
    layers.add("flatten", Reshape, (prod(layers.shape),))
    for number, width in enumerate(VGG_DENSE, start=6):
        layers.add(f"fc{number}", Dense, width)
        if width != VGG_DENSE[-1]:
            layers.add(f"relu{number}", ReLU)


# MobileNet with its full width: Howard et al., MobileNets: Efficient Convolutional Neural Networks
# for Mobile Vision Applications, 2017, table 1.

MOBILE_STEM = 32
"""Channels after the first convolution."""

MOBILE_BLOCKS = (
    (64, 1),
    (128, 2),
    (128, 1),
    (256, 2),
    (256, 1),
    (512, 2),
    *(5 * [(512, 1)]),
    (1024, 2),
    (1024, 1),
)
"""Channels that a block gives, and its stride."""


def mobile(training: Training, layers: Layers) -> None:
    """Depthwise convolutions, each followed by one of single pixels."""
    layers.convolve("conv", 3, MOBILE_STEM, 2, bias=False)
    layers.add("bn", Scale)
    layers.add("relu", ReLU)
    for number, (channels, stride) in enumerate(MOBILE_BLOCKS, start=1):
        name = f"block{number}"
        layers.add(f"{name}.depthwise", DepthwiseConvolution, 3, stride)
        layers.add(f"{name}.bn1", Scale)
        layers.add(f"{name}.relu1", ReLU)
        layers.convolve(f"{name}.pointwise", 1, channels, bias=False)
        layers.add(f"{name}.bn2", Scale)
        layers.add(f"{name}.relu2", ReLU)
    layers.add("avgpool", MeanPooling)
    layers.add("fc", Dense, IMAGENET_CLASSES)


# Residual networks for CIFAR-10, as the example of Keras builds them.
#
# Their convolutions have a bias, and there is no normalization around a block. Version 1 is that of
# He et al. (CVPR 2016, section 4.2), version 2 has bottlenecks that normalize before they convolve
# (He et al.: Identity Mappings in Deep Residual Networks, ECCV 2016) with more channels.

CIFAR_STEM = 16
"""Channels after the first convolution."""

CIFAR_GROUPS = 3
FIRST_VERSION, SECOND_VERSION = 2 * CIFAR_GROUPS, 3 * CIFAR_GROUPS
"""A network has 2 layers more than a multiple of this."""


def cifar(depth: int | None, training: Training, layers: Layers) -> None:
    """Version 1 with so many layers where there is one, else version 2; None: ``--layers``.

    Raises `UsageError` where there is neither.
    """
    depth = training.layers if depth is None else depth
    layers.convolve("conv", 3, CIFAR_STEM)
    layers.add("bn", Scale)
    layers.add("relu", ReLU)
    if (depth - 2) % FIRST_VERSION == 0 and depth > 2:
        _cifar_first(depth, layers)
    elif (depth - 2) % SECOND_VERSION == 0 and depth > 2:
        _cifar_second(depth, layers)
    else:
        near = min((abs(one - depth), one) for one in _depths(depth))[1]
        raise UsageError(
            f"no residual network has {depth} layers: choose 2 more than a multiple of "
            f"{FIRST_VERSION} or {SECOND_VERSION}, such as --layers {near}"
        )
    layers.add("avgpool", MeanPooling)
    layers.add("dense", Dense, CIFAR_CLASSES)


def _depths(depth: int) -> Iterator[int]:
    """The numbers of layers, next to ``depth``, that networks can have."""
    for unit in (FIRST_VERSION, SECOND_VERSION):
        below = max(1, (depth - 2) // unit)
        yield from (below * unit + 2, (below + 1) * unit + 2)


def _cifar_first(depth: int, layers: Layers) -> None:
    for group in range(CIFAR_GROUPS):
        width = CIFAR_STEM << group
        for block in range((depth - 2) // FIRST_VERSION):
            name, stride = f"group{group + 1}.{block}", 2 if group and not block else 1
            given = layers.shape[-1]
            layers.fork(name)
            layers.convolve(f"{name}.conv1", 3, width, stride)
            layers.add(f"{name}.bn1", Scale)
            layers.add(f"{name}.relu1", ReLU)
            layers.convolve(f"{name}.conv2", 3, width)
            layers.add(f"{name}.bn2", Scale)
            if given != width:
                layers.around(name)
                layers.convolve(f"{name}.shortcut", 1, width, stride)
            layers.join(name)
            layers.add(f"{name}.relu2", ReLU)


def _cifar_second(depth: int, layers: Layers) -> None:
    width = CIFAR_STEM
    for group in range(CIFAR_GROUPS):
        gives = layers.shape[-1] * (2 if group else 4)
        for block in range((depth - 2) // SECOND_VERSION):
            name, stride = f"group{group + 1}.{block}", 2 if group and not block else 1
            layers.fork(name)
            for number, (side, outputs) in enumerate(((1, width), (3, width), (1, gives)), start=1):
                if (group, block, number) != (0, 0, 1):  # the stem has just normalized
                    layers.add(f"{name}.bn{number}", Scale)
                    layers.add(f"{name}.relu{number}", ReLU)
                step = stride if number == 1 else 1
                layers.convolve(f"{name}.conv{number}", side, outputs, step)
            if block == 0:
                layers.around(name)
                layers.convolve(f"{name}.shortcut", 1, gives, stride)
            layers.join(name)
        width = gives
    layers.add("bn.last", Scale)
    layers.add("relu.last", ReLU)


CIFAR = (CIFAR_SIDE, CIFAR_SIDE, 3)
IMAGENET = (IMAGENET_SIDE, IMAGENET_SIDE, 3)

NETWORKS: dict[str, tuple[Shape, Callable[[Training, Layers], None]]] = {
    "resnet18": (IMAGENET, partial(residual, (2, 2, 2, 2), BASIC)),
    "resnet34": (IMAGENET, partial(residual, (3, 4, 6, 3), BASIC)),
    "resnet50": (IMAGENET, partial(residual, (3, 4, 6, 3), BOTTLENECK)),
    "resnet101": (IMAGENET, partial(residual, (3, 4, 23, 3), BOTTLENECK)),
    "resnet152": (IMAGENET, partial(residual, (3, 8, 36, 3), BOTTLENECK)),
    "vgg16": (IMAGENET, vgg),
    "mobilenet": (IMAGENET, mobile),
    "resnet110": (CIFAR, partial(cifar, 110)),
    "resnet1001": (CIFAR, partial(cifar, 1001)),
    "resnet": (CIFAR, partial(cifar, None)),
}
"""The shape of a sample, and what puts the layers together, by the names that ``--model`` has."""


def sample_shape(training: Training) -> Shape:
    """The shape of a sample: of images of ``--image`` pixels where it is given."""
    height, width, *channels = NETWORKS[training.model][0]
    side = training.image
    return (side or height, side or width, *channels)


def network(training: Training) -> Network:
    """The network to train.

    Raises `UsageError` where there is none of so many layers, or images are too small for it.
    """
    layers = Layers(sample_shape(training))
    NETWORKS[training.model][1](training, layers)
    if any(isinstance(layer, Layer) and prod(layer.gives) == 0 for _, layer in layers.named):
        raise UsageError(
            f"images of {training.image} pixels vanish on their way through {training.model}: "
            "choose a larger --image"
        )
    return Network(layers.named)


# Transformers: BERT's encoder and GPT-2's decoder, as Hugging Face builds them.
#
# Devlin et al.: BERT, NAACL 2019, with the layer that pools for a classifier; Radford et al.:
# Language Models are Unsupervised Multitask Learners, 2019, whose output layer is its embedding.

BERT_WORDS, BERT_POSITIONS, BERT_SEGMENTS = 30_522, 512, 2
GPT2_WORDS, GPT2_POSITIONS = 50_257, 1024
"""What is embedded: words of the vocabulary, places in a text, and which of two texts it is."""

INNER = 4
"""The layer inside a block's perceptron is so many times as wide as the block."""


def weighted(name: str, *shape: int, bias: int = 0) -> Iterator[Tensor]:
    """The weights of a layer, and so many numbers of bias where it has one."""
    yield Tensor(f"{name}.weight", shape)
    if bias:
        yield Tensor(f"{name}.bias", (bias,))


def normalization(name: str, features: int) -> Iterator[Tensor]:
    """What a layer normalization learns: a factor and an offset for each feature."""
    return weighted(name, features, bias=features)


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


TRANSFORMERS: dict[str, Callable[[], Iterator[Tensor]]] = {
    "bert-base": partial(bert, layers=12, width=768),
    "bert-large": partial(bert, layers=24, width=1024),
    "gpt2": partial(gpt2, layers=12, width=768),
    "gpt2-medium": partial(gpt2, layers=24, width=1024),
}
"""By the names that ``--model`` has for them."""


def tensors_of(training: Training) -> tuple[Tensor, ...]:
    """The parameters of a network, in order of declaration."""
    if training.model in TRANSFORMERS:
        return tuple(TRANSFORMERS[training.model]())
    return tuple(Tensor(*one) for one in network(training).shapes)

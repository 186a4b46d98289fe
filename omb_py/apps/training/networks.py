"""Networks as lists of layers: what they learn, multiply and pass on; cut into stages.

Published networks are tables in the folder ``published``, made once from how they are built:

- ResNet for ImageNet: He et al., Deep Residual Learning for Image Recognition, CVPR 2016, table 1,
  as torchvision builds them (version 1.5).
- VGG-16: Simonyan and Zisserman, Very Deep Convolutional Networks for Large-Scale Image
  Recognition, ICLR 2015, table 1, column D.
- MobileNet: Howard et al., MobileNets: Efficient Convolutional Neural Networks for Mobile Vision
  Applications, 2017, table 1.
- BERT: Devlin et al., NAACL 2019, with the layer that pools; GPT-2: Radford et al., Language
  Models are Unsupervised Multitask Learners, 2019; both as Hugging Face builds them. Of these there
  are the tensors only, each with as much work as the others.

Residual networks for CIFAR-10 follow from their number of layers (`cifar`).
"""

from __future__ import annotations

import csv
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import prod
from pathlib import Path
from typing import TypeAlias

from omb_py.apps.training import Training
from omb_py.core.errors import UsageError

PUBLISHED = Path(__file__).parent / "published"
"""A table for each network: ``layer``, its ``tensors`` with their shapes, ``multiplications`` and
numbers ``kept`` for the way back, for one sample, and the numbers that it ``passes`` on. Inside a
residual block these are two arrays, since what goes around the layers passes as well. The first row
is what the network is given."""

Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Layer:
    """A layer: names and shapes of its tensors in order of declaration, and what a sample takes.

    ``work`` are multiplications, forward, 0 if they do not count; ``kept`` what is kept for the way
    back; ``passes`` the elements of each array that the next layer is given.
    """

    name: str
    tensors: tuple[tuple[str, Shape], ...] = ()
    work: int = 0
    kept: int = 0
    passes: tuple[int, ...] = ()


class NeuralNetwork:
    """Layers one after the other.

    ``shapes`` are the names and shapes of all tensors, ``tensors`` the numbers of each layer's
    among them. ``given`` and ``gives`` are the elements of the arrays of one sample that go in and
    come out.
    """

    def __init__(self, layers: Sequence[Layer], given: tuple[int, ...]) -> None:
        self.layers = list(layers)
        self.given = given
        self.gives = layers[-1].passes
        self.shapes: list[tuple[str, Shape]] = []
        self.tensors: list[range] = []
        for layer in layers:
            count = len(self.shapes)
            names = (f"{layer.name}.{own}".rstrip(".") for own, _ in layer.tensors)
            self.shapes += zip(names, (shape for _, shape in layer.tensors), strict=True)
            self.tensors.append(range(count, len(self.shapes)))

    @property
    def work(self) -> int:
        """Multiplications for one sample, forward."""
        return sum(layer.work for layer in self.layers)

    @property
    def learning(self) -> int:
        """The number of its layers that learn."""
        return sum(map(bool, self.tensors))

    @property
    def values(self) -> int:
        """The numbers of one sample that are kept for the way back: what layers are given."""
        return sum(layer.kept for layer in self.layers)

    @property
    def elements(self) -> int:
        """The numbers of all tensors together."""
        return sum(prod(shape) for _, shape in self.shapes)

    def stages(
        self, count: int, partition: Sequence[int] = (), costs: Sequence[float] = ()
    ) -> list[NeuralNetwork]:
        """Cut into so many networks, one after the other.

        Their ``costs``, of each layer (None given: its work), differ as little as can be, unless
        ``partition`` gives how many layers that learn each has. Each has at least one of them, and
        those after it up to the next that does. Raises `UsageError` if there are not enough.
        """
        learning = [number for number, tensors in enumerate(self.tensors) if tensors]
        if partition and (len(partition) != count or sum(partition) != len(learning)):
            raise UsageError(
                f"--partition {','.join(map(str, partition))} divides {sum(partition)} layers into "
                f"{len(partition)} stages: give {count} numbers whose sum is {len(learning)}"
            )
        if count > len(learning):
            raise UsageError(
                f"the network can be cut into {len(learning)} stages, not {count}: use fewer ranks "
                "in a pipeline, or --model resnet with more --layers"
            )
        cuts = [0, *learning[1:], len(self.layers)]
        ends = tuple(accumulate(partition)) or self._balanced(count, cuts, costs)
        before = [self.given, *(layer.passes for layer in self.layers)]
        return [
            NeuralNetwork(self.layers[cuts[start] : cuts[stop]], before[cuts[start]])
            for start, stop in pairwise([0, *ends])
        ]

    def _balanced(self, count: int, cuts: Sequence[int], costs: Sequence[float]) -> tuple[int, ...]:
        if not any(costs):
            costs = [layer.work for layer in self.layers]
        unit = max(costs) / RESOLUTION if any(isinstance(cost, float) for cost in costs) else 1
        work = [round(sum(costs[start:stop]) / unit) for start, stop in pairwise(cuts)]
        return balance(work, count)


RESOLUTION = 2**30
"""Seconds are balanced as so many parts of the maximum."""


def balance(work: Sequence[int], parts: int) -> tuple[int, ...]:
    """Return the ends of so many stretches of ``work``, none empty, with the smallest largest sum.

    Among equals the last stretches are the long ones. ``parts`` are at most as many as ``work``.
    The largest sum is found by bisection: whether it suffices, filling from the end shows.
    """
    sums = [0, *accumulate(work)]

    def filled(limit: int) -> list[int]:
        """Return the starts of stretches, the last one first, each as long as the limit admits."""
        starts, end = [], len(work)
        for left in reversed(range(parts)):
            end = max(left, bisect_left(sums, sums[end] - limit, hi=end))
            starts.append(end)
        return starts

    limits = range(max(work), sums[-1] + 1)
    smallest = limits[bisect_left(limits, True, key=lambda limit: filled(limit)[-1] == 0)]
    return (*reversed(filled(smallest)[:-1]), len(work))


def network(training: Training) -> NeuralNetwork:
    """Return the network to train; raise `UsageError` if none has so many layers."""
    if training.model in CIFAR_DEPTHS:
        return cifar(CIFAR_DEPTHS[training.model] or training.layers)
    with (PUBLISHED / f"{training.model}.csv").open(newline="") as file:
        given, *layers = (layer_of(row) for row in csv.DictReader(file))
    return NeuralNetwork(layers, given.passes)


def layer_of(row: dict[str, str]) -> Layer:
    """Return a row of a published network."""
    tensors = (word.partition(":") for word in row["tensors"].split())
    return Layer(
        row["layer"],
        tuple((name, tuple(map(int, shape.split("x")))) for name, _, shape in tensors),
        int(row["multiplications"]),
        int(row["kept"]),
        tuple(map(int, row["passes"].split("+"))),
    )


# Residual networks for CIFAR-10, as the example of Keras builds them.
#
# Their convolutions have a bias, and there is no normalization around a block. Version 1 is that of
# He et al. (CVPR 2016, section 4.2), version 2 has bottlenecks that normalize before they convolve
# (He et al.: Identity Mappings in Deep Residual Networks, ECCV 2016) with more channels.

CIFAR_SIDE, CIFAR_CLASSES = 32, 10
CIFAR_STEM = 16
"""Channels after the first convolution."""

CIFAR_DEPTHS = {"resnet110": 110, "resnet1001": 1001, "resnet": None}
"""Layers by the names that ``--model`` has; None: ``--layers``."""

CIFAR_GROUPS = 3
FIRST_VERSION, SECOND_VERSION = 2 * CIFAR_GROUPS, 3 * CIFAR_GROUPS
"""A network has 2 layers more than a multiple of this."""


class Images:
    """Layers put one after the other: images of ``side`` pixels and so many ``channels``.

    Within a residual block ``around`` has the same of what goes around its layers.
    """

    def __init__(self, side: int, channels: int) -> None:
        self.side, self.channels = side, channels
        self.around: tuple[int, int] | None = None
        self.layers: list[Layer] = []

    @property
    def numbers(self) -> int:
        """Numbers of an image."""
        return self.side**2 * self.channels

    def add(self, name: str, *tensors: tuple[str, Shape], work: int = 0, kept: int = 0) -> None:
        """Add a layer that has given images of this size."""
        around = () if self.around is None else (self.around[0] ** 2 * self.around[1],)
        passes = (*around, self.numbers)
        self.layers.append(Layer(name, tensors, work, kept, passes))

    def convolve(self, name: str, side: int, filters: int, stride: int = 1) -> None:
        """Add filters over images, with zeros around them, and a bias."""
        given, kept = self.channels, self.numbers
        self.side, self.channels = (self.side - 1) // stride + 1, filters
        weight = ("weight", (side, side, given, filters))
        work = side**2 * given * self.numbers
        self.add(name, weight, ("bias", (filters,)), work=work, kept=kept)

    def scale(self, name: str) -> None:
        """Add a factor and an offset for each channel: batch normalization."""
        each = (self.channels,)
        work = self.numbers
        self.add(name, ("weight", each), ("bias", each), work=work, kept=work)

    def fork(self, name: str) -> None:
        """Begin a residual block."""
        self.around = self.side, self.channels
        self.add(f"{name}.fork")

    def swap(self, name: str) -> None:
        """Continue with the layers around the block."""
        assert self.around is not None
        here, self.around = (self.side, self.channels), self.around
        (self.side, self.channels), self.around = self.around, here
        self.add(f"{name}.swap")

    def join(self, name: str) -> None:
        """End a residual block."""
        self.around = None
        self.add(f"{name}.join")


def cifar(depth: int) -> NeuralNetwork:
    """Return version 1 with so many layers if there is one, else version 2.

    Raises `UsageError` if there is neither.
    """
    images = Images(CIFAR_SIDE, 3)
    given = (images.numbers,)
    images.convolve("conv", 3, CIFAR_STEM)
    images.scale("bn")
    images.add("relu", kept=images.numbers)
    if (depth - 2) % FIRST_VERSION == 0 and depth > 2:
        _first_version(depth, images)
    elif (depth - 2) % SECOND_VERSION == 0 and depth > 2:
        _second_version(depth, images)
    else:
        near = min((abs(one - depth), one) for one in _depths(depth))[1]
        raise UsageError(
            f"no residual network has {depth} layers: choose 2 more than a multiple of "
            f"{FIRST_VERSION} or {SECOND_VERSION}, such as --layers {near}"
        )
    kept, features = images.numbers, images.channels
    images.side = 1
    images.add("avgpool", kept=kept)
    images.channels = CIFAR_CLASSES
    weights = ("weight", (features, CIFAR_CLASSES)), ("bias", (CIFAR_CLASSES,))
    images.add("dense", *weights, work=features * CIFAR_CLASSES, kept=features)
    return NeuralNetwork(images.layers, given)


def _depths(depth: int) -> Iterator[int]:
    """Return the numbers of layers, next to ``depth``, that networks can have."""
    for unit in (FIRST_VERSION, SECOND_VERSION):
        below = max(1, (depth - 2) // unit)
        yield from (below * unit + 2, (below + 1) * unit + 2)


def _first_version(depth: int, images: Images) -> None:
    for group in range(CIFAR_GROUPS):
        width = CIFAR_STEM << group
        for block in range((depth - 2) // FIRST_VERSION):
            name, stride = f"group{group + 1}.{block}", 2 if group and not block else 1
            given = images.channels
            images.fork(name)
            images.convolve(f"{name}.conv1", 3, width, stride)
            images.scale(f"{name}.bn1")
            images.add(f"{name}.relu1", kept=images.numbers)
            images.convolve(f"{name}.conv2", 3, width)
            images.scale(f"{name}.bn2")
            if given != width:
                images.swap(name)
                images.convolve(f"{name}.shortcut", 1, width, stride)
            images.join(name)
            images.add(f"{name}.relu2", kept=images.numbers)


def _second_version(depth: int, images: Images) -> None:
    width = CIFAR_STEM
    for group in range(CIFAR_GROUPS):
        gives = images.channels * (2 if group else 4)
        for block in range((depth - 2) // SECOND_VERSION):
            name, stride = f"group{group + 1}.{block}", 2 if group and not block else 1
            images.fork(name)
            for number, (side, outputs) in enumerate(((1, width), (3, width), (1, gives)), start=1):
                if (group, block, number) != (0, 0, 1):  # the stem has just normalized
                    images.scale(f"{name}.bn{number}")
                    images.add(f"{name}.relu{number}", kept=images.numbers)
                step = stride if number == 1 else 1
                images.convolve(f"{name}.conv{number}", side, outputs, step)
            if block == 0:
                images.swap(name)
                images.convolve(f"{name}.shortcut", 1, gives, stride)
            images.join(name)
        width = gives
    images.scale("bn.last")
    images.add("relu.last", kept=images.numbers)

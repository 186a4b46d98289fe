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
- ResNet for CIFAR-10, as the example of Keras builds it: convolutions have a bias, and there is no
  normalization around a block. 110 layers are version 1 (He et al., CVPR 2016, section 4.2), 1001
  version 2, whose bottlenecks normalize before they convolve (He et al., Identity Mappings in
  Deep Residual Networks, ECCV 2016), with more channels.
"""

from __future__ import annotations

import csv
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise
from math import prod
from pathlib import Path
from typing import TypeAlias

from omb_py.apps.training import RESIDUAL
from omb_py.core.errors import UsageError

PUBLISHED = Path(__file__).parent / "published"
"""A table for each network of its layers that learn: ``layer``, its ``tensors`` with their shapes,
``multiplications`` for one sample, and the numbers that the next one is given: it ``passes`` them
on. Inside a residual block these are two arrays, since what goes around the layers passes as well.
The first row is what the network is given. Rows of a block that is repeated have the first and the
last number of the blocks: ``layer1.[1-2].conv1``."""

BLOCKS = re.compile(r"(.*)\[(\d+)-(\d+)\]")
LAST = re.compile(r"\b\d\d+\b")

Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Layer:
    """A layer that learns: names and shapes of its tensors in order of declaration.

    Of a sample, ``work`` are multiplications, forward; ``passes`` the elements of each array that
    the next layer is given.
    """

    name: str
    tensors: tuple[tuple[str, Shape], ...]
    work: int
    passes: tuple[int, ...]


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
    def elements(self) -> int:
        """The numbers of all tensors together."""
        return sum(prod(shape) for _, shape in self.shapes)

    def stages(self, count: int) -> list[NeuralNetwork]:
        """Cut into so many networks, one after the other.

        Their work differs as little as can be, and each has one layer at least. Raises `UsageError`
        if there are not enough.
        """
        layers = len(self.layers)
        if count > layers:
            raise UsageError(
                f"the network can be cut into {layers} stages, not {count}: use fewer ranks in a "
                "pipeline, or a deeper --model, such as resnet1001"
            )
        ends = balance([layer.work for layer in self.layers], count)
        before = [self.given, *(layer.passes for layer in self.layers)]
        return [
            NeuralNetwork(self.layers[start:stop], before[start])
            for start, stop in pairwise([0, *ends])
        ]


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


def network(model: str, layers: int = 0) -> NeuralNetwork:
    """Return the network of a name that ``--model`` has, with so many layers if not 0.

    Raises `UsageError` for a depth that it cannot have.
    """
    published, more = model, 0
    if model in RESIDUAL:
        published, more = deepened(model, layers)
    with (PUBLISHED / f"{published}.csv").open(newline="") as file:
        # All groups have more than 10 blocks: numbers of two digits are those of the last blocks.
        rows = (
            row | {"layer": LAST.sub(lambda number: str(int(number[0]) + more), row["layer"])}
            for row in csv.DictReader(file)
        )
        given, *found = layers_of(rows)
    return NeuralNetwork(found, given.passes)


def deepened(model: str, layers: int) -> tuple[str, int]:
    """Return the published network with a model's blocks, and how many more a group has of them.

    Raises `UsageError` for numbers of layers that no number of blocks has.
    """
    published, step = RESIDUAL[model]
    layers = layers or int(model.removeprefix("resnet"))
    least = 2 * step + 2  # the first and the last block of a group are not the same
    nearest = max(least, 2 + step * round((layers - 2) / step))
    if layers != nearest:
        raise UsageError(
            f"--layers {layers}: {model} has {step}n+2 layers, at least {least}: use --layers "
            f"{nearest}"
        )
    return published, (layers - int(published.removeprefix("resnet"))) // step


def layers_of(rows: Iterable[dict[str, str]]) -> Iterator[Layer]:
    """Yield the layers in the rows of a published network, those of repeated blocks repeatedly."""

    def numbers(row: dict[str, str]) -> tuple[str, ...]:
        found = BLOCKS.match(row["layer"])
        return found.groups() if found else ()

    for block, same in groupby(rows, key=numbers):
        if not block:
            yield from map(layer_of, same)
            continue
        of_block = list(same)
        _, first, last = block
        for number in range(int(first), int(last) + 1):
            for row in of_block:
                name = row["layer"].replace(f"[{first}-{last}]", str(number))
                yield layer_of(row | {"layer": name})


def layer_of(row: dict[str, str]) -> Layer:
    """Return the layer of a row."""
    tensors = (word.partition(":") for word in row["tensors"].split())
    return Layer(
        row["layer"],
        tuple((own, tuple(map(int, shape.split("x")))) for own, _, shape in tensors),
        int(row["multiplications"]),
        tuple(map(int, row["passes"].split("+"))),
    )

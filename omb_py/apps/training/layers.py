"""Layers of neural networks: the shapes of what they give and learn, and how much they multiply.

Nothing is computed. A sample has no batch axis; images are height x width x channels.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import TypeAlias

Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Layer(ABC):
    """One step of a network; ``given`` is the shape of one sample that it is given."""

    given: Shape

    @property
    @abstractmethod
    def gives(self) -> Shape:
        """The shape of one sample that it gives."""

    @property
    def parameters(self) -> dict[str, Shape]:
        """The names of what it learns, in order of declaration, and their shapes."""
        return {}

    @property
    def work(self) -> int:
        """Multiplications for one sample; 0 where they do not count."""
        return 0


@dataclass(frozen=True)
class Reshape(Layer):
    """Its input in another shape: flattened."""

    to: Shape

    @property
    def gives(self) -> Shape:
        return self.to


@dataclass(frozen=True)
class Dense(Layer):
    """Every output is a weighted sum of all inputs, plus a bias; samples have one axis."""

    outputs: int

    @property
    def gives(self) -> Shape:
        return (self.outputs,)

    @property
    def parameters(self) -> dict[str, Shape]:
        return {"weight": (self.given[0], self.outputs), "bias": (self.outputs,)}

    @property
    def work(self) -> int:
        return self.given[0] * self.outputs


@dataclass(frozen=True)
class Windowed(Layer):
    """A layer whose pixels each come from a square of pixels of images.

    The squares have ``side`` pixels in a row and begin ``stride`` pixels apart. There are
    ``(side - 1) // 2`` pixels more around an image, which are not part of it.
    """

    side: int = 3
    stride: int = 1

    @property
    def gives(self) -> Shape:
        around = 2 * ((self.side - 1) // 2)
        height, width, channels = self.given
        along = ((axis + around - self.side) // self.stride + 1 for axis in (height, width))
        return (*along, channels)


@dataclass(frozen=True)
class Convolution(Windowed):
    """Filters over images, with zeros around them."""

    filters: int = 1
    bias: bool = True

    @property
    def gives(self) -> Shape:
        return (*super().gives[:2], self.filters)

    @property
    def parameters(self) -> dict[str, Shape]:
        weight = {"weight": (self.side, self.side, self.given[2], self.filters)}
        return weight | ({"bias": (self.filters,)} if self.bias else {})

    @property
    def work(self) -> int:
        return self.side**2 * self.given[2] * prod(self.gives)


@dataclass(frozen=True)
class DepthwiseConvolution(Windowed):
    """A filter for each channel, with zeros around images (Howard et al.: MobileNets, 2017)."""

    @property
    def parameters(self) -> dict[str, Shape]:
        return {"weight": (self.side, self.side, self.given[2])}

    @property
    def work(self) -> int:
        return self.side**2 * prod(self.gives)


@dataclass(frozen=True)
class Scale(Layer):
    """A factor and an offset for each channel: batch normalization."""

    @property
    def gives(self) -> Shape:
        return self.given

    @property
    def parameters(self) -> dict[str, Shape]:
        return {"weight": self.given[-1:], "bias": self.given[-1:]}

    @property
    def work(self) -> int:
        return prod(self.given)


@dataclass(frozen=True)
class ReLU(Layer):
    """What is negative becomes 0."""

    @property
    def gives(self) -> Shape:
        return self.given


@dataclass(frozen=True)
class MaxPooling(Windowed):
    """The maximum of each square of pixels."""

    side: int = 2
    stride: int = 2


@dataclass(frozen=True)
class MeanPooling(Layer):
    """The mean of all pixels of an image, for each channel."""

    @property
    def gives(self) -> Shape:
        return self.given[2:]


class Skip(Enum):
    """What a residual block does with the values on their way: they are a stack, and layers take
    the last of it."""

    FORK = "fork"
    """Take the last values twice: one will go through the layers that follow, one around them."""

    SWAP = "swap"
    """Exchange the last two, so that layers follow that are on the way around."""

    JOIN = "join"
    """Add the last two."""

    def shapes(self, stack: Sequence[Shape]) -> tuple[Shape, ...]:
        """The shapes of the stack after it."""
        *rest, last = stack
        if self is Skip.JOIN:
            return tuple(rest)
        return (*stack, last) if self is Skip.FORK else (*rest[:-1], last, rest[-1])

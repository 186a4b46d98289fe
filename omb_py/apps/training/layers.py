"""Layers of neural networks: what they compute, and the gradients of that.

A layer holds no numbers. It is given the module ``xp`` to compute with (NumPy or CuPy), its
parameters and a batch, whose first axis counts the samples. Gradients of parameters are sums over
the samples. Everything keeps the type of what it is given, and the same input gives the same bits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

Shape: TypeAlias = tuple[int, ...]

WINDOW = 3
"""Side of a convolution's filter."""

POOL = 2
"""Side of the squares that pooling makes one number of."""


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

    @abstractmethod
    def forward(self, xp: Any, parameters: Sequence[Any], values: Any) -> tuple[Any, Any]:
        """What it makes of a batch, and what it wants to know of that on the way back."""

    def learn(  # noqa: B027 - most learn nothing
        self, xp: Any, gradients: Sequence[Any], kept: Any, gradient: Any, add: bool
    ) -> None:
        """Write the gradients of its parameters, or add to them what this batch tells.

        ``gradient`` is that of what `forward` gave, ``kept`` what it kept.
        """

    @abstractmethod
    def backward(self, xp: Any, parameters: Sequence[Any], kept: Any, gradient: Any) -> Any:
        """The gradient of what it was given, from that of what it gave."""


@dataclass(frozen=True)
class Reshape(Layer):
    """Its input in another shape: flattened, or with an axis for channels."""

    to: Shape

    @property
    def gives(self) -> Shape:
        return self.to

    def forward(self, xp: Any, parameters: Sequence[Any], values: Any) -> tuple[Any, Any]:
        return values.reshape(len(values), *self.to), None

    def backward(self, xp: Any, parameters: Sequence[Any], kept: Any, gradient: Any) -> Any:
        return gradient.reshape(len(gradient), *self.given)


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

    def forward(self, xp: Any, parameters: Sequence[Any], values: Any) -> tuple[Any, Any]:
        weight, bias = parameters
        return values @ weight + bias, values

    def learn(self, xp: Any, gradients: Sequence[Any], kept: Any, gradient: Any, add: bool) -> None:
        learn_linear(xp, gradients, kept, gradient, add)

    def backward(self, xp: Any, parameters: Sequence[Any], kept: Any, gradient: Any) -> Any:
        return gradient @ parameters[0].T


@dataclass(frozen=True)
class Convolution(Layer):
    """Filters of 3 x 3 over images of height x width x channels, with zeros around them.

    Each pixel's neighbourhood becomes a row of a matrix ("im2col"; Chellapilla, Puri, Simard:
    High Performance Convolutional Neural Networks for Document Processing, IWFHR 2006), and the
    convolution is its product with the filters.
    """

    filters: int

    @property
    def gives(self) -> Shape:
        return (*self.given[:2], self.filters)

    @property
    def parameters(self) -> dict[str, Shape]:
        return {
            "weight": (WINDOW, WINDOW, self.given[2], self.filters),
            "bias": (self.filters,),
        }

    @property
    def work(self) -> int:
        return WINDOW**2 * prod(self.given) * self.filters

    def forward(self, xp: Any, parameters: Sequence[Any], values: Any) -> tuple[Any, Any]:
        weight, bias = parameters
        padded = xp.zeros(self._padded(values), values.dtype)
        padded[:, 1:-1, 1:-1] = values
        parts = [padded[:, top:bottom, left:right] for top, bottom, left, right in self._shifts()]
        rows = xp.concatenate(parts, axis=3).reshape(-1, WINDOW**2 * self.given[2])
        found = rows @ weight.reshape(-1, self.filters) + bias
        return found.reshape(len(values), *self.gives), rows

    def learn(self, xp: Any, gradients: Sequence[Any], kept: Any, gradient: Any, add: bool) -> None:
        weight, bias = gradients
        flat = gradient.reshape(-1, self.filters)
        learn_linear(xp, (weight.reshape(-1, self.filters), bias), kept, flat, add)

    def backward(self, xp: Any, parameters: Sequence[Any], kept: Any, gradient: Any) -> Any:
        channels = self.given[2]
        rows = gradient.reshape(-1, self.filters) @ parameters[0].reshape(-1, self.filters).T
        parts = rows.reshape(*gradient.shape[:3], WINDOW**2, channels)
        padded = xp.zeros(self._padded(gradient), gradient.dtype)
        for number, (top, bottom, left, right) in enumerate(self._shifts()):
            padded[:, top:bottom, left:right] += parts[:, :, :, number]
        return padded[:, 1:-1, 1:-1]

    def _padded(self, values: Any) -> Shape:
        """The shape of a batch of images with a pixel more on each side."""
        height, width, channels = self.given
        return (len(values), height + 2, width + 2, channels)

    def _shifts(self) -> list[tuple[int, int, int, int]]:
        """The parts of padded images, from top to bottom and left to right, under each weight."""
        height, width, _ = self.given
        return [
            (row, row + height, column, column + width)
            for row in range(WINDOW)
            for column in range(WINDOW)
        ]


@dataclass(frozen=True)
class ReLU(Layer):
    """What is negative becomes 0."""

    @property
    def gives(self) -> Shape:
        return self.given

    def forward(self, xp: Any, parameters: Sequence[Any], values: Any) -> tuple[Any, Any]:
        return xp.maximum(values, 0), values > 0

    def backward(self, xp: Any, parameters: Sequence[Any], kept: Any, gradient: Any) -> Any:
        return gradient * kept


@dataclass(frozen=True)
class MaxPooling(Layer):
    """The maximum of each 2 x 2 pixels, of images whose sides are even.

    Of equal ones the first is the maximum, and has the gradient.
    """

    @property
    def gives(self) -> Shape:
        height, width, channels = self.given
        return (height // POOL, width // POOL, channels)

    def forward(self, xp: Any, parameters: Sequence[Any], values: Any) -> tuple[Any, Any]:
        height, width, channels = self.gives
        squares = values.reshape(len(values), height, POOL, width, POOL, channels)
        squares = squares.transpose(0, 1, 3, 5, 2, 4)
        squares = squares.reshape(len(values), height, width, channels, POOL**2)
        return squares.max(axis=-1), squares.argmax(axis=-1)

    def backward(self, xp: Any, parameters: Sequence[Any], kept: Any, gradient: Any) -> Any:
        height, width, channels = self.gives
        squares = gradient[..., None] * (kept[..., None] == xp.arange(POOL**2))
        squares = squares.reshape(len(gradient), height, width, channels, POOL, POOL)
        return squares.transpose(0, 1, 4, 2, 5, 3).reshape(len(gradient), *self.given)


def learn_linear(xp: Any, gradients: Sequence[Any], rows: Any, gradient: Any, add: bool) -> None:
    """Gradients of weight and bias of ``rows @ weight + bias``, written or added."""
    weight, bias = gradients
    if add:
        weight += rows.T @ gradient
        bias += gradient.sum(axis=0)
    else:
        xp.matmul(rows.T, gradient, out=weight)
        gradient.sum(axis=0, out=bias)


def softmax_cross_entropy(xp: Any, scores: Any, labels: Any) -> tuple[Any, Any]:
    """How unlikely the scores of samples x classes make the labels, and the scores' gradient.

    The loss is the sum over the samples of -log(softmax(scores)[label]).
    """
    scores = scores - scores.max(axis=1, keepdims=True)
    gradient = xp.exp(scores)
    sums = gradient.sum(axis=1, keepdims=True)
    gradient /= sums
    chosen = xp.arange(len(labels)), labels
    loss = (xp.log(sums[:, 0]) - scores[chosen]).sum()
    gradient[chosen] -= 1
    return loss, gradient

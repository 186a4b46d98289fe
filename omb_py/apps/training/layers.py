"""Layers of neural networks: what they compute, and the gradients of that.

A layer holds no numbers. It is given the module ``xp`` to compute with (NumPy or CuPy), its
parameters and a batch, whose first axis counts the samples. Gradients of parameters are sums over
the samples. Everything keeps the type of what it is given, and the same input gives the same bits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import Any, TypeAlias

Shape: TypeAlias = tuple[int, ...]

Place: TypeAlias = tuple[slice, slice]
"""Rows and columns of images."""


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

    @property
    def terms(self) -> tuple[int, int]:
        """The numbers added up for one that it gives, and for the gradient of one it was given.

        They are products of two numbers, each rounded once. 0 where nothing is rounded.
        """
        return 0, 0

    def initial(self, random: Any) -> list[Any]:
        """Parameters to begin with, NumPy arrays of float32: biases 0, weights random.

        Weights are normal with variance 2 / inputs (He et al.: Delving Deep into Rectifiers,
        ICCV 2015).
        """
        import numpy as np

        found = []
        for shape in self.parameters.values():
            if len(shape) == 1:
                found.append(np.zeros(shape, np.float32))
                continue
            deviation = (2 / prod(shape[:-1])) ** 0.5
            found.append(random.normal(0, deviation, shape).astype(np.float32))
        return found

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

    @property
    def terms(self) -> tuple[int, int]:
        return self.given[0] + 1, self.outputs

    def forward(self, xp: Any, parameters: Sequence[Any], values: Any) -> tuple[Any, Any]:
        weight, bias = parameters
        return values @ weight + bias, values

    def learn(self, xp: Any, gradients: Sequence[Any], kept: Any, gradient: Any, add: bool) -> None:
        learn_linear(xp, gradients, kept, gradient, add)

    def backward(self, xp: Any, parameters: Sequence[Any], kept: Any, gradient: Any) -> Any:
        return gradient @ parameters[0].T


@dataclass(frozen=True)
class Windowed(Layer):
    """A layer whose pixels each come from a square of pixels of images, height x width x channels.

    The squares have ``side`` pixels in a row and begin ``stride`` pixels apart. There are
    ``(side - 1) // 2`` pixels more around an image, which are not part of it.
    """

    side: int = 3
    stride: int = 1

    @property
    def gives(self) -> Shape:
        return (*(self._along(axis) for axis in range(2)), self.given[2])

    @property
    def around(self) -> int:
        """The pixels more on each side of an image."""
        return (self.side - 1) // 2

    def _along(self, axis: int) -> int:
        """The pixels that it gives along an axis."""
        return (self.given[axis] + 2 * self.around - self.side) // self.stride + 1

    def padded(self, xp: Any, values: Any, outside: float = 0.0) -> Any:
        """A batch of images with the pixels around them, which are ``outside``."""
        if not self.around:
            return values
        inside = slice(self.around, -self.around)
        found = xp.full(self._padded_shape(len(values)), outside, values.dtype)
        found[:, inside, inside] = values
        return found

    def summed(self, xp: Any, parts: Iterator[Any], like: Any) -> Any:
        """The sums, for each pixel of the images, of what ``parts`` say of it, one part for each
        place of the square in the order of `places`."""
        found = xp.zeros(self._padded_shape(len(like)), like.dtype)
        for (rows, columns), part in zip(self.places(), parts, strict=True):
            found[:, rows, columns] += part
        if not self.around:
            return found
        inside = slice(self.around, -self.around)
        return found[:, inside, inside]

    def places(self) -> Iterator[Place]:
        """The pixels of padded images under each place of the square, row by row."""
        height, width = self._along(0), self._along(1)
        for row in range(self.side):
            for column in range(self.side):
                yield (
                    slice(row, row + self.stride * (height - 1) + 1, self.stride),
                    slice(column, column + self.stride * (width - 1) + 1, self.stride),
                )

    def _padded_shape(self, samples: int) -> Shape:
        height, width, channels = self.given
        return (samples, height + 2 * self.around, width + 2 * self.around, channels)


@dataclass(frozen=True)
class Convolution(Windowed):
    """Filters over images, with zeros around them.

    Each pixel's neighbourhood becomes a row of a matrix ("im2col"; Chellapilla, Puri, Simard:
    High Performance Convolutional Neural Networks for Document Processing, IWFHR 2006), and the
    convolution is its product with the filters. One that ``begins_as_zero`` is the last of a
    residual branch, which then begins as the identity (Zhang, Dauphin, Ma: Fixup Initialization,
    ICLR 2019).
    """

    filters: int = 1
    bias: bool = True
    begins_as_zero: bool = False

    @property
    def gives(self) -> Shape:
        return (*super().gives[:2], self.filters)

    @property
    def parameters(self) -> dict[str, Shape]:
        weight = {"weight": (self.side, self.side, self.given[2], self.filters)}
        return weight | ({"bias": (self.filters,)} if self.bias else {})

    @property
    def work(self) -> int:
        return self._inputs * prod(self.gives)

    @property
    def terms(self) -> tuple[int, int]:
        return self._inputs + 1, self.side**2 * self.filters

    @property
    def _inputs(self) -> int:
        """The numbers that make one number of what it gives."""
        return self.side**2 * self.given[2]

    def initial(self, random: Any) -> list[Any]:
        return [one * (not self.begins_as_zero) for one in super().initial(random)]

    def forward(self, xp: Any, parameters: Sequence[Any], values: Any) -> tuple[Any, Any]:
        padded = self.padded(xp, values)
        parts = [padded[:, rows, columns] for rows, columns in self.places()]
        rows = xp.concatenate(parts, axis=3).reshape(-1, self._inputs)
        found = rows @ parameters[0].reshape(-1, self.filters)
        if self.bias:
            found = found + parameters[1]
        return found.reshape(len(values), *self.gives), rows

    def learn(self, xp: Any, gradients: Sequence[Any], kept: Any, gradient: Any, add: bool) -> None:
        weight = gradients[0].reshape(-1, self.filters)
        flat = gradient.reshape(-1, self.filters)
        learn_linear(xp, (weight, *gradients[1:]), kept, flat, add)

    def backward(self, xp: Any, parameters: Sequence[Any], kept: Any, gradient: Any) -> Any:
        rows = gradient.reshape(-1, self.filters) @ parameters[0].reshape(-1, self.filters).T
        parts = rows.reshape(*gradient.shape[:3], self.side**2, self.given[2])
        by_place = (parts[:, :, :, place] for place in range(self.side**2))
        return self.summed(xp, by_place, gradient)


@dataclass(frozen=True)
class DepthwiseConvolution(Windowed):
    """A filter for each channel, with zeros around images (Howard et al.: MobileNets, 2017)."""

    @property
    def parameters(self) -> dict[str, Shape]:
        return {"weight": (self.side, self.side, self.given[2])}

    @property
    def work(self) -> int:
        return self.side**2 * prod(self.gives)

    @property
    def terms(self) -> tuple[int, int]:
        return self.side**2, self.side**2

    def forward(self, xp: Any, parameters: Sequence[Any], values: Any) -> tuple[Any, Any]:
        padded = self.padded(xp, values)
        found = xp.zeros((len(values), *self.gives), values.dtype)
        for place, weight in zip(self.places(), self._weights(parameters[0]), strict=True):
            found += padded[:, place[0], place[1]] * weight
        return found, padded

    def learn(self, xp: Any, gradients: Sequence[Any], kept: Any, gradient: Any, add: bool) -> None:
        for place, weight in zip(self.places(), self._weights(gradients[0]), strict=True):
            found = (kept[:, place[0], place[1]] * gradient).sum(axis=(0, 1, 2))
            weight[...] = weight + found if add else found

    def backward(self, xp: Any, parameters: Sequence[Any], kept: Any, gradient: Any) -> Any:
        by_place = (gradient * weight for weight in self._weights(parameters[0]))
        return self.summed(xp, by_place, gradient)

    def _weights(self, weight: Any) -> Any:
        """A row for each place of the square, one number for each channel."""
        return weight.reshape(-1, self.given[2])


@dataclass(frozen=True)
class Scale(Layer):
    """A factor and an offset for each channel: batch normalization whose statistics are fixed.

    So a sample does not depend on the others of its batch, and a batch can be divided. One that
    ``begins_as_zero`` is the last of a residual branch (Goyal et al.: Accurate, Large Minibatch
    SGD, 2017, section 5.1).
    """

    begins_as_zero: bool = False

    @property
    def gives(self) -> Shape:
        return self.given

    @property
    def parameters(self) -> dict[str, Shape]:
        return {"weight": self.given[-1:], "bias": self.given[-1:]}

    @property
    def work(self) -> int:
        return prod(self.given)

    @property
    def terms(self) -> tuple[int, int]:
        return 2, 1

    def initial(self, random: Any) -> list[Any]:
        factor, offset = super().initial(random)
        return [factor + (not self.begins_as_zero), offset]

    def forward(self, xp: Any, parameters: Sequence[Any], values: Any) -> tuple[Any, Any]:
        factor, offset = parameters
        return values * factor + offset, values

    def learn(self, xp: Any, gradients: Sequence[Any], kept: Any, gradient: Any, add: bool) -> None:
        axes = tuple(range(gradient.ndim - 1))
        found = (kept * gradient).sum(axis=axes), gradient.sum(axis=axes)
        for own, one in zip(gradients, found, strict=True):
            own[...] = own + one if add else one

    def backward(self, xp: Any, parameters: Sequence[Any], kept: Any, gradient: Any) -> Any:
        return gradient * parameters[0]


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
class MaxPooling(Windowed):
    """The maximum of each square of pixels; of equal ones the first, which has the gradient."""

    side: int = 2
    stride: int = 2

    @property
    def terms(self) -> tuple[int, int]:
        return 0, self.side**2

    def forward(self, xp: Any, parameters: Sequence[Any], values: Any) -> tuple[Any, Any]:
        padded = self.padded(xp, values, -xp.inf)
        squares = xp.stack([padded[:, rows, columns] for rows, columns in self.places()])
        return squares.max(axis=0), squares.argmax(axis=0)

    def backward(self, xp: Any, parameters: Sequence[Any], kept: Any, gradient: Any) -> Any:
        by_place = (gradient * (kept == place) for place in range(self.side**2))
        return self.summed(xp, by_place, gradient)


@dataclass(frozen=True)
class MeanPooling(Layer):
    """The mean of all pixels of an image, for each channel."""

    @property
    def gives(self) -> Shape:
        return self.given[2:]

    @property
    def terms(self) -> tuple[int, int]:
        return self._pixels, 1

    @property
    def _pixels(self) -> int:
        return prod(self.given[:2])

    def forward(self, xp: Any, parameters: Sequence[Any], values: Any) -> tuple[Any, Any]:
        return values.sum(axis=(1, 2)) / self._pixels, None

    def backward(self, xp: Any, parameters: Sequence[Any], kept: Any, gradient: Any) -> Any:
        shared = (gradient / self._pixels)[:, None, None]
        return xp.broadcast_to(shared, (len(gradient), *self.given))


class Skip(Enum):
    """What a residual block does with the values on their way: they are a stack, and layers take
    the last of it."""

    FORK = "fork"
    """Take the last values twice: one will go through the layers that follow, one around them."""

    SWAP = "swap"
    """Exchange the last two, so that layers follow that are on the way around."""

    JOIN = "join"
    """Add the last two."""

    def forward(self, stack: Sequence[Any]) -> tuple[Any, ...]:
        """The stack after it."""
        return self._undo(stack) if self is Skip.JOIN else self._apply(stack)

    def backward(self, gradients: Sequence[Any]) -> tuple[Any, ...]:
        """The gradients of the stack before it, from those of the stack after it."""
        return self._undo(gradients) if self is Skip.FORK else self._apply(gradients)

    def shapes(self, stack: Sequence[Shape]) -> tuple[Shape, ...]:
        """The shapes of the stack after it."""
        return tuple(stack[:-1]) if self is Skip.JOIN else self._apply(stack)

    def _apply(self, stack: Sequence[Any]) -> tuple[Any, ...]:
        *rest, last = stack
        return (*stack, last) if self is not Skip.SWAP else (*rest[:-1], last, rest[-1])

    def _undo(self, stack: Sequence[Any]) -> tuple[Any, ...]:
        *rest, other, last = stack
        return (*rest, last + other)


def learn_linear(xp: Any, gradients: Sequence[Any], rows: Any, gradient: Any, add: bool) -> None:
    """Gradients of weight, and of bias where there is one, of ``rows @ weight + bias``, written or
    added."""
    weight, *biases = gradients
    if add:
        weight += rows.T @ gradient
    else:
        xp.matmul(rows.T, gradient, out=weight)
    for bias in biases:
        bias[...] = bias + gradient.sum(axis=0) if add else gradient.sum(axis=0)


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

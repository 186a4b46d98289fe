"""Networks that learn: lists of layers, which can be cut into stages."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import accumulate, pairwise
from math import prod
from typing import Any

from omb_py.apps.training import Training
from omb_py.apps.training.layers import (
    Convolution,
    Dense,
    Layer,
    MaxPooling,
    ReLU,
    Reshape,
    Shape,
    softmax_cross_entropy,
)
from omb_py.core.errors import UsageError
from omb_py.tracing.recorder.annotation import phase

FILTERS = (16, 32)
"""Of the two convolutions of cnn."""

UNTIMED: AbstractContextManager[Any] = nullcontext()


def unheard(tensor: int) -> None:
    """What to do with a gradient that is ready, where nobody waits for it."""


class Network:
    """Layers one after the other, in memory that somebody else allocated.

    ``shapes`` are the names and shapes of the parameters, in order of declaration. ``given`` and
    ``gives`` are the shapes of one sample that goes in and of what comes out.
    """

    def __init__(self, xp: Any, layers: Sequence[tuple[str, Layer]]) -> None:
        """``xp`` is NumPy or CuPy; names of layers come before those of their parameters."""
        self.xp = xp
        self._layers = list(layers)
        self.given: Shape = layers[0][1].given
        self.gives: Shape = layers[-1][1].gives
        self.shapes: list[tuple[str, Shape]] = []
        self._tensors: list[range] = []
        for name, layer in layers:
            first = len(self.shapes)
            self.shapes += [(f"{name}.{own}", shape) for own, shape in layer.parameters.items()]
            self._tensors.append(range(first, len(self.shapes)))
        self._parameters: list[list[Any]] = []
        self._gradients: list[list[Any]] = []

    def bind(self, parameters: Sequence[Any], gradients: Sequence[Any]) -> None:
        """Use these arrays of ``xp``, of the sizes and in the order of ``shapes``, from now on."""
        shapes = [shape for _, shape in self.shapes]
        own, learned = (
            [one.reshape(shape) for one, shape in zip(arrays, shapes, strict=True)]
            for arrays in (parameters, gradients)
        )
        self._parameters = [[own[tensor] for tensor in tensors] for tensors in self._tensors]
        self._gradients = [[learned[tensor] for tensor in tensors] for tensors in self._tensors]

    def initial(self, seed: int) -> list[Any]:
        """Parameters to begin with, NumPy arrays of float32: biases 0, weights random.

        Weights are normal with variance 2 / inputs (He et al.: Delving Deep into Rectifiers,
        ICCV 2015).
        """
        import numpy as np

        random = np.random.default_rng(seed)
        found = []
        for _, shape in self.shapes:
            if len(shape) == 1:
                found.append(np.zeros(shape, np.float32))
                continue
            deviation = (2 / prod(shape[:-1])) ** 0.5
            found.append(random.normal(0, deviation, shape).astype(np.float32))
        return found

    def loss_and_gradients(
        self,
        samples: Any,
        labels: Any,
        ready: Callable[[int], None] = unheard,
        computing: AbstractContextManager[Any] = UNTIMED,
    ) -> float:
        """The sum of the losses of a batch; the gradients are sums over its samples too.

        Calls ``ready(i)`` as soon as gradient ``i`` is complete, the last declared one first.
        Layers are computed inside ``computing``, and ``ready`` is called outside of it, so that it
        may compute or communicate. A batch without samples has gradients of 0.
        """
        with phase("forward"), computing:
            scores, kept = self.forward(samples)
            loss, gradient = softmax_cross_entropy(self.xp, scores, labels)
        with phase("backward"):
            self.backward(kept, gradient, ready, computing)
        return float(loss)

    def forward(self, values: Any) -> tuple[Any, list[Any]]:
        """What the last layer gives, and what `backward` needs of each."""
        kept = []
        for (_, layer), parameters in zip(self._layers, self._parameters, strict=True):
            values, own = layer.forward(self.xp, parameters, values)
            kept.append(own)
        return values, kept

    def backward(
        self,
        kept: Sequence[Any],
        gradient: Any,
        ready: Callable[[int], None] = unheard,
        computing: AbstractContextManager[Any] = UNTIMED,
        add: bool = False,
        onward: bool = False,
    ) -> Any:
        """Gradients from that of what `forward` gave; ``add`` adds them to those of other samples.

        ``ready`` and ``computing`` are as in `loss_and_gradients`. Returns the gradient of what
        `forward` was given if it goes ``onward``, to the stage before; else None.
        """
        for number in reversed(range(len(self._layers))):
            layer = self._layers[number][1]
            if self._tensors[number]:
                with computing:
                    layer.learn(self.xp, self._gradients[number], kept[number], gradient, add)
                for tensor in reversed(self._tensors[number]):
                    ready(tensor)
            if number > 0 or onward:
                with computing:
                    parameters = self._parameters[number]
                    gradient = layer.backward(self.xp, parameters, kept[number], gradient)
        return gradient if onward else None

    def descend(self, rate: float) -> None:
        """One step of stochastic gradient descent: parameters less ``rate`` times gradients."""
        for parameters, gradients in zip(self._parameters, self._gradients, strict=True):
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter -= rate * gradient

    @property
    def work(self) -> int:
        """Multiplications for one sample, forward."""
        return sum(layer.work for _, layer in self._layers)

    def stages(self, count: int) -> list[Network]:
        """Cut into so many networks, one after the other, whose work differs as little as can be.

        Each has at least one layer that learns, and those after it up to the next that does. Raises
        `UsageError` where there are not enough of them.
        """
        learning = [number for number, tensors in enumerate(self._tensors) if tensors]
        if count > len(learning):
            raise UsageError(
                f"the network can be cut into {len(learning)} stages, not {count}: use fewer ranks "
                "in a pipeline, or --model mlp with more --layers"
            )
        cuts = [0, *learning[1:], len(self._layers)]
        work = [
            sum(layer.work for _, layer in self._layers[start:stop])
            for start, stop in pairwise(cuts)
        ]
        return [
            Network(self.xp, self._layers[cuts[start] : cuts[stop]])
            for start, stop in pairwise([0, *balance(work, count)])
        ]


def balance(work: Sequence[int], parts: int) -> tuple[int, ...]:
    """Where stretches of ``work`` end, so many and none empty, whose largest sum is smallest.

    Among equals the last stretches are the long ones. ``parts`` are at most as many as ``work``.
    The largest sum is found by bisection: whether it suffices, filling from the end shows.
    """
    sums = [0, *accumulate(work)]

    def filled(limit: int) -> list[int]:
        """Where stretches begin, the last one first, each as long as the limit admits."""
        starts, end = [], len(work)
        for left in reversed(range(parts)):
            end = max(left, bisect_left(sums, sums[end] - limit, hi=end))
            starts.append(end)
        return starts

    limits = range(max(work), sums[-1] + 1)
    smallest = limits[bisect_left(limits, True, key=lambda limit: filled(limit)[-1] == 0)]
    return (*reversed(filled(smallest)[:-1]), len(work))


def network(training: Training, xp: Any, classes: int, shape: Shape) -> Network:
    """The network to train, for samples of ``shape`` and so many classes."""
    layers = LAYERS[training.model](training, classes, shape)
    seen: dict[str, int] = {}
    named = []
    for layer in layers:
        kind = type(layer).__name__.lower()
        seen[kind] = seen.get(kind, 0) + 1
        named.append((f"{kind}{seen[kind]}", layer))
    return Network(xp, named)


def perceptron(training: Training, classes: int, shape: Shape) -> list[Layer]:
    """Dense layers with ReLU between them."""
    layers: list[Layer] = [Reshape(shape, (prod(shape),))]
    for _ in range(training.layers - 1):
        layers.append(Dense(layers[-1].gives, training.hidden))
        layers.append(ReLU(layers[-1].gives))
    layers.append(Dense(layers[-1].gives, classes))
    return layers


def convolutional(training: Training, classes: int, shape: Shape) -> list[Layer]:
    """Twice a convolution, ReLU and pooling, then a dense layer."""
    layers: list[Layer] = [Reshape(shape, (*shape, 1))]
    for filters in FILTERS:
        layers.append(Convolution(layers[-1].gives, filters))
        layers.append(ReLU(layers[-1].gives))
        layers.append(MaxPooling(layers[-1].gives))
    layers.append(Reshape(layers[-1].gives, (prod(layers[-1].gives),)))
    layers.append(Dense(layers[-1].gives, classes))
    return layers


LAYERS: dict[str, Callable[[Training, int, Shape], list[Layer]]] = {
    "mlp": perceptron,
    "cnn": convolutional,
}
"""The layers of each model that really learns."""


def views(flat: Any, shapes: Sequence[tuple[str, Shape]]) -> list[Any]:
    """The tensors that lie back to back in a flat array, not copied."""
    found, start = [], 0
    for _, shape in shapes:
        found.append(flat[start : start + prod(shape)].reshape(shape))
        start += prod(shape)
    return found


def elements(shapes: Sequence[tuple[str, Shape]]) -> int:
    """The numbers of all tensors together."""
    return sum(prod(shape) for _, shape in shapes)

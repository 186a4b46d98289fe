"""Networks that learn: lists of layers, which can be cut into stages."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import accumulate, pairwise
from math import prod
from typing import Any, TypeAlias

from omb_py.apps.training.layers import Layer, Shape, Skip, softmax_cross_entropy
from omb_py.core.errors import UsageError
from omb_py.tracing.recorder.annotation import phase

UNTIMED: AbstractContextManager[Any] = nullcontext()

Stack: TypeAlias = tuple[Any, ...]
"""Arrays between two layers: the last is what the next layer takes, those before are on their way
around layers of a residual block."""

Named: TypeAlias = tuple[str, "Layer | Skip"]


def nobody(tensor: int) -> None:
    """What to do with a gradient that is ready, where nobody waits for it."""


class Network:
    """Layers one after the other, in memory that somebody else allocated.

    ``shapes`` are the names and shapes of the parameters, in order of declaration. ``given`` and
    ``gives`` are the shapes of one sample of the stacks that go in and come out; ``tensors`` are
    the numbers of each layer's parameters.

    ``observe``, where it is set, is called with the number of each layer and the stacks before and
    after it, ``observe_back`` with the gradients of the latter and of the former (None where they
    are not needed).
    """

    def __init__(
        self, xp: Any, layers: Sequence[Named], given: tuple[Shape, ...] | None = None
    ) -> None:
        """``xp`` is NumPy or CuPy; names of layers come before those of their parameters.

        ``given`` is needed where the first layer is inside a residual block.
        """
        self.xp = xp
        self.layers = list(layers)
        first = layers[0][1]
        self.given = given or ((first.given,) if isinstance(first, Layer) else ())
        self.shapes: list[tuple[str, Shape]] = []
        self.tensors: list[range] = []
        self._stacks = [self.given]
        for name, layer in layers:
            count = len(self.shapes)
            self._stacks.append(shapes_after(layer, self._stacks[-1]))
            if isinstance(layer, Layer):
                self.shapes += [(f"{name}.{own}", shape) for own, shape in layer.parameters.items()]
            self.tensors.append(range(count, len(self.shapes)))
        self.gives = self._stacks[-1]
        self._parameters: list[list[Any]] = []
        self._gradients: list[list[Any]] = []
        self.observe: Callable[[int, Stack, Stack], None] | None = None
        self.observe_back: Callable[[int, Stack, Stack | None], None] | None = None

    def bind(self, parameters: Sequence[Any], gradients: Sequence[Any]) -> None:
        """Use these arrays of ``xp``, of the sizes and in the order of ``shapes``, from now on."""
        shapes = [shape for _, shape in self.shapes]
        own, learned = (
            [one.reshape(shape) for one, shape in zip(arrays, shapes, strict=True)]
            for arrays in (parameters, gradients)
        )
        self._parameters = [[own[tensor] for tensor in tensors] for tensors in self.tensors]
        self._gradients = [[learned[tensor] for tensor in tensors] for tensors in self.tensors]

    def initial(self, seed: int) -> list[Any]:
        """Parameters to begin with, NumPy arrays of float32, as each layer says."""
        import numpy as np

        random = np.random.default_rng(seed)
        layers = [layer for _, layer in self.layers if isinstance(layer, Layer)]
        return [one for layer in layers for one in layer.initial(random)]

    def loss_and_gradients(
        self,
        samples: Any,
        labels: Any,
        ready: Callable[[int], None] = nobody,
        computing: AbstractContextManager[Any] = UNTIMED,
    ) -> float:
        """The sum of the losses of a batch; the gradients are sums over its samples too.

        Calls ``ready(i)`` as soon as gradient ``i`` is complete, the last declared one first.
        Layers are computed inside ``computing``, and ``ready`` is called outside of it, so that it
        may compute or communicate. A batch without samples has gradients of 0.
        """
        with phase("forward"), computing:
            (scores,), kept = self.forward((samples,))
            loss, gradient = softmax_cross_entropy(self.xp, scores, labels)
        with phase("backward"):
            self.backward(kept, (gradient,), ready, computing)
        return float(loss)

    def forward(self, stack: Stack) -> tuple[Stack, list[Any]]:
        """What the last layer gives, and what `backward` needs of each."""
        kept: list[Any] = []
        for number, (_, layer) in enumerate(self.layers):
            before, own = stack, None
            if isinstance(layer, Skip):
                stack = layer.forward(stack)
            else:
                values, own = layer.forward(self.xp, self._parameters[number], stack[-1])
                stack = (*stack[:-1], values)
            kept.append(own)
            if self.observe is not None:
                self.observe(number, before, stack)
        return stack, kept

    def backward(
        self,
        kept: Sequence[Any],
        gradients: Stack,
        ready: Callable[[int], None] = nobody,
        computing: AbstractContextManager[Any] = UNTIMED,
        add: bool = False,
        onward: bool = False,
    ) -> Stack | None:
        """Gradients from those of what `forward` gave; ``add`` adds them to other samples'.

        ``ready`` and ``computing`` are as in `loss_and_gradients`. Returns the gradients of what
        `forward` was given if they go ``onward``, to the stage before; else None.
        """
        for number in reversed(range(len(self.layers))):
            layer, given = self.layers[number][1], gradients
            needed = number > 0 or onward
            if isinstance(layer, Skip):
                with computing:
                    gradients = layer.backward(gradients)
            else:
                own = self._gradients[number]
                if own:
                    with computing:
                        layer.learn(self.xp, own, kept[number], gradients[-1], add)
                    for tensor in reversed(self.tensors[number]):
                        ready(tensor)
                if needed:
                    with computing:
                        parameters = self._parameters[number]
                        last = layer.backward(self.xp, parameters, kept[number], gradients[-1])
                        gradients = (*gradients[:-1], last)
            if self.observe_back is not None:
                self.observe_back(number, given, gradients if needed else None)
        return gradients if onward else None

    def descend(self, rate: float) -> None:
        """One step of stochastic gradient descent: parameters less ``rate`` times gradients."""
        for parameters, gradients in zip(self._parameters, self._gradients, strict=True):
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter -= rate * gradient

    @property
    def work(self) -> int:
        """Multiplications for one sample, forward."""
        return sum(work_of(layer) for _, layer in self.layers)

    @property
    def learning(self) -> int:
        """How many of its layers learn."""
        return sum(map(bool, self.tensors))

    @property
    def values(self) -> int:
        """The numbers of one sample that are kept for the way back: what layers are given."""
        return sum(prod(layer.given) for _, layer in self.layers if isinstance(layer, Layer))

    def parameters_of(self, number: int) -> list[Any]:
        """The arrays that layer ``number`` learns."""
        return self._parameters[number]

    def stages(
        self, count: int, partition: Sequence[int] = (), costs: Sequence[float] = ()
    ) -> list[Network]:
        """Cut into so many networks, one after the other.

        Their ``costs``, of each layer (None given: its work), differ as little as can be, unless
        ``partition`` gives how many layers that learn each has. Each has at least one of them, and
        those after it up to the next that does. Raises `UsageError` where there are not enough.
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
                "in a pipeline, or --model mlp or resnet with more --layers"
            )
        cuts = [0, *learning[1:], len(self.layers)]
        ends = tuple(accumulate(partition)) or self._balanced(count, cuts, costs)
        return [
            Network(self.xp, self.layers[cuts[start] : cuts[stop]], self._stacks[cuts[start]])
            for start, stop in pairwise([0, *ends])
        ]

    def _balanced(self, count: int, cuts: Sequence[int], costs: Sequence[float]) -> tuple[int, ...]:
        if not any(costs):
            costs = [work_of(layer) for _, layer in self.layers]
        unit = max(costs) / RESOLUTION if any(isinstance(cost, float) for cost in costs) else 1
        work = [round(sum(costs[start:stop]) / unit) for start, stop in pairwise(cuts)]
        return balance(work, count)


RESOLUTION = 2**30
"""Seconds are balanced as so many parts of the maximum."""


def shapes_after(layer: Layer | Skip, stack: tuple[Shape, ...]) -> tuple[Shape, ...]:
    """The shapes of a stack after a layer."""
    if isinstance(layer, Skip):
        return layer.shapes(stack)
    return (*stack[:-1], layer.gives)


def work_of(layer: Layer | Skip) -> int:
    """Multiplications for one sample, forward."""
    return layer.work if isinstance(layer, Layer) else 0


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


def elements(shapes: Sequence[tuple[str, Shape]]) -> int:
    """The numbers of all tensors together."""
    return sum(prod(shape) for _, shape in shapes)

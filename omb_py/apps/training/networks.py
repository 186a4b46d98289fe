"""Networks: lists of layers, which can be cut into stages."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate, pairwise
from math import prod
from typing import TypeAlias

from omb_py.apps.training.layers import Layer, Shape, Skip
from omb_py.core.errors import UsageError

Named: TypeAlias = tuple[str, "Layer | Skip"]


class Network:
    """Layers one after the other.

    ``shapes`` are the names and shapes of the parameters, in order of declaration. ``given`` and
    ``gives`` are the shapes of one sample of the stacks that go in and come out; ``tensors`` are
    the numbers of each layer's parameters.
    """

    def __init__(self, layers: Sequence[Named], given: tuple[Shape, ...] | None = None) -> None:
        """Names of layers come before those of their parameters.

        ``given`` is needed where the first layer is inside a residual block.
        """
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
                "in a pipeline, or --model resnet with more --layers"
            )
        cuts = [0, *learning[1:], len(self.layers)]
        ends = tuple(accumulate(partition)) or self._balanced(count, cuts, costs)
        return [
            Network(self.layers[cuts[start] : cuts[stop]], self._stacks[cuts[start]])
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

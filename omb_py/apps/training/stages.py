"""One stage of a network on a rank, and how long its layers compute.

A network in one piece is one stage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from time import perf_counter, sleep
from typing import Any

from omb_py.apps.runtime.distribution import broadcast
from omb_py.apps.runtime.team import Array, Team
from omb_py.apps.training import Training
from omb_py.apps.training.networks import NeuralNetwork
from omb_py.core.datatypes import BRAIN
from omb_py.tracing.recorder.annotation import phase

FORWARD = 1 / 3
"""Part of a step's time in the forward pass. The backward pass takes about twice as long: for each
product of a layer it has two of the same size, for the gradients of weights and of inputs."""


class Delay:
    """Computing that takes a known time: waits, and lets other processes run.

    What the rank does between two delays of a step is taken off the next one: so it is where a
    device computes while the processor communicates.
    """

    def __init__(self, computing: AbstractContextManager[None]) -> None:
        """``computing`` adds the time in it to that of computing."""
        self._computing = computing
        self._end = 0.0

    def begin(self) -> None:
        """Begin a step."""
        self._end = perf_counter()

    def resume(self) -> None:
        """Note that the data for the next computing has just arrived."""
        self._end = max(self._end, perf_counter())

    def spend(self, seconds: float) -> None:
        """Compute for so long."""
        self._end += seconds
        if perf_counter() < self._end:
            with self._computing:
                while perf_counter() < self._end:
                    sleep(0)


PERIOD = 61
"""Gradients are so many different whole numbers, over and over, times the rank's `factor`."""

STRIDE = 4096
"""Distance of elements whose first one is new in each step. The others are averages after the first
step, and stay unchanged; to write all of them would take too long."""

VALUES = 8
"""Number of values that a new element takes, one after the other."""


class Stage:
    """Layers whose computing takes as long as each of them would, with known messages.

    So averages can be checked, and the messages of the neighbouring stages. ``gradients`` are in
    memory of the buffer library.
    """

    def __init__(
        self,
        team: Team,
        replicas: Team,
        training: Training,
        layers: NeuralNetwork,
        unit: float,
    ) -> None:
        """``unit`` are the seconds that one of the layers' multiplications counts as."""
        self.team = team
        self.gradients = [team.array(shape) for _, shape in layers.shapes]
        self._replicas = replicas
        self._forward = FORWARD * unit * layers.work
        self._backward = [
            ((1 - FORWARD) * unit * layer.work, tensors)
            for layer, tensors in zip(layers.layers, layers.tensors, strict=True)
        ]
        self._delay = Delay(team.computing)
        self._datatype = training.datatype
        for tensor, gradient in enumerate(self.gradients):
            gradient.data[...] = self._pattern(tensor, gradient, factor(replicas))
        self._new = [one.data.reshape(-1)[::STRIDE] for one in self.gradients]
        self._step = 0
        self._weights: Array | None = None
        self._broadcasts: list[Callable[[], None]] = []
        if replicas.ranks > 1:
            sizes = [one.data.size for one in self.gradients]
            self._weights = team.array(max(sizes))
            self._broadcasts = [
                broadcast(replicas, self._weights.rows(0, size), training.broadcast)
                for size in sizes
            ]

    def restart(self) -> None:
        """Begin with the first weights, which one replica of the stage gives to all."""
        if self._weights is not None:
            self._weights.data[...] = FIRST_WEIGHT if self._replicas.rank == 0 else 0
        for call in self._broadcasts:
            call()

    def begin(self, step: int) -> None:
        """Begin a step, whose number counts from the beginning of training."""
        self._step = step
        self._delay.begin()

    def forward(self, samples: int) -> None:
        """Take as long as the layers do for so many samples."""
        self._delay.resume()
        with phase("forward"):
            self._delay.spend(samples * self._forward)

    def backward(self, samples: int, ready: Callable[[int], None] | None) -> None:
        """Take as long as the layers do on the way back.

        ``ready`` is called with the number of each gradient as soon as it is there, the last one
        first; None if those of other samples are still to be added.
        """
        new = new_value(self._step) * factor(self._replicas)
        self._delay.resume()
        with phase("backward"):
            for seconds, tensors in reversed(self._backward):
                self._delay.spend(samples * seconds)
                if ready is None:
                    continue
                for tensor in reversed(tensors):
                    self._new[tensor][...] = new
                    ready(tensor)

    def evaluate(self, seconds: float) -> None:
        """Compute for so long, outside of any step."""
        self._delay.begin()
        self._delay.spend(seconds)

    def write(self, target: Any) -> None:
        """Put values into the memory that they are sent from."""
        target.reshape(-1)[::STRIDE] = self._sent(self._step)

    def arrived(self, values: Any, step: int) -> bool:
        """Return whether the neighbouring stage wrote these in a step."""
        return bool((values.reshape(-1)[::STRIDE] == self._sent(step)).all())

    def _sent(self, step: int) -> int:
        """Return the new value of a step, as an element of messages between stages."""
        value, brain = new_value(step), self._datatype.code == BRAIN
        return int.from_bytes(self._datatype.pack((value,)), "little") if brain else value

    def difference(self, averages: Sequence[Array]) -> float:
        """Return the maximum relative difference of averages and first weights, over all ranks.

        The difference is to the expected values. Collective.
        """
        own = [self._difference(*one) for one in enumerate(averages)]
        if self._weights is not None:
            last = self._weights.data[: self.gradients[-1].data.size]
            own.append(float(abs(last / FIRST_WEIGHT - 1).max()))
        return float(max(self.team.comm.allgather(max(own))))

    def _difference(self, tensor: int, gradient: Array) -> float:
        """Return a gradient's difference from the average over the ranks."""
        xp, mean = self.team.xp, MEAN_FACTOR
        expected = self._pattern(tensor, gradient, mean)
        expected.reshape(-1)[::STRIDE] = new_value(self._step) * mean
        return float(xp.abs(gradient.data / expected - 1).max())

    def _pattern(self, tensor: int, gradient: Array, times: float) -> Any:
        """Return a gradient before the first step, so many ``times``; different for each tensor.

        Sums of it over up to 30,000 ranks are whole numbers that single precision has exactly.
        """
        xp = self.team.xp
        numbers = xp.arange(gradient.data.size, dtype="int32").reshape(gradient.data.shape)
        return ((numbers + tensor) % PERIOD + 1).astype("float32") * times


MEAN_FACTOR = 8
"""The mean of the ranks' factors, however many ranks there are."""


def factor(replicas: Team) -> int:
    """Return a rank's factor of its gradients: two neighbours' differ as much from the mean."""
    pair, second = divmod(replicas.rank, 2)
    if replicas.rank == replicas.ranks - 1 and not second:
        return MEAN_FACTOR
    difference = pair % (MEAN_FACTOR - 1) + 1
    return MEAN_FACTOR + (difference if second else -difference)


FIRST_WEIGHT = 3.0
"""The first weight that the first replica of a stage gives to the others."""


def new_value(step: int) -> int:
    """Return rank 0's value of the new elements of a step."""
    return step % VALUES + 1

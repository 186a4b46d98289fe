"""One stage of a network on a rank; a network in one piece is one stage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from omb_py.apps.runtime.distribution import broadcast
from omb_py.apps.runtime.team import Array, Team
from omb_py.apps.training import Training
from omb_py.apps.training.computing import COMPUTING
from omb_py.apps.training.costs import Cost
from omb_py.apps.training.networks import Shape
from omb_py.tracing.recorder.annotation import phase

PERIOD = 61
"""Gradients are so many different whole numbers, over and over, times the rank's `factor`."""

STRIDE = 4096
"""Of so many elements the first one is new in each step. The others are averages after the first
step, and stay what they are; to write all of them would take too long."""

VALUES = 8
"""What is new has one of so many values, by turns."""


class Stage:
    """Layers whose computing takes as long as each of them would; what is sent is known.

    So averages can be checked, and what came from the stages beside it. ``gradients`` are in memory
    of the buffer library.
    """

    def __init__(
        self,
        team: Team,
        replicas: Team,
        training: Training,
        shapes: Sequence[tuple[str, Shape]],
        costs: Sequence[tuple[Cost, range]],
        tick: Callable[[], None],
    ) -> None:
        """``shapes`` are the names and shapes of its parameters, ``costs`` those of each layer with
        the numbers of its parameters."""
        self.team = team
        self.gradients = [team.array(shape) for _, shape in shapes]
        self._replicas = replicas
        self._costs = costs
        self._forward = sum(cost.forward for cost, _ in costs)
        self._computing = COMPUTING[training.compute](team, tick)
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
        self._computing.prepare()

    def begin(self, step: int) -> None:
        """A step begins: its number since training began."""
        self._step = step
        self._computing.begin()

    def forward(self, samples: int) -> None:
        """Take as long as the layers do for so many samples."""
        self._computing.resume()
        with phase("forward"):
            self._computing.spend(samples * self._forward)

    def backward(self, samples: int, ready: Callable[[int], None] | None) -> None:
        """Take as long as the layers do on the way back.

        ``ready`` is called with the number of each gradient as soon as it is there, the last one
        first; None where those of other samples are still to be added.
        """
        new = new_value(self._step) * factor(self._replicas)
        self._computing.resume()
        with phase("backward"):
            for cost, tensors in reversed(self._costs):
                self._computing.spend(samples * cost.backward)
                if ready is None:
                    continue
                for tensor in reversed(tensors):
                    self._new[tensor][...] = new
                    ready(tensor)

    def write(self, target: Any) -> None:
        """Put values where they are sent from."""
        target.reshape(-1)[::STRIDE] = new_value(self._step)

    def arrived(self, values: Any, step: int) -> bool:
        """Whether the stage beside it wrote these in a step."""
        return bool((values.reshape(-1)[::STRIDE] == new_value(step)).all())

    def difference(self) -> float:
        """The maximum relative one of averages and first weights to what is expected, of all ranks.

        Collective.
        """
        own = [self._difference(*one) for one in enumerate(self.gradients)]
        if self._weights is not None:
            last = self._weights.data[: self.gradients[-1].data.size]
            own.append(float(abs(last / FIRST_WEIGHT - 1).max()))
        return float(max(self.team.comm.allgather(max(own))))

    def _difference(self, tensor: int, gradient: Array) -> float:
        """How far a gradient is from the average of what the ranks had."""
        xp, mean = self.team.xp, MEAN_FACTOR
        expected = self._pattern(tensor, gradient, mean)
        expected.reshape(-1)[::STRIDE] = new_value(self._step) * mean
        return float(xp.abs(gradient.data / expected - 1).max())

    def _pattern(self, tensor: int, gradient: Array, times: float) -> Any:
        """What a gradient has before the first step, so many ``times``; different for each tensor.

        Sums of it over up to 30,000 ranks are whole numbers that single precision has exactly.
        """
        xp = self.team.xp
        numbers = xp.arange(gradient.data.size, dtype="int32").reshape(gradient.data.shape)
        return ((numbers + tensor) % PERIOD + 1).astype("float32") * times


MEAN_FACTOR = 8
"""The mean of the ranks' factors, however many ranks there are."""


def factor(replicas: Team) -> int:
    """What a rank multiplies its gradients by: two neighbours' differ as much from the mean."""
    pair, second = divmod(replicas.rank, 2)
    if replicas.rank == replicas.ranks - 1 and not second:
        return MEAN_FACTOR
    difference = pair % (MEAN_FACTOR - 1) + 1
    return MEAN_FACTOR + (difference if second else -difference)


FIRST_WEIGHT = 3.0
"""What the first replica of a stage gives to the others."""


def new_value(step: int) -> int:
    """What rank 0 has in the new elements of a step."""
    return step % VALUES + 1

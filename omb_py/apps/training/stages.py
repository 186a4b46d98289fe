"""One stage of a network on a rank, computed or replayed; a network in one piece is one stage."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from omb_py.apps.runtime.distribution import broadcast
from omb_py.apps.runtime.team import Array, Team
from omb_py.apps.training import Training
from omb_py.apps.training.computing import COMPUTING
from omb_py.apps.training.costs import Cost
from omb_py.apps.training.layers import Shape, softmax_cross_entropy
from omb_py.apps.training.networks import Network, Stack, nobody
from omb_py.tracing.recorder.annotation import phase

Ready = Callable[[int], None]


class Stage(ABC):
    """Layers that one rank computes, and their gradients in memory of the buffer library."""

    def __init__(self, team: Team, shapes: Sequence[tuple[str, Shape]]) -> None:
        self.team = team
        self.names = [name for name, _ in shapes]
        self.gradients = [team.array(shape) for _, shape in shapes]

    @property
    def parameters(self) -> int:
        """The numbers that it learns."""
        return sum(one.data.size for one in self.gradients)

    @abstractmethod
    def restart(self) -> None:
        """Begin with the first parameters, which one replica of the stage gives to all."""

    def begin(self, step: int) -> None:  # noqa: B027 - what is computed needs no number
        """A step begins: its number since training began."""

    @abstractmethod
    def forward(self, samples: int, stack: Stack) -> tuple[Stack, Any]:
        """What so many samples come out as, and what `backward` needs."""

    @abstractmethod
    def loss(self, stack: Stack, labels: Any) -> tuple[float, Stack]:
        """The sum of the losses, and the gradients of the last stage's outcome."""

    @abstractmethod
    def correct(self, stack: Stack, labels: Any) -> int:
        """How many samples the last stage's outcome is right about."""

    @abstractmethod
    def backward(
        self, samples: int, kept: Any, gradients: Stack, ready: Ready, add: bool, onward: bool
    ) -> Stack:
        """The gradients of what it was given, if they go ``onward``.

        ``ready`` is called with the number of each gradient of `gradients` as soon as it is
        complete, the last one first; ``add`` adds to those of other samples.
        """

    @abstractmethod
    def write(self, target: Any, values: Any) -> None:
        """Put values where they are sent from."""

    def without_samples(self, ready: Ready) -> None:
        """The gradients of a step in which this rank has no samples."""
        with self.team.computing:
            for one in self.gradients:
                one.data[...] = 0
        for tensor in reversed(range(len(self.gradients))):
            ready(tensor)

    @abstractmethod
    def descend(self, rate: float) -> None:
        """Parameters less ``rate`` times gradients."""


class ComputedStage(Stage):
    """Layers that are computed, with the buffer library's arrays."""

    def __init__(
        self, team: Team, replicas: Team, training: Training, network: Network, initial: list[Any]
    ) -> None:
        """``initial`` are the first parameters, on the first of the ``replicas``.

        ``observe_loss``, where it is set, is called with scores, labels and the scores' gradient.
        """
        super().__init__(team, network.shapes)
        self.network = network
        self.observe_loss: Callable[[Any, Any, Any], None] | None = None
        self._initial = [team.xp.asarray(one) for one in initial]
        self.arrays = [team.array(shape) for _, shape in network.shapes]
        network.bind([one.data for one in self.arrays], [one.data for one in self.gradients])
        self._broadcasts = [broadcast(replicas, one, training.broadcast) for one in self.arrays]

    def restart(self) -> None:
        for parameter, initial in zip(self.arrays, self._initial, strict=False):
            parameter.data[...] = initial
        for call in self._broadcasts:
            call()

    def forward(self, samples: int, stack: Stack) -> tuple[Stack, Any]:
        with phase("forward"), self.team.computing:
            return self.network.forward(stack)

    def loss(self, stack: Stack, labels: Any) -> tuple[float, Stack]:
        with self.team.computing:
            loss, gradient = softmax_cross_entropy(self.team.xp, stack[-1], labels)
            found = float(loss)
        if self.observe_loss is not None:
            self.observe_loss(stack[-1], labels, gradient)
        return found, (gradient,)

    def correct(self, stack: Stack, labels: Any) -> int:
        with self.team.computing:
            return int((stack[-1].argmax(axis=1) == labels).sum())

    def backward(
        self, samples: int, kept: Any, gradients: Stack, ready: Ready, add: bool, onward: bool
    ) -> Stack:
        computing: AbstractContextManager[Any] = self.team.computing
        with phase("backward"):
            found = self.network.backward(kept, gradients, ready, computing, add, onward)
        return found or ()

    def write(self, target: Any, values: Any) -> None:
        target[...] = values

    def descend(self, rate: float) -> None:
        with phase("optimizer"), self.team.computing:
            self.network.descend(rate)


PERIOD = 61
"""Gradients are so many different whole numbers, over and over, times the rank's `factor`."""

STRIDE = 4096
"""Of so many elements the first one is new in each step. The others are averages after the first
step, and stay what they are; to write all of them would take too long."""

VALUES = 8
"""What is new has one of so many values, by turns."""


class ReplayedStage(Stage):
    """Layers whose computing is pretended, for as long as each takes; what is sent is known.

    So averages can be checked, and what came from the stages beside it.
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
        super().__init__(team, shapes)
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
        if self._weights is not None:
            self._weights.data[...] = FIRST_WEIGHT if self._replicas.rank == 0 else 0
        for call in self._broadcasts:
            call()
        self._computing.prepare()

    def begin(self, step: int) -> None:
        self._step = step
        self._computing.begin()

    def forward(self, samples: int, stack: Stack) -> tuple[Stack, Any]:
        self._computing.resume()
        with phase("forward"):
            self._computing.spend(samples * self._forward)
        return (), None

    def loss(self, stack: Stack, labels: Any) -> tuple[float, Stack]:
        return 0.0, ()

    def correct(self, stack: Stack, labels: Any) -> int:
        return 0

    def backward(
        self, samples: int, kept: Any, gradients: Stack, ready: Ready, add: bool, onward: bool
    ) -> Stack:
        new = new_value(self._step) * factor(self._replicas)
        self._computing.resume()
        with phase("backward"):
            for cost, tensors in reversed(self._costs):
                self._computing.spend(samples * cost.backward)
                if ready is nobody:
                    continue
                for tensor in reversed(tensors):
                    self._new[tensor][...] = new
                    ready(tensor)
        return ()

    def write(self, target: Any, values: Any) -> None:
        target.reshape(-1)[::STRIDE] = new_value(self._step)

    def arrived(self, values: Any) -> bool:
        """Whether the stage beside it wrote these in the last step."""
        return bool((values.reshape(-1)[::STRIDE] == new_value(self._step)).all())

    def without_samples(self, ready: Ready) -> None:
        self.backward(0, None, (), ready, add=False, onward=False)

    def descend(self, rate: float) -> None:
        pass

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
"""What the first replica of a replayed stage gives to the others."""


def new_value(step: int) -> int:
    """What rank 0 has in the new elements of a step."""
    return step % VALUES + 1

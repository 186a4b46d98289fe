"""Training of a well-known network replayed: its gradients travel, its computing is pretended."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from time import perf_counter, sleep
from typing import Any

from omb_py.apps import Detail, Kernel, share
from omb_py.apps.runtime.team import Array, Team
from omb_py.apps.training import Training
from omb_py.apps.training.architectures import tensors_of
from omb_py.apps.training.data import batches
from omb_py.apps.training.epochs import training_parts
from omb_py.apps.training.exchange import MILLISECOND, GradientExchange
from omb_py.apps.training.summing import OneNumber
from omb_py.tracing.recorder.annotation import phase

SLICE = 50e-6
"""Seconds of a delay after which an exchange is told that time has passed."""

SIDE = 128
"""Rows and columns of the matrices that are multiplied; one product is the unit of computing."""

CALIBRATION = 50
"""Products that are timed."""


class Computing(ABC):
    """Takes up time that counts as computing; ``tick`` is called now and then, outside of it."""

    def __init__(self, team: Team, tick: Callable[[], None]) -> None:
        self._team = team
        self._tick = tick

    def prepare(self) -> None:  # noqa: B027 - a delay has nothing to prepare
        """Get ready, before a training begins."""

    @abstractmethod
    def begin(self) -> None:
        """A step begins."""

    @abstractmethod
    def spend(self, seconds: float) -> None:
        """Compute for so long."""


class Delay(Computing):
    """Waits until the time is up, and lets other processes run.

    What the rank does between two delays of a step is taken off the next one: so it is where a
    device computes while the processor communicates.
    """

    _end = 0.0

    def begin(self) -> None:
        self._end = perf_counter()

    def spend(self, seconds: float) -> None:
        self._end += seconds
        while (now := perf_counter()) < self._end:
            with self._team.computing:
                until = min(self._end, now + SLICE)
                while perf_counter() < until:
                    sleep(0)
            self._tick()


class Products(Computing):
    """Multiplies matrices, as often as takes so long on this rank while all others do it too."""

    def __init__(self, team: Team, tick: Callable[[], None]) -> None:
        super().__init__(team, tick)
        self._factor = team.xp.ones((SIDE, SIDE), "float32")
        self._product = team.xp.empty_like(self._factor)
        self._seconds = self._owed = 0.0

    def prepare(self) -> None:
        for times in (1, CALIBRATION) if not self._seconds else ():
            begin = perf_counter()
            with self._team.computing:
                for _ in range(times):
                    self._multiply()
            self._seconds = (perf_counter() - begin) / times

    def begin(self) -> None:
        self._owed = 0.0

    def spend(self, seconds: float) -> None:
        self._owed += seconds
        while self._owed >= self._seconds:
            with self._team.computing:
                self._multiply()
            self._owed -= self._seconds
            self._tick()

    def _multiply(self) -> None:
        self._team.xp.matmul(self._factor, self._factor, out=self._product)


COMPUTING: dict[str, type[Computing]] = {"delay": Delay, "matmul": Products}
"""By the names that ``--compute`` has for them."""


FORWARD = 1 / 3
"""Of the time of a step. The backward pass takes about twice as long as the forward pass: for each
product of a layer it has two of the same size, for the gradients of weights and of inputs."""

PERIOD = 61
"""Gradients are so many different whole numbers, over and over, times one more than the rank."""

STRIDE = 4096
"""Of so many elements the first one is new in each step. The others are averages after the first
step, and stay what they are; to write all of them would take too long."""

VALUES = 8
"""What is new has one of so many values, by turns."""


class ReplayedTraining(Kernel[Training]):
    """Gradients of the shapes of a network are averaged after a forward and a backward pass.

    Each rank takes the time of its own samples. The backward pass is divided evenly over the
    tensors, the last declared one first. What is averaged is known, and checked on every rank.
    """

    def __init__(self, team: Team, training: Training) -> None:
        super().__init__(team, training)
        tensors = tensors_of(training.model)
        self._gradients = [team.array(tensor.shape) for tensor in tensors]
        for tensor, gradient in enumerate(self._gradients):
            gradient.data[...] = self._pattern(tensor, gradient, team.rank + 1)
        self._new = [one.data.reshape(-1)[::STRIDE] for one in self._gradients]
        names = [tensor.name for tensor in tensors]
        self._exchange = GradientExchange(team, self._gradients, names, training)
        self._computing = COMPUTING[training.compute](team, self._exchange.tick)
        self._largest = OneNumber(team, "max")
        self._ends: list[float] = []
        self._shares = []
        for start, stop in batches(training.samples, training.batch):
            begin, end = share(stop - start, team.ranks, team.rank)
            self._shares.append(end - begin)

    def distribute(self) -> None:
        self._exchange.begin()
        self._computing.prepare()

    def solve(self) -> None:
        self._ends, began, step = [], perf_counter(), 0
        for epoch in range(1, self.problem.epochs + 1):
            with phase(f"epoch {epoch}"):
                for samples in self._shares:
                    self._train(samples, new_value(step) * (self.team.rank + 1))
                    step += 1
            self._ends.append(perf_counter() - began)

    def _train(self, samples: int, new: int) -> None:
        """One step, with so many samples of this rank's own."""
        computing, exchange = self._computing, self._exchange
        seconds = samples * self.problem.sample_time * MILLISECOND
        computing.begin()
        with phase("forward"):
            computing.spend(seconds * FORWARD)
        count = len(self._gradients)
        backward = seconds * (1 - FORWARD) / count
        with phase("backward"):
            for tensor in reversed(range(count)):
                computing.spend(backward)
                self._new[tensor][...] = new
                exchange.ready(tensor)
        exchange.finish()

    def result(self) -> dict[str, float]:
        """``difference``: the maximum relative one to what is expected, of all ranks."""
        return {"difference": self._largest(max(map(self._difference, *self._numbered())))}

    def parts(self) -> list[Detail]:
        told = training_parts(self.team, self._ends, self.problem.samples)
        return [*told, *self._exchange.parts()]

    def _numbered(self) -> tuple[range, list[Array]]:
        return range(len(self._gradients)), self._gradients

    def _difference(self, tensor: int, gradient: Array) -> float:
        """How far a gradient is from the average of what the ranks had."""
        xp, mean = self.team.xp, (self.team.ranks + 1) / 2
        expected = self._pattern(tensor, gradient, mean)
        steps = self.problem.epochs * len(self._shares)
        expected.reshape(-1)[::STRIDE] = new_value(steps - 1) * mean
        return float(xp.abs(gradient.data / expected - 1).max())

    def _pattern(self, tensor: int, gradient: Array, factor: float) -> Any:
        """What a gradient has before the first step, times ``factor``; different for each tensor.

        Sums of it over many ranks are whole numbers, which are exact.
        """
        xp = self.team.xp
        numbers = xp.arange(gradient.data.size, dtype="int32").reshape(gradient.data.shape)
        return ((numbers + tensor) % PERIOD + 1).astype("float32") * factor


def new_value(step: int) -> int:
    """What rank 0 has in the new elements of a step."""
    return step % VALUES + 1

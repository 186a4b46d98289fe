"""Training on many ranks: replicas of a network, each in one piece or cut into stages.

Consecutive ranks are the stages of a pipeline, which takes its share of each batch; several
pipelines, or replicas of one stage, average their gradients. So a rank that has all layers and
shares batches with the others (strategy ``data``) is a pipeline of one stage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from statistics import mean
from time import perf_counter
from typing import Any

from omb_py.apps import Detail, Kernel
from omb_py.apps.runtime.phases import Phase
from omb_py.apps.runtime.team import Team
from omb_py.apps.training import MILLISECOND, TRANSFORMERS, Training
from omb_py.apps.training.architectures import network, sample_shape, tensors_of
from omb_py.apps.training.boundary import Boundary
from omb_py.apps.training.costs import FORWARD, Cost, layer_costs, of_stages
from omb_py.apps.training.data import BatchShare, Samples, batch_share, batches, load
from omb_py.apps.training.epochs import (
    EpochClock,
    Epochs,
    communicating,
    epoch_parts,
    first_training,
    learning,
)
from omb_py.apps.training.exchange import GradientExchange
from omb_py.apps.training.networks import Network, Stack, elements, nobody
from omb_py.apps.training.passes import SCHEDULES, Pass, bubble, under_way
from omb_py.apps.training.stages import ComputedStage, ReplayedStage, Stage
from omb_py.apps.training.summing import OneNumber
from omb_py.core.errors import UsageError
from omb_py.core.text.numbers import MEBIBYTE
from omb_py.tracing.recorder.annotation import phase

FLOAT_BYTES = 4


@dataclass
class PassTimes:
    """The seconds of each pass through a stage, forward and backward."""

    forward: list[float] = field(default_factory=list)
    backward: list[float] = field(default_factory=list)

    @property
    def means(self) -> tuple[float, float]:
        """The mean of each way; 0 where there was no pass."""
        forward, backward = (mean(one) if one else 0.0 for one in (self.forward, self.backward))
        return forward, backward


@dataclass(frozen=True)
class RankReport:
    """What a rank has to tell of a training: shares of its time, and the means of `PassTimes`."""

    epochs: Epochs
    first: Epochs
    losses: list[float]
    communicating: float
    waited: float
    passes: tuple[float, float]


class TrainingKernel(Kernel[Training]):
    """Stochastic gradient descent; the result is that of one rank, but for the order of sums.

    One rank alone has the whole network, makes no calls and takes each batch as a whole. Raises
    `UsageError` where the ranks do not fit the network or the pipelines.
    """

    def __init__(self, team: Team, training: Training) -> None:
        super().__init__(team, training)
        began = perf_counter()
        check(training, team.ranks, team.options.binding)
        self.depth = depth(training, team.ranks)
        self.pipelines = team.ranks // self.depth
        self.pipeline, self.position = divmod(team.rank, self.depth)
        self.replicas = team
        if self.depth > 1:
            self.replicas = team.split(self.position, self.pipeline)
        self.samples = Samples()
        if training.learns:
            loaded = load(training, sample_shape(training))
            self.samples = Samples(team.xp.asarray(loaded.images), team.xp.asarray(loaded.labels))
        self._stages: list[Network] = []
        self.stage = self._make_stage()
        self.exchange = GradientExchange(
            self.replicas, self.stage.gradients, self.stage.names, training
        )
        self.shares = self._divided(training.samples, 0, self.pipelines)
        self._tests = self._divided_tests()
        self._before, self._after = self._boundaries()
        self._total = OneNumber(team) if training.test != "none" else None
        self._clock = EpochClock(team.phases)
        self._first: Epochs | None = None
        self._losses: list[float] = []
        self._accuracy = 0.0
        self._passes = PassTimes()
        self._waited = 0.0
        self._preparing = perf_counter() - began

    def _make_stage(self) -> Stage:
        """This rank's layers."""
        team, training = self.team, self.problem
        if training.model in TRANSFORMERS:
            shapes = [(tensor.name, tensor.shape) for tensor in tensors_of(training)]
            seconds = training.sample_time * MILLISECOND / len(shapes)
            each = Cost(FORWARD * seconds, (1 - FORWARD) * seconds)
            costs = [(each, range(number, number + 1)) for number in range(len(shapes))]
            return ReplayedStage(team, self.replicas, training, shapes, costs, self._tick)
        whole = network(training, team.xp)
        costs_of_layers: list[Cost] = []
        if not training.learns:
            costs_of_layers = layer_costs(team, training, whole)
        self._stages = stages = whole.stages(
            self.depth, partition(training, self.depth), [cost.whole for cost in costs_of_layers]
        )
        own = stages[self.position]
        self._shapes = own.given, own.gives
        if training.learns:
            first = sum(len(stage.shapes) for stage in stages[: self.position])
            initial = whole.initial(training.seed) if self.pipeline == 0 else []
            initial = initial[first : first + len(own.shapes)]
            return ComputedStage(team, self.replicas, training, own, initial)
        pairs = list(
            zip(of_stages(costs_of_layers, stages)[self.position], own.tensors, strict=True)
        )
        return ReplayedStage(team, self.replicas, training, own.shapes, pairs, self._tick)

    def _tick(self) -> None:
        self.exchange.tick()

    def _divided(self, samples: int, first: int, pipelines: int) -> list[BatchShare]:
        """What this pipeline takes of each batch of so many samples, from number ``first`` on."""
        training = self.problem
        parts = training.micro_batches if self.depth > 1 else 1
        found = [(first + start, first + stop) for start, stop in batches(samples, training.batch)]
        return [batch_share(batch, pipelines, self.pipeline, parts) for batch in found]

    def _divided_tests(self) -> list[BatchShare]:
        """What this pipeline tests after an epoch: samples behind those that are trained."""
        training = self.problem
        if training.test == "none" or (training.test == "sequential" and self.pipeline):
            return []
        pipelines = 1 if training.test == "sequential" else self.pipelines
        return self._divided(training.test_samples, training.samples, pipelines)

    def _boundaries(self) -> tuple[Boundary | None, Boundary | None]:
        """Those with the stages before and after this one, where there are any."""
        team, before, after = self.team, None, None
        if self.depth == 1:
            return None, None
        given, gives = self._shapes
        shares = [*self.shares, *self._tests]
        stretches = dict.fromkeys(part for one in shares for part in one.parts)
        if self.position > 0:
            before = Boundary(team, team.rank - 1, given, stretches)
        if self.position < self.depth - 1:
            after = Boundary(team, team.rank + 1, gives, stretches)
        return before, after

    def distribute(self) -> None:
        self.stage.restart()
        self.exchange.begin()

    def solve(self) -> None:
        training, step = self.problem, 0
        self._clock, self._losses = EpochClock(self.team.phases), []
        self._passes, self._waited = PassTimes(), 0.0
        for epoch in range(1, training.epochs + 1):
            began, loss = perf_counter(), 0.0
            with phase(f"epoch {epoch}"):
                for own in self.shares:
                    loss += self._train(step, own)
                    step += 1
                    self._clock.step(self.exchange.negotiating)
            trained = perf_counter()
            waited = self._waited
            if training.test != "none":
                with phase("test"):
                    self._test(step - 1)
            self._waited = waited
            self._losses.append(loss / training.samples)
            tested = perf_counter() - trained
            self._clock.epoch(trained - began, tested, self.exchange.negotiating)
        self._first = self._first or self._clock.epochs

    def _train(self, step: int, own: BatchShare) -> float:
        """One step; the sum of the losses of this pipeline's samples, where they are known."""
        self.stage.begin(step)
        loss = self.learn(own, self.exchange.ready)
        self.exchange.finish()
        self.descend(own)
        return loss

    def descend(self, own: BatchShare) -> None:
        """Change the parameters.

        Ranks have sums of samples' gradients, and the exchange gives the replicas' average.
        """
        self.stage.descend(self.problem.learning_rate * self.pipelines / own.size)

    def learn(
        self,
        own: BatchShare,
        ready: Callable[[int], None],
        noted: Callable[[Pass], None] = lambda one: None,
    ) -> float:
        """This stage's gradients of a batch; the sum of the losses, where they are known.

        ``ready`` is called as by `Stage.backward`, when gradients of all micro-batches are there;
        ``noted`` before each pass.
        """
        stage, before = self.stage, self._before
        images, labels = self._load(own)
        if not own.parts:
            stage.without_samples(ready)
            return 0.0
        passes = SCHEDULES[self.problem.schedule](self.depth, self.position, len(own.parts))
        outcomes: dict[int, Stack] = {}
        kept: dict[int, Any] = {}
        loss, add, computing = 0.0, False, self.team.phases.seconds
        for one in passes:
            noted(one)
            part = own.parts[one.part]
            count = part[1] - part[0]
            if one.forward:
                stack = self._inputs(images, part)
                began = computing[Phase.COMPUTE]
                outcomes[one.part], kept[one.part] = stage.forward(count, stack)
                self._passes.forward.append(computing[Phase.COMPUTE] - began)
                if self._after is not None:
                    self._after.give(part, stage, outcomes.pop(one.part))
                continue
            gradients = self._taken(self._after, part) if self._after is not None else ()
            began = computing[Phase.COMPUTE]
            if self._after is None:
                own_loss, gradients = stage.loss(outcomes.pop(one.part), labels[slice(*part)])
                loss += own_loss
            listener = ready if one is passes[-1] else nobody
            found = stage.backward(
                count, kept.pop(one.part), gradients, listener, add, before is not None
            )
            add = True
            self._passes.backward.append(computing[Phase.COMPUTE] - began)
            if before is not None:
                before.give(part, stage, found)
        self._complete()
        return loss

    def _load(self, own: BatchShare) -> tuple[Any, Any]:
        """The samples of a batch, in the first stage, and their labels; of a replayed one none."""
        if not self.problem.learns:
            return (), ()
        mine = slice(*own.own)
        return self.samples.images[mine] if self.position == 0 else None, self.samples.labels[mine]

    def _inputs(self, images: Any, part: tuple[int, int]) -> Stack:
        """What this stage is given of a micro-batch."""
        if self._before is not None:
            return self._taken(self._before, part)
        return (images[slice(*part)],) if self.problem.learns else ()

    def _taken(self, boundary: Boundary, part: tuple[int, int]) -> Stack:
        """What comes from another stage, whose wait is noted."""
        began = perf_counter()
        found = boundary.take(part)
        self._waited += perf_counter() - began
        return found

    def _complete(self) -> None:
        """Wait until the stages beside this one have what they were sent."""
        for boundary in (self._before, self._after):
            if boundary is not None:
                boundary.complete()

    def _test(self, step: int) -> None:
        """Find out how many samples of the test are told apart; all ranks wait for that.

        ``step`` is the number of the last one.
        """
        correct, stage = 0, self.stage
        stage.begin(step)
        for own in self._tests:
            images, labels = self._load(own)
            for part in own.parts:
                outcome, _ = stage.forward(part[1] - part[0], self._inputs(images, part))
                if self._after is not None:
                    self._after.give(part, stage, outcome)
                else:
                    correct += stage.correct(outcome, labels[slice(*part)])
            self._complete()
        assert self._total is not None
        self._accuracy = self._total(correct) / self.problem.test_samples

    def parts(self) -> list[Detail]:
        """Epochs, losses, gradients, and what a pipeline has; collective."""
        training, epochs = self.problem, self._clock.epochs
        assert self._first is not None
        seconds = sum(epochs.training) + sum(epochs.testing)
        share = communicating(self.team, seconds)
        waited = self._waited / sum(epochs.training)
        own = RankReport(epochs, self._first, self._losses, share, waited, self._passes.means)
        of_ranks: list[RankReport] = self.team.comm.allgather(own)
        share = mean(one.communicating for one in of_ranks)
        tested = training.test != "none"
        found = epoch_parts([one.epochs for one in of_ranks], training.samples, tested)
        found.append(
            Detail("Communicating and waiting", value=100 * share, unit="% of a rank's time, mean")
        )
        found += first_training([one.first for one in of_ranks], self._preparing)
        if training.learns:
            found += learning(summed([one.losses for one in of_ranks]))
            if tested:
                found.append(Detail("Accuracy", value=100 * self._accuracy, unit="% of the test"))
        if self.depth == 1:
            return found + self.exchange.parts()
        if self.pipelines > 1:
            parts = self.exchange.parts()
            found += [replace(part, name=f"Stage 0: {part.name}") for part in parts]
        found += self._pipeline_parts(of_ranks)
        return found

    def _pipeline_parts(self, of_ranks: Sequence[RankReport]) -> Iterator[Detail]:
        """The bubble, stages and boundaries; collective.

        The bubble measured is receiving: mostly that is waiting, but the transfer is in it, too.
        """
        training, first = self.problem, self.shares[0]
        parts = max(1, len(first.parts))
        times = [one.passes for one in of_ranks[: self.depth]]
        waited = mean(one.waited for one in of_ranks)
        yield Detail("Bubble measured", value=100 * waited, unit="% of the epochs receiving, mean")
        yield Detail(
            "Bubble expected",
            value=100 * bubble(training.schedule, parts, times),
            unit=f"% from the stages' times, S={self.depth}, M={parts}, {training.schedule}",
        )
        largest = max((stop - start for start, stop in first.parts), default=0)
        for number, stage in enumerate(self._stages):
            passes = SCHEDULES[training.schedule](self.depth, number, parts)
            samples = min(under_way(passes) * largest, first.samples)
            size = elements(stage.shapes)
            memory = FLOAT_BYTES * (2 * size + stage.values * samples)
            yield Detail(f"Stage {number}", value=size, unit="parameters")
            yield Detail(f"Stage {number} layers", value=stage.learning, unit="that learn")
            yield Detail(f"Stage {number} of a micro-batch", seconds=sum(times[number]))
            yield Detail(
                f"Stage {number} memory",
                value=memory / MEBIBYTE,
                unit="MiB of parameters, gradients and values kept",
            )
        for number, stage in enumerate(self._stages[:-1]):
            nbytes = FLOAT_BYTES * sum(map(prod, stage.gives))
            yield Detail(f"Boundary {number}-{number + 1}", value=nbytes, unit="bytes of a sample")

    def sum_of_losses(self) -> list[float]:
        """The epochs' losses from those of all ranks; collective."""
        return summed(self.team.comm.allgather(self._losses))

    def boundaries(self) -> list[Boundary]:
        """Those with the stages beside this one."""
        return [one for one in (self._before, self._after) if one is not None]


def summed(losses: Iterable[Sequence[float]]) -> list[float]:
    """The epochs' losses from those of all ranks, which are 0 where they are not known."""
    return [sum(of_ranks) for of_ranks in zip(*losses, strict=True)]


def depth(training: Training, ranks: int) -> int:
    """The stages of each pipeline; a rank alone has a single one."""
    if ranks == 1 or training.strategy == "data":
        return 1
    return training.stages if training.strategy == "hybrid" else ranks


def partition(training: Training, stages: int) -> list[int]:
    """The layers of each stage, where they are given; raises `UsageError` for other words."""
    if stages == 1:
        return []
    try:
        found = [int(word) for word in training.partition.split(",") if training.partition]
    except ValueError:
        found = [0]
    if any(number < 1 for number in found):
        raise UsageError(
            f"--partition {training.partition}: give numbers of layers, one for each stage, such "
            "as 10,12,12"
        )
    return found


def check(training: Training, ranks: int, binding: str) -> None:
    """Raise `UsageError` where pipelines do not fit so many ranks, or the binding."""
    stages = depth(training, ranks)
    if stages > 1 and training.schedule == "1f1b" and binding == "nccl":
        raise UsageError(
            "NCCL's sends wait for the receiver, and with --schedule 1f1b neighbours send to each "
            "other at a time: use --schedule gpipe, or --binding buffer"
        )
    if ranks % stages:
        raise UsageError(
            f"pipelines of {stages} stages do not fit {ranks} ranks: start a multiple of {stages} "
            "ranks, or choose other --stages"
        )

"""Training on many ranks: replicas of a network, each in one piece or cut into stages.

Consecutive ranks are the stages of a pipeline, which takes its share of each batch; several
pipelines, or replicas of one stage, average their gradients. So a rank that has all layers and
shares batches with the others (strategy ``data``) is a pipeline of one stage.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import mean
from time import perf_counter
from typing import Any

from omb_py.apps import Detail, Kernel
from omb_py.apps.runtime.phases import Phase, Timed
from omb_py.apps.runtime.team import Team
from omb_py.apps.training import MILLISECOND, Training
from omb_py.apps.training.exchange import GradientExchange, limit
from omb_py.apps.training.networks import NeuralNetwork, network
from omb_py.apps.training.pipeline import (
    SCHEDULES,
    Boundary,
    Range,
    batch_share,
    batches,
)
from omb_py.apps.training.stages import Stage
from omb_py.core.errors import UsageError
from omb_py.tracing.recorder.annotation import phase

COMMUNICATING = (Phase.COMMUNICATE, Phase.WAIT)


class TrainingKernel(Kernel[Training]):
    """The messages of a step of stochastic gradient descent, and computing of known length.

    A single rank has the whole network, makes no calls and takes each batch as a whole. Raises
    `UsageError` if the ranks do not fit the network or the pipelines.
    """

    def __init__(self, team: Team, training: Training) -> None:
        super().__init__(team, training)
        check(training, team.ranks, team.options.binding)
        self.depth = depth(training, team.ranks)
        self.pipelines = team.ranks // self.depth
        self.pipeline, self.position = divmod(team.rank, self.depth)
        self.replicas = team
        if self.depth > 1:
            self.replicas = team.split(self.position, self.pipeline)
        self._stages: list[NeuralNetwork] = []
        self.stage = self._make_stage()
        self.exchange = GradientExchange(self.replicas, self.stage.gradients, training)
        parts = training.micro_batches if self.depth > 1 else 1
        self.shares = [
            batch_share(batch, self.pipelines, self.pipeline, parts)
            for batch in batches(training.samples, training.batch)
        ]
        self._before, self._after = self._boundaries()
        self._epochs: list[float] = []
        self._waited = self._evaluating = 0.0

    def _make_stage(self) -> Stage:
        """Return this rank's layers."""
        team, training = self.team, self.problem
        whole = network(training.model, training.layers)
        self._stages = whole.stages(self.depth)
        unit = training.sample_time * MILLISECOND / whole.work
        return Stage(team, self.replicas, training, self._stages[self.position], unit)

    def _boundaries(self) -> tuple[Boundary | None, Boundary | None]:
        """Return the boundaries with the stages before and after this one, if there are any."""
        team, before, after, dtype = self.team, None, None, self.problem.dtype
        own = self._stages[self.position]
        stretches = dict.fromkeys(part for parts in self.shares for part in parts)
        if self.position > 0:
            before = Boundary(team, team.rank - 1, own.given, stretches, dtype)
        if self.position < self.depth - 1:
            after = Boundary(team, team.rank + 1, own.gives, stretches, dtype)
        return before, after

    def distribute(self) -> None:
        self.stage.restart()
        self.exchange.begin()

    def solve(self) -> None:
        training, step = self.problem, 0
        self._epochs, self._waited, self._evaluating = [], 0.0, 0.0
        for epoch in range(1, training.epochs + 1):
            began = perf_counter()
            with phase(f"epoch {epoch}"):
                for parts in self.shares:
                    self.stage.begin(step)
                    self._pass_batch(parts)
                    self.exchange.finish()
                    step += 1
            self._epochs.append(perf_counter() - began)
            if training.evaluation_time:
                self._evaluate()

    def _evaluate(self) -> None:
        """Have rank 0 evaluate what was learnt, while all others wait for it."""
        team, began = self.team, perf_counter()
        with phase("evaluation"):
            if team.rank == 0:
                self.stage.evaluate(self.problem.evaluation_time * MILLISECOND)
            with Timed(team.phases.seconds, Phase.WAIT):
                team.binding.barrier()
        self._evaluating += perf_counter() - began

    def _pass_batch(self, parts: list[Range]) -> None:
        """Pass a batch through this stage; gradients go to the exchange with the last part."""
        stage, before, after = self.stage, self._before, self._after
        if not parts:
            stage.backward(0, self.exchange.ready)
            return
        passes = SCHEDULES[self.problem.schedule](self.depth, self.position, len(parts))
        for one in passes:
            part = parts[one.part]
            samples = part[1] - part[0]
            if one.forward:
                self._take(before, part)
                stage.forward(samples)
                if after is not None:
                    after.give(part, stage)
                continue
            self._take(after, part)
            stage.backward(samples, self.exchange.ready if one is passes[-1] else None)
            if before is not None:
                before.give(part, stage)
        self._complete()

    def _take(self, boundary: Boundary | None, part: Range) -> None:
        """Receive data from another stage, if there is one; the wait is noted."""
        if boundary is not None:
            began = perf_counter()
            boundary.take(part)
            self._waited += perf_counter() - began

    def _complete(self) -> None:
        """Wait until the neighbouring stages have this one's messages."""
        for boundary in (self._before, self._after):
            if boundary is not None:
                boundary.complete()

    def result(self) -> dict[str, Any]:
        """Return ``difference`` of averages and first weights from the expected values, the maximum
        of all ranks, None without averages, and its ``limit``; ``lost`` are ranks that received
        other data than their neighbouring stages sent. Collective.
        """
        steps = self.problem.epochs * len(self.shares)
        last = max((place for place, parts in enumerate(self.shares) if parts), default=0)
        step = steps - len(self.shares) + last  # in the last batch a pipeline may have no sample
        boundaries = [one for one in (self._before, self._after) if one is not None]
        fine = self.team.comm.allgather(
            all(
                self.stage.arrived(rows, step)
                for one in boundaries
                for part in self.shares[last]
                for rows in one.arrived(part)
            )
        )
        lost = [rank for rank, well in enumerate(fine) if not well]
        ranks, difference = self.replicas.ranks, None
        if ranks > 1:
            difference = self.stage.difference(self.exchange.averages)
        return {"difference": difference, "limit": limit(self.problem, ranks), "lost": lost}

    def parts(self) -> list[Detail]:
        """Return epochs, evaluation, gradients, and the rows of a pipeline; collective.

        The communicator is made before the first epoch: frameworks make theirs within it.
        """
        training, seconds = self.problem, self.team.phases.seconds
        whole = sum(self._epochs)
        spent = sum(seconds[phase] for phase in COMMUNICATING)
        communicating = spent / (whole + self._evaluating)
        own = self._epochs, communicating, self._waited / whole, self.team.connecting
        epochs, shares, waited, connecting = zip(*self.team.comm.allgather(own), strict=True)
        found = epoch_parts(epochs, training.samples)
        found.insert(1, Detail("Epoch 1: communicator", seconds=max(connecting)))
        if training.evaluation_time:
            # Amdahl's law: of one rank's time only the rest shrinks.
            bound = 1 + training.samples * training.sample_time / training.evaluation_time
            each, unit = self._evaluating / training.epochs, "times one rank's speed at most"
            found.append(Detail("Evaluation of each epoch", each, bound, unit))
        unit = "% of a rank's time, mean"
        found.append(Detail("Communicating and waiting", value=100 * mean(shares), unit=unit))
        if self.depth == 1:
            return found + self.exchange.parts()
        if self.pipelines > 1:
            parts = self.exchange.parts()
            found += [replace(part, name=f"Stage 0: {part.name}") for part in parts]
        return [*found, *self._pipeline_parts(mean(waited))]

    def _pipeline_parts(self, waited: float) -> Iterator[Detail]:
        """Return the bubble, stages and boundaries.

        The bubble is receiving: mostly that is waiting, but the transfer is in it, too.
        """
        yield Detail("Bubble", value=100 * waited, unit="% of the epochs receiving, mean")
        for number, stage in enumerate(self._stages):
            yield Detail(f"Stage {number}", value=stage.elements, unit="parameters")
            yield Detail(f"Stage {number} layers", value=len(stage.layers))
        for number, stage in enumerate(self._stages[:-1]):
            nbytes = self.problem.datatype.itemsize * sum(stage.gives)
            yield Detail(f"Boundary {number}-{number + 1}", value=nbytes, unit="bytes of a sample")


def depth(training: Training, ranks: int) -> int:
    """Return the number of stages of each pipeline; a single rank has one."""
    if ranks == 1 or training.strategy == "data":
        return 1
    return training.stages if training.strategy == "hybrid" else ranks


def check(training: Training, ranks: int, binding: str) -> None:
    """Raise `UsageError` if pipelines do not fit so many ranks, or the binding."""
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


def epoch_parts(of_ranks: Sequence[Sequence[float]], samples: int) -> list[Detail]:
    """Return a row for each epoch, and the times of later epochs, from the seconds of each rank's.

    The time of an epoch is that of the slowest rank. Throughput is that of later epochs, if there
    are any.
    """
    epochs = [max(times) for times in zip(*of_ranks, strict=True)]
    found = [
        Detail(f"Epoch {number}", seconds=seconds) for number, seconds in enumerate(epochs, start=1)
    ]
    later = epochs[1:]
    one = mean(later) if later else epochs[0]
    if later:
        found.append(Detail("Later epochs, each", seconds=one))
    which = "later epochs" if later else "epoch 1"
    throughput = Detail(f"Throughput of {which}", value=samples / one, unit="samples/s")
    return [*found, Detail("Samples of an epoch", value=samples), throughput]

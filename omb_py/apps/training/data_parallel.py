"""Training in which every rank has the whole network and some samples of each batch."""

from __future__ import annotations

from functools import partial
from time import perf_counter
from typing import Any

from omb_py.apps import Detail, Kernel
from omb_py.apps.runtime.distribution import broadcast
from omb_py.apps.runtime.team import Team
from omb_py.apps.training import Training
from omb_py.apps.training.checking import gradients_difference, sum_over_ranks, unrecorded
from omb_py.apps.training.data import Portion, batches, load, portion
from omb_py.apps.training.epochs import learning, training_parts
from omb_py.apps.training.exchange import GradientExchange
from omb_py.apps.training.networks import network
from omb_py.apps.training.summing import OneNumber
from omb_py.tracing.recorder.annotation import phase


class DataParallelTraining(Kernel[Training]):
    """Stochastic gradient descent; gradients are averaged over the ranks after each batch.

    Rank 0 broadcasts the parameters to begin with. Every rank then makes the same steps, so that
    all have the same parameters to the last bit.
    """

    def __init__(self, team: Team, training: Training) -> None:
        super().__init__(team, training)
        xp = team.xp
        samples, labels, classes = load(training)
        self._network = network(training, xp, classes, samples.shape[1:])
        self._samples, self._labels = xp.asarray(samples), xp.asarray(labels)
        initial = self._network.initial(training.seed) if team.rank == 0 else []
        self._initial = [xp.asarray(one) for one in initial]
        names, shapes = zip(*self._network.shapes, strict=True)
        self._parameters, self._gradients = (
            [team.array(shape) for shape in shapes] for _ in range(2)
        )
        self._network.bind(
            [one.data for one in self._parameters], [one.data for one in self._gradients]
        )
        self._broadcasts = [broadcast(team, one, training.broadcast) for one in self._parameters]
        self._exchange = GradientExchange(team, self._gradients, names, training)
        self._sum = OneNumber(team)
        self._portions = [
            portion(batch, team.ranks, team.rank, 1)
            for batch in batches(len(samples), training.batch)
        ]
        self._losses: list[float] = []
        self._ends: list[float] = []

    def distribute(self) -> None:
        for parameter, initial in zip(self._parameters, self._initial, strict=False):
            parameter.data[...] = initial
        for call in self._broadcasts:
            call()
        self._exchange.begin()

    def solve(self) -> None:
        self._losses, self._ends, began = [], [], perf_counter()
        for epoch in range(1, self.problem.epochs + 1):
            with phase(f"epoch {epoch}"):
                loss = self._sum(sum(map(self._train, self._portions)))
            self._losses.append(loss / len(self._samples))
            self._ends.append(perf_counter() - began)

    def _train(self, own: Portion) -> float:
        """One step; the sum of the losses of this rank's samples."""
        loss = self._learn(own)
        with phase("optimizer"), self.team.computing:
            self._descend(own)
        return loss

    def _learn(self, own: Portion) -> float:
        """The gradients of a batch; the sum of the losses of this rank's samples."""
        team, exchange = self.team, self._exchange
        samples, labels = self._own(own)
        loss = self._network.loss_and_gradients(samples, labels, exchange.ready, team.computing)
        exchange.finish()
        return loss

    def _own(self, own: Portion) -> tuple[Any, Any]:
        return self._samples[slice(*own.own)], self._labels[slice(*own.own)]

    def _descend(self, own: Portion) -> None:
        # Ranks have sums of samples' gradients, and the exchange gives the ranks' average.
        self._network.descend(self.problem.learning_rate * self.team.ranks / own.size)

    def result(self) -> dict[str, Any] | None:
        """``losses`` are of each epoch the mean one of a sample.

        ``different`` are the ranks whose parameters are not rank 0's to the last bit. ``gradients``
        is how far those of a step are from one process's (`gradients_difference`), ``averages`` how
        far their averages are off, as a part of the limit (`sum_over_ranks`).
        """
        team, losses = self.team, self._losses
        own = [team.on_host(one.data) for one in self._parameters]
        everyone = team.comm.gather(b"".join(one.tobytes() for one in own), root=0)
        with unrecorded():
            gradients, worst = self._compare_steps()
        if everyone is None:
            return None
        different = [rank for rank, other in enumerate(everyone) if other != everyone[0]]
        return {"losses": losses, "different": different, "gradients": gradients, "averages": worst}

    def _compare_steps(self) -> tuple[float, float]:
        """Of all steps made once more, ``gradients`` and ``averages`` of the result, on rank 0."""
        import numpy as np

        team, worst = self.team, [0.0]

        def gradients() -> list[Any]:
            return [np.array(team.on_host(one.data)) for one in self._gradients]

        def learn(step: int) -> list[Any]:
            portion = self._portions[step]
            samples, labels = self._own(portion)
            self._network.loss_and_gradients(samples, labels)
            own = gradients()
            self._learn(portion)
            found = [one * team.ranks for one in gradients()]
            sums, errors = zip(
                *map(partial(sum_over_ranks, team, self.problem), own, found), strict=True
            )
            worst.extend(errors)
            return list(sums)

        self.distribute()
        difference = gradients_difference(
            team,
            self.problem,
            lambda: [team.on_host(one.data) for one in self._parameters],
            learn,
            lambda step: self._descend(self._portions[step]),
        )
        return difference, float(np.max(worst))

    def parts(self) -> list[Detail]:
        return [
            *training_parts(self.team, self._ends, len(self._samples)),
            *learning(self._losses),
            *self._exchange.parts(),
        ]

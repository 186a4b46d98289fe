"""Layers divided over ranks: micro-batches pass from stage to stage, and their gradients back.

The schedule is GPipe's (Huang et al.: GPipe: Efficient Training of Giant Neural Networks using
Pipeline Parallelism, NeurIPS 2019): all micro-batches of a batch forward, then all of them
backward, the last one first, then the parameters change. So the result is that of one rank.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from time import perf_counter
from typing import Any

from omb_py.apps import Detail, Kernel
from omb_py.apps.runtime.phases import Phase
from omb_py.apps.runtime.team import Team
from omb_py.apps.training import Training
from omb_py.apps.training.checking import gradients_difference, unrecorded
from omb_py.apps.training.data import Portion, Stretch, batches, load, portion
from omb_py.apps.training.epochs import epochs, learning, slowest
from omb_py.apps.training.layers import Shape, softmax_cross_entropy
from omb_py.apps.training.networks import elements, network, views
from omb_py.core.calls import Call
from omb_py.core.errors import UsageError
from omb_py.tracing.recorder.annotation import phase

TAG = 200
"""Of activations and of their gradients, which go opposite ways."""


class Boundary:
    """A boundary seen from one stage: what goes to the other, and what comes from it.

    One way these are activations, the other way their gradients: a row of ``shape`` for each sample
    of a batch. Each stretch of rows that passes has a send and a receive of its own, bound once.

    Receiving counts as waiting: mostly it is, but the transfer is in it too. Sending counts as
    communicating, though a large message leaves only when the other stage receives it.
    """

    def __init__(self, team: Team, peer: int, shape: Shape, stretches: Iterable[Stretch]) -> None:
        """Made on both ranks; ``stretches`` are where the rows of micro-batches begin and end."""
        stretches = list(stretches)
        rows = max((stop for _, stop in stretches), default=1)
        self._computing = team.computing
        self._outgoing = team.array((rows, *shape))
        self._incoming = team.array((rows, *shape))
        self._send, self._receive = {}, {}
        for stretch in stretches:
            outgoing = (self._outgoing.rows(*stretch).message(),)
            incoming = (self._incoming.rows(*stretch).message(),)
            receive = Call("recv", incoming, peer=peer, tag=TAG)
            self._send[stretch] = team.bind(Call("send", outgoing, peer=peer, tag=TAG))
            self._receive[stretch] = team.bind(receive, phase=Phase.WAIT)

    def give(self, stretch: Stretch, values: Any) -> None:
        """Send the other stage its rows."""
        with self._computing:
            self._outgoing.data[slice(*stretch)] = values
        self._send[stretch]()

    def take(self, stretch: Stretch) -> Any:
        """Receive rows of the other stage, which stay until the same ones are received again."""
        self._receive[stretch]()
        return self._incoming.data[slice(*stretch)]


OF_EXCHANGES = (
    "fusion",
    "buckets",
    "negotiation",
    "cycle_time",
    "compression",
    "allreduce",
    "broadcast",
    "overlap",
    "hierarchical",
    "ranks_per_node",
)
"""Options that say how gradients are averaged, which a pipeline does in its own way."""


class PipelinedTraining(Kernel[Training]):
    """One pipeline of all ranks (strategy ``model``), or several that share a batch (``hybrid``).

    Consecutive ranks are the stages of a pipeline. Several pipelines sum up the gradients of each
    stage after a batch, all in one call. One rank alone has the whole network, makes no calls and
    takes each batch as a whole.

    Raises `UsageError` where the ranks do not fit the network or the pipelines.
    """

    def __init__(self, team: Team, training: Training) -> None:
        super().__init__(team, training)
        check(training, team.ranks)
        self._stages = depth(training, team.ranks)
        self._pipeline, self._stage = divmod(team.rank, self._stages)
        samples, labels, classes = load(training)
        whole = network(training, team.xp, classes, samples.shape[1:])
        stages = whole.stages(self._stages)
        self._sizes = [elements(stage.shapes) for stage in stages]
        self._network = stages[self._stage]
        first = sum(len(stage.shapes) for stage in stages[: self._stage])
        own = whole.initial(training.seed)[first : first + len(self._network.shapes)]
        self._allocate(team.xp.concatenate([team.xp.asarray(one).reshape(-1) for one in own]))
        self._samples, self._labels = team.xp.asarray(samples), team.xp.asarray(labels)
        self._portions = self._divided()
        self._before, self._after = self._boundaries()
        self._losses: list[float] = []
        self._ends: list[float] = []
        self._waited = 0.0

    def _allocate(self, initial: Any) -> None:
        """Parameters and gradients of this stage, each back to back."""
        team, shapes = self.team, self._network.shapes
        self._initial = initial
        self._parameters = team.xp.empty_like(initial)
        self._gradients = self._summed = team.array(len(initial))
        self._network.bind(views(self._parameters, shapes), views(self._gradients.data, shapes))
        self._sum_up = None
        if team.ranks > self._stages:
            self._summed = team.array(len(initial))
            messages = self._gradients.message(), self._summed.message()
            alike = team.split(self._stage, self._pipeline)
            self._sum_up = alike.bind(Call("allreduce", messages, op="sum"))

    def _divided(self) -> list[Portion]:
        """What this pipeline takes of each batch of an epoch."""
        training, pipelines = self.problem, self.team.ranks // self._stages
        parts = training.micro_batches if self._stages > 1 else 1
        found = batches(len(self._samples), training.batch)
        return [portion(batch, pipelines, self._pipeline, parts) for batch in found]

    def _boundaries(self) -> tuple[Boundary | None, Boundary | None]:
        """Those with the stages before and after this one, where there are any."""
        team, own = self.team, self._network
        stretches = dict.fromkeys(part for one in self._portions for part in one.parts)
        before = after = None
        if self._stage > 0:
            before = Boundary(team, team.rank - 1, own.given, stretches)
        if self._stage < self._stages - 1:
            after = Boundary(team, team.rank + 1, own.gives, stretches)
        return before, after

    def distribute(self) -> None:
        """Begin anew, from parameters that each rank generated for itself."""
        with self.team.computing:
            self._parameters[...] = self._initial

    def solve(self) -> None:
        seconds = self.team.phases.seconds
        waited, began = seconds[Phase.WAIT], perf_counter()
        self._losses, self._ends = [], []
        for epoch in range(1, self.problem.epochs + 1):
            with phase(f"epoch {epoch}"):
                loss = sum(map(self._train, self._portions))
            self._losses.append(loss / len(self._samples))
            self._ends.append(perf_counter() - began)
        self._waited = seconds[Phase.WAIT] - waited

    def _train(self, own: Portion) -> float:
        """One step; the sum of the losses of this pipeline's samples, where they are known."""
        loss = self._learn(own)
        with phase("optimizer"), self.team.computing:
            self._descend(own)
        return loss

    def _learn(self, own: Portion) -> float:
        """This stage's gradients of a batch; the sum of the losses, where they are known."""
        computing = self.team.computing
        samples, labels = (data[slice(*own.own)] for data in (self._samples, self._labels))
        passed = [(part, *self._forward(part, samples)) for part in own.parts]
        loss = 0.0
        for part, scores, kept in reversed(passed):
            add = part != own.parts[-1]
            loss += self._backward(part, scores, kept, labels, add)
        if not passed:
            with computing:
                self._gradients.data[...] = 0
        if self._sum_up is not None:
            self._sum_up()
        return loss

    def _descend(self, own: Portion) -> None:
        self._parameters -= self.problem.learning_rate / own.size * self._summed.data

    def _forward(self, part: Stretch, samples: Any) -> tuple[Any, list[Any]]:
        """Take a micro-batch through this stage: the scores of the last one, and what is kept."""
        values = samples[slice(*part)] if self._before is None else self._before.take(part)
        with phase("forward"), self.team.computing:
            values, kept = self._network.forward(values)
        if self._after is None:
            return values, kept
        self._after.give(part, values)
        return None, kept

    def _backward(
        self, part: Stretch, scores: Any, kept: list[Any], labels: Any, add: bool
    ) -> float:
        """Take its gradient back through this stage; the sum of its losses after the last one."""
        computing, loss = self.team.computing, 0.0
        if self._after is None:
            with computing:
                xp = self.team.xp
                found, gradient = softmax_cross_entropy(xp, scores, labels[slice(*part)])
                loss = float(found)
        else:
            gradient = self._after.take(part)
        onward = self._before is not None
        with phase("backward"):
            gradient = self._network.backward(
                kept, gradient, computing=computing, add=add, onward=onward
            )
        if self._before is not None:
            self._before.give(part, gradient)
        return loss

    def result(self) -> dict[str, Any] | None:
        """``losses``, of each epoch the mean one of a sample.

        ``different`` are the ranks whose parameters are not those of their stage's first rank to
        the last bit. ``gradients`` is how far those of a step are from one process's
        (`gradients_difference`).
        """
        own = self.team.on_host(self._parameters).tobytes()
        found = self.team.comm.gather((self._losses, own), root=0)
        with unrecorded():
            gradients = self._compare_steps()
        if found is None:
            return None
        losses = sum_in_pipeline([losses for losses, _ in found])
        kept = [of_rank for _, of_rank in found]
        different = [rank for rank, own in enumerate(kept) if own != kept[rank % self._stages]]
        return {"losses": losses, "different": different, "gradients": gradients}

    def _compare_steps(self) -> float:
        """Of all steps made once more, ``gradients`` of the result, on rank 0."""
        team = self.team

        def whole(own: Any) -> Any:
            """The tensors of all stages, on rank 0."""
            found = team.comm.gather(views(team.on_host(own), self._network.shapes), root=0)
            return found and [one for of_stage in found[: self._stages] for one in of_stage]

        def learn(step: int) -> Any:
            self._learn(self._portions[step])
            return whole(self._summed.data)

        self.distribute()
        return gradients_difference(
            team,
            self.problem,
            lambda: whole(self._parameters),
            learn,
            lambda step: self._descend(self._portions[step]),
        )

    def parts(self) -> list[Detail]:
        """Epochs, losses, the bubble and the sizes of the stages; collective.

        The bubble measured is all that counts as waiting: receiving (`Boundary`), and for other
        pipelines before gradients are summed up.
        """
        found = self.team.comm.allgather((self._ends, self._losses, self._waited))
        waited = sum(waited / ends[-1] for ends, _, waited in found) / len(found)
        parts = max(1, len(self._portions[0].parts))
        expected = Detail(
            "Bubble expected",
            value=100 * bubble(self._stages, parts),
            unit=f"% = (S-1)/(M+S-1), S={self._stages}, M={parts} (Huang et al. 2019)",
        )
        sizes = enumerate(self._sizes)
        return [
            *epochs(slowest([ends for ends, *_ in found]), len(self._samples)),
            *learning(sum_in_pipeline([losses for _, losses, _ in found])),
            Detail("Bubble measured", value=100 * waited, unit="% of a rank's time waiting, mean"),
            expected,
            *(Detail(f"Stage {stage}", value=size, unit="parameters") for stage, size in sizes),
        ]


def sum_in_pipeline(losses: Sequence[Sequence[float]]) -> list[float]:
    """The epochs' losses from those of all ranks, which are 0 where the loss is not known."""
    return [sum(of_ranks) for of_ranks in zip(*losses, strict=True)]


def bubble(stages: int, parts: int) -> float:
    """The share of time in which a stage has nothing to do, where all take as long (S stages, M
    micro-batches: Huang et al. 2019)."""
    return (stages - 1) / (parts + stages - 1)


def depth(training: Training, ranks: int) -> int:
    """The stages of each pipeline; a rank alone has a single one."""
    if ranks == 1:
        return 1
    return training.stages if training.strategy == "hybrid" else ranks


def check(training: Training, ranks: int) -> None:
    """Raise `UsageError` for what no pipeline can do on so many ranks."""
    defaults = {one.name: one.default for one in fields(Training)}
    for name in OF_EXCHANGES:
        if getattr(training, name) != defaults[name]:
            said = name.replace("_", "-")
            raise UsageError(f"a pipeline has no --{said}: leave it out, or use --strategy data")
    stages = depth(training, ranks)
    if ranks % stages:
        raise UsageError(
            f"pipelines of {stages} stages do not fit {ranks} ranks: start a multiple of {stages} "
            "ranks, or choose other --stages"
        )

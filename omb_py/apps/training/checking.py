"""Whether ranks compute what one process computes from the same numbers, up to rounding.

Training amplifies rounding: sums in another order round otherwise, and where a unit of ReLU or the
maximum of a pool is near another one, a step magnifies that. So one epoch is trained again, and
every operation of it is compared with the same operation in double precision, of the numbers that
it really had: layers forward and backward, gradients of parameters, averages over the ranks, and
the change of the parameters. Each may differ by what its own rounding can be. What passes from one
stage to the next must be the same to the last bit, and the ranks' samples must be each sample of a
batch, once. Together these show that the ranks' steps are those of one process.

The bounds: a sum of n products, in whatever order, is off by at most n u / (1 - n u) times the sum
of their absolute values, where u is the unit of rounding (Higham: Accuracy and Stability of
Numerical Algorithms, 2002, section 3.1).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from math import prod
from typing import Any

from omb_py.apps.runtime.team import Team, alone
from omb_py.apps.training import Training
from omb_py.apps.training.architectures import network, sample_shape
from omb_py.apps.training.data import BatchShare, load
from omb_py.apps.training.kernel import TrainingKernel
from omb_py.apps.training.layers import Layer, Skip
from omb_py.apps.training.networks import Network, Stack, nobody
from omb_py.apps.training.passes import Pass
from omb_py.apps.training.stages import ComputedStage, ReplayedStage, Stage

SINGLE = 2.0**-24
UNIT = {"none": SINGLE, "fp16": 2.0**-11}
"""The rounding of one operation in the precision in which gradients travel, by --compression."""

SMALLEST = {"none": 2.0**-149, "fp16": 2.0**-24}
"""The spacing of numbers near 0."""

NORMAL = 2.0**-126
"""The smallest number with all digits of single precision; below it, libraries may round to 0."""

MAX_HALF = 2.0**-4
"""How far averages in half precision may be off, however many steps round them anew."""

ELEMENTARY = 8
"""Units of rounding by which an exponential may be off: 4 units in the last place, which NumPy and
CUDA promise."""


@contextmanager
def unrecorded() -> Iterator[None]:
    """Around calls of all ranks that profiles leave out, since they belong to no training."""
    from mpi4py import MPI

    MPI.Pcontrol(0)
    try:
        yield
    finally:
        MPI.Pcontrol(1)


class CheckedTraining(TrainingKernel):
    """Training whose result is what was found out about it, on rank 0."""

    def result(self) -> Any:
        if isinstance(self.stage, ReplayedStage):
            return check_replayed(self, self.stage)
        return check_computed(self, self.stage, self.sum_of_losses())


def check_replayed(kernel: TrainingKernel, stage: ReplayedStage) -> dict[str, Any]:
    """``difference`` of averages and first weights from what is expected, the maximum of all ranks,
    and its ``limit``, None where nothing is averaged; ``lost`` are ranks at which something else
    arrived than the stages beside them sent. Collective.
    """
    parts = next((one.parts for one in reversed(kernel.shares) if one.parts), ())
    arrived = (rows for one in kernel.boundaries() for part in parts for rows in one.arrived(part))
    fine = kernel.team.comm.allgather(all(map(stage.arrived, arrived)))
    lost = [rank for rank, well in enumerate(fine) if not well]
    difference, ranks = stage.difference(), kernel.replicas.ranks
    limit: float | None = 0.0
    if kernel.problem.compression == "fp16":
        steps = kernel.problem.epochs * len(kernel.shares)
        limit = min(gamma((ranks + 3) * steps, UNIT["fp16"]), MAX_HALF)
    return {"difference": difference, "limit": limit if ranks > 1 else None, "lost": lost}


def check_computed(
    kernel: TrainingKernel, stage: Stage, losses: list[float]
) -> dict[str, Any] | None:
    """``losses`` are of each epoch the mean one of a sample.

    ``different`` are the ranks whose parameters are not those of their stage's first rank to the
    last bit. ``worst`` is the error of the worst operation, as a part of its limit, and where it
    was. ``difference`` is how far the gradients of the first step are from one process's, of the
    maximum one of a tensor. On rank 0; collective.
    """
    team = kernel.team
    assert isinstance(stage, ComputedStage)
    own = [team.on_host(one.data) for one in stage.arrays]
    everyone = team.comm.gather(b"".join(one.tobytes() for one in own), root=0)
    with unrecorded():
        check = Check(kernel, stage)
        worst, difference = check.all_steps()
    if everyone is None:
        return None
    different = [
        rank for rank, other in enumerate(everyone) if other != everyone[rank % kernel.depth]
    ]
    return {"losses": losses, "different": different, "worst": worst, "difference": difference}


@dataclass
class Worst:
    """The operation whose error is the largest part of its limit; more than 1 is wrong."""

    part: float = 0.0
    where: str = "nothing"

    def note(self, found: Any, expected: Any, limit: Any, where: str) -> None:
        """An operation gave ``found`` instead of ``expected``."""
        import numpy as np

        if not np.size(expected):
            return
        error = np.abs(np.asarray(found, float) - expected)
        with np.errstate(divide="ignore", invalid="ignore"):
            parts = np.where(error == 0, 0.0, error / limit)
        part = float(parts.max())
        if not part <= self.part:
            self.part, self.where = part, where


def gamma(terms: int, unit: float = SINGLE) -> float:
    """The error of a sum of so many products, as a part of the sum of their absolute values."""
    return terms * unit / (1 - terms * unit) if terms * unit < 1 else float("inf")


@dataclass
class LayerCheck:
    """What the check of one layer needs to know until a step is over.

    ``expected`` and ``absolute`` are the gradients of its parameters and the sums of the absolute
    values of what they are sums of.
    """

    kept: dict[int, Any] = field(default_factory=dict)
    absolute_kept: dict[int, Any] = field(default_factory=dict)
    expected: list[Any] = field(default_factory=list)
    absolute: list[Any] = field(default_factory=list)
    terms: int = 0


class Operations:
    """Compares what a network's layers give with what they should, while it computes."""

    def __init__(self, team: Team, net: Network, worst: Worst) -> None:
        self._team = team
        self._network = net
        self._worst = worst
        self.part = 0
        self.where = ""
        self._layers: list[LayerCheck] = []
        self._double: list[list[Any]] = []
        self.sent: dict[tuple[str, int], bytes] = {}
        self.taken: dict[tuple[str, int], bytes] = {}

    def begin(self) -> None:
        """A step begins: parameters are those of now."""
        self._layers = [LayerCheck() for _ in self._network.layers]
        self._double = [
            [self._host(one) for one in self._network.parameters_of(number)]
            for number in range(len(self._network.layers))
        ]
        self.sent.clear()
        self.taken.clear()

    def forward(self, number: int, before: Stack, after: Stack) -> None:
        """A layer was given and gave these."""
        import numpy as np

        name, layer = self._network.layers[number]
        where = f"{name}, forward, {self.where}"
        if number == 0:
            self.taken["forward", self.part] = self._digest(before)
        if number == len(self._network.layers) - 1:
            self.sent["forward", self.part] = self._digest(after)
        if isinstance(layer, Skip):
            self._skip(layer is Skip.JOIN, before, after, where)
            return
        values, parameters = self._host(before[-1]), self._double[number]
        expected, kept = layer.forward(np, parameters, values)
        sizes = [np.abs(one) for one in parameters]
        absolute, absolute_kept = layer.forward(np, sizes, np.abs(values))
        self._layers[number].kept[self.part] = kept
        self._layers[number].absolute_kept[self.part] = absolute_kept
        limit = _limit(layer.terms[0], absolute)
        self._worst.note(self._host(after[-1]), expected, limit, where)

    def backward(self, number: int, given: Stack, found: Stack | None) -> None:
        """A layer had the gradients of what it gave, and gave those of what it was given."""
        import numpy as np

        name, layer = self._network.layers[number]
        where = f"{name}, backward, {self.where}"
        if number == len(self._network.layers) - 1:
            self.taken["backward", self.part] = self._digest(given)
        if number == 0 and found is not None:
            self.sent["backward", self.part] = self._digest(found)
        if isinstance(layer, Skip):
            if found is not None:
                self._skip(layer is Skip.FORK, given, found, where)
            return
        check, parameters = self._layers[number], self._double[number]
        kept = check.kept.pop(self.part)
        absolute_kept = check.absolute_kept.pop(self.part)
        gradient = self._host(given[-1])
        if parameters:
            self._learn(layer, check, kept, absolute_kept, gradient)
        if found is None:
            return
        expected = layer.backward(np, parameters, kept, gradient)
        sizes = [np.abs(one) for one in parameters]
        absolute = layer.backward(np, sizes, kept, np.abs(gradient))
        limit = _limit(layer.terms[1], absolute)
        self._worst.note(self._host(found[-1]), expected, limit, where)

    def loss(self, scores: Any, labels: Any, gradient: Any) -> None:
        """The last stage's outcome and its gradient.

        A difference of scores rounds once; an exponential magnifies that by its absolute value.
        """
        import numpy as np

        scores, labels = self._host(scores), self._team.on_host(labels)
        less = scores - scores.max(axis=1, keepdims=True, initial=-np.inf)
        likely = np.exp(less)
        likely /= likely.sum(axis=1, keepdims=True)
        mean = (likely * np.abs(less)).sum(axis=1, keepdims=True)
        rounding = gamma(scores.shape[1] + 2 * ELEMENTARY + 2) + 2 * SINGLE * (np.abs(less) + mean)
        expected = likely.copy()
        expected[np.arange(len(labels)), labels] -= 1
        limit = likely * rounding + SINGLE * np.abs(expected) + NORMAL
        self._worst.note(self._host(gradient), expected, limit, f"loss, {self.where}")

    def gradients(self, found: list[Any]) -> None:
        """The gradients of parameters, of all micro-batches."""
        for number, tensors in enumerate(self._network.tensors):
            check = self._layers[number]
            if not check.terms:
                continue
            for place, tensor in enumerate(tensors):
                limit = _limit(check.terms, check.absolute[place])
                where = f"{self._network.shapes[tensor][0]}, gradient, {self.where}"
                self._worst.note(found[tensor], check.expected[place], limit, where)

    def _learn(
        self, layer: Layer, check: LayerCheck, kept: Any, absolute_kept: Any, gradient: Any
    ) -> None:
        import numpy as np

        first = not check.expected
        if first:
            shapes = list(layer.parameters.values())
            check.expected, check.absolute = (
                [np.zeros(shape) for shape in shapes] for _ in range(2)
            )
        layer.learn(np, check.expected, kept, gradient, not first)
        layer.learn(np, check.absolute, absolute_kept, np.abs(gradient), not first)
        check.terms += len(gradient) * prod(layer.gives[:-1]) + 1

    def _skip(self, adds: bool, before: Stack, after: Stack, where: str) -> None:
        if not adds:
            return
        one, other = self._host(before[-2]), self._host(before[-1])
        limit = _limit(1, abs(one) + abs(other))
        self._worst.note(self._host(after[-1]), one + other, limit, where)

    def _host(self, values: Any) -> Any:
        """Values in double precision."""
        return self._team.on_host(values).astype(float)

    def _digest(self, stack: Stack) -> bytes:
        found = blake2b()
        for values in stack:
            found.update(self._team.on_host(values).tobytes())
        return found.digest()


def _limit(terms: int, absolute: Any) -> Any:
    return gamma(terms) * absolute + terms * NORMAL


class Check:
    """One epoch trained again, and every operation of it compared."""

    def __init__(self, kernel: TrainingKernel, stage: ComputedStage) -> None:
        self._kernel = kernel
        self._stage = stage
        self._team = kernel.team
        self._worst = Worst()
        self._operations = Operations(kernel.team, stage.network, self._worst)

    def all_steps(self) -> tuple[Worst, float]:
        """The worst operation of all ranks, and how far the first step's gradients are from one
        process's; on rank 0. Collective."""
        kernel, difference = self._kernel, 0.0
        self._inputs()
        kernel.distribute()
        for step, own in enumerate(kernel.shares):
            self._coverage(own, step)
            before = self._arrays([one.data for one in self._stage.arrays])
            found = self._own_gradients(own, step)
            if step == 0:
                difference = self._from_one_process(before, found)
            averages = self._averages(own, found, step)
            kernel.descend(own)
            self._change(own, before, averages, step)
        everyone = self._team.comm.gather((self._worst.part, self._worst.where), root=0)
        if everyone is None:
            return self._worst, difference
        ranked = [(part, f"{where}, rank {rank}") for rank, (part, where) in enumerate(everyone)]
        return Worst(*max(ranked, key=lambda one: (one[0] != one[0], one[0]))), difference

    def _wrong(self, where: str) -> None:
        """Something that must be the same is not."""
        self._worst.note(1.0, 0.0, 0.0, where)

    def _inputs(self) -> None:
        """All ranks have the same samples, as generated for this problem."""
        training = self._kernel.problem
        expected = load(training, sample_shape(training))
        for own, loaded in (
            (self._kernel.samples.images, expected.images),
            (self._kernel.samples.labels, expected.labels),
        ):
            if (self._team.on_host(own) != loaded).any():
                self._wrong("samples")

    def _coverage(self, own: BatchShare, step: int) -> None:
        """Each sample of the batch is in one micro-batch of one pipeline."""
        parts = [(own.own[0] + start, own.own[0] + stop) for start, stop in own.parts]
        everyone = self._team.comm.allgather((own.size, parts))
        first_stages = everyone[:: self._kernel.depth]
        covered = sorted(
            number for _, of_one in first_stages for part in of_one for number in range(*part)
        )
        same = all(
            one == everyone[rank // self._kernel.depth * self._kernel.depth]
            for rank, one in enumerate(everyone)
        )
        start = step * self._kernel.problem.batch
        if not same or covered != list(range(start, start + own.size)):
            self._wrong(f"the samples of step {step + 1}")

    def _own_gradients(self, own: BatchShare, step: int) -> list[Any]:
        """This rank's gradients, each operation compared."""
        kernel, net, operations = self._kernel, self._stage.network, self._operations
        operations.begin()

        def noted(one: Pass) -> None:
            operations.part = one.part
            operations.where = f"step {step + 1}, micro-batch {one.part + 1}"

        net.observe, net.observe_back = operations.forward, operations.backward
        self._stage.observe_loss = operations.loss
        try:
            kernel.learn(own, nobody, noted)
        finally:
            net.observe = net.observe_back = self._stage.observe_loss = None
        found = self._arrays([one.data for one in self._stage.gradients])
        operations.gradients(found)
        self._passed(step)
        return found

    def _passed(self, step: int) -> None:
        """What stages took is what those beside them sent, to the last bit."""
        kernel, operations = self._kernel, self._operations
        everyone = self._team.comm.allgather((operations.sent, operations.taken))
        for way, beside, there in (
            ("forward", -1, kernel.position > 0),
            ("backward", 1, kernel.position < kernel.depth - 1),
        ):
            if not there:
                continue
            sent = everyone[self._team.rank + beside][0]
            taken = {key: own for key, own in operations.taken.items() if key[0] == way}
            if taken != {key: own for key, own in sent.items() if key[0] == way}:
                self._wrong(f"what came {way} in step {step + 1}")

    def _averages(self, own: BatchShare, found: list[Any], step: int) -> list[Any]:
        """The averages of the replicas' gradients, compared with what they should be."""
        kernel, replicas = self._kernel, self._kernel.replicas
        kernel.stage.begin(step)
        kernel.learn(own, kernel.exchange.ready)
        kernel.exchange.finish()
        averages = self._arrays([one.data for one in self._stage.gradients])
        for number, (mine, average) in enumerate(zip(found, averages, strict=True)):
            _, error = sum_over_ranks(
                replicas, self._kernel.problem, mine, average * replicas.ranks, everywhere=True
            )
            where = f"{self._stage.names[number]}, average, step {step + 1}"
            self._worst.note(error, 0.0, 1.0, where)
        return averages

    def _change(self, own: BatchShare, before: list[Any], averages: list[Any], step: int) -> None:
        """Parameters are those before less the rate times the averages: a product and a difference,
        whose rate is rounded as well."""
        import numpy as np

        kernel = self._kernel
        rate = kernel.problem.learning_rate * kernel.pipelines / own.size
        after = self._arrays([one.data for one in self._stage.arrays])
        for name, old, average, new in zip(self._stage.names, before, averages, after, strict=True):
            expected = old - rate * average
            limit = gamma(3) * (np.abs(old) + rate * np.abs(average)) + NORMAL
            self._worst.note(new, expected, limit, f"{name}, changed by step {step + 1}")

    def _from_one_process(self, parameters: list[Any], found: list[Any]) -> float:
        """How far the summed gradients of the first step are from those that one process computes
        with NumPy, of the maximum one of a tensor; on rank 0."""
        import numpy as np

        kernel, team = self._kernel, self._team
        sums = [sum_over_ranks(kernel.replicas, kernel.problem, one, one)[0] for one in found]
        stages = team.comm.gather((parameters, sums), root=0)

        def compare() -> float:
            assert stages is not None
            own = stages[: kernel.depth]
            first = [one.astype(np.float32) for parameters, _ in own for one in parameters]
            net = network(kernel.problem, np)
            expected = [np.empty(shape, np.float32) for _, shape in net.shapes]
            net.bind(first, expected)
            count = min(kernel.problem.batch, kernel.problem.samples)
            images, labels = (
                team.on_host(one)[:count] for one in (kernel.samples.images, kernel.samples.labels)
            )
            net.loss_and_gradients(images, labels)
            found = [one for _, sums in own for one in sums]
            return max(relative_difference(*pair) for pair in zip(found, expected, strict=True))

        return alone(compare, team.comm) or 0.0

    def _arrays(self, arrays: list[Any]) -> list[Any]:
        """Copies in double precision, on the host."""
        return [self._team.on_host(one).astype(float) for one in arrays]


def relative_difference(found: Any, expected: Any) -> float:
    """The maximum difference of two numbers, of the maximum number expected."""
    import numpy as np

    difference = float(np.abs(found.reshape(expected.shape) - expected).max())
    largest = float(np.abs(expected).max())
    return difference / largest if largest else difference and np.inf


def sum_over_ranks(
    team: Team, training: Training, own: Any, found: Any, everywhere: bool = False
) -> tuple[Any, float]:
    """The sums of the ranks' ``own`` numbers, and how far off ``found`` is; collective.

    In whatever order n numbers are added, the result is off by at most (n - 1) units of rounding
    times the sum of their absolute values (Higham: Accuracy and Stability of Numerical Algorithms,
    2002, section 4.2); converting, dividing and multiplying round once more each. Given is the
    worst error of a number, as a part of that limit. On rank 0, or ``everywhere``.
    """
    import numpy as np

    exact, absolute = np.zeros((2, *own.shape))
    for values, sums in ((own.astype(float), exact), (np.abs(own).astype(float), absolute)):
        if everywhere:
            team.comm.Allreduce(values, sums)
        else:
            team.comm.Reduce(values, sums)
    if team.rank and not everywhere:
        return exact, 0.0
    kind = training.compression
    limit = (team.ranks + 3) * (UNIT[kind] * absolute + team.ranks * SMALLEST[kind])
    return exact, float((np.abs(found - exact) / limit).max())

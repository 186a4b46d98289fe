"""A step of ``omb-py train`` on many ranks: computing, and gradients averaged beside it.

Every rank holds the whole network (``--strategy data``). What its layers compute, and which
gradients travel together, is what `omb_py.apps.training` says of the same options.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import TypeAlias

from omb_py.apps import Application
from omb_py.apps.runtime.rows import describe
from omb_py.apps.training import MILLISECOND, SMALL_MODELS, TRANSFORMERS, Training, exchange
from omb_py.apps.training.architectures import network, tensors_of
from omb_py.apps.training.costs import FORWARD, Cost, by_work, from_file, measured
from omb_py.apps.training.fusion import plan_of
from omb_py.core.errors import UsageError
from omb_py.core.options import LIBRARY, Options
from omb_py.core.text.tables import Sheet
from omb_py.core.text.units import digits, value_text
from omb_py.results.application import ApplicationRow
from omb_py.simulation.checking import SIMULATED
from omb_py.simulation.collectives import by_textbook
from omb_py.simulation.engine import Outcome, Run
from omb_py.simulation.points import Point
from omb_py.simulation.program import Background, Compute, Operation, Program, Wait

WEAK = "weak"
MICRO = 1e6


Layers: TypeAlias = Sequence[tuple[Cost, Sequence[int]]]
"""The cost of each layer for a sample, and the elements of its gradients."""


def layers_of(training: Training) -> Layers:
    """The layers of a training's network; of transformers each parameter stands for one.

    Raises `UsageError` for a training that cannot be simulated.
    """
    check(training)
    if training.model in TRANSFORMERS:
        elements = [one.elements for one in tensors_of(training)]
        unit = training.sample_time * MILLISECOND / sum(elements)
        return [
            (Cost(FORWARD * unit * number, (1 - FORWARD) * unit * number), [number])
            for number in elements
        ]
    made = network(training, None)
    sizes = [one.elements for one in tensors_of(training)]
    if training.layer_times == "work":
        costs = by_work(made, training.sample_time * MILLISECOND)
    elif training.layer_times == "measured":
        costs = measured(made)
    else:
        costs = from_file(made, training.layer_times)
    return [
        (cost, [sizes[tensor] for tensor in tensors])
        for cost, tensors in zip(costs, made.tensors, strict=True)
    ]


@dataclass(frozen=True)
class Step:
    """One step of a training on so many ranks, with weak or strong scaling.

    ``layers`` are as `layers_of` has them: measured ones would differ from process to process.
    """

    training: Training
    scaling: str
    ranks: int
    layers: Layers

    @property
    def samples(self) -> int:
        """Samples of a rank: those of the batch with weak scaling, else its share of them."""
        batch = self.training.batch
        return batch if self.scaling == WEAK else ceil(batch / self.ranks)

    @property
    def all_samples(self) -> int:
        """Samples of all ranks."""
        return self.training.batch * (self.ranks if self.scaling == WEAK else 1)

    @property
    def compute_s(self) -> float:
        """How long a rank computes."""
        return self.samples * sum(cost.whole for cost, _ in self.layers)

    @property
    def one_rank_s(self) -> float:
        """How long one rank would compute for its problem: that of all with strong scaling."""
        return replace(self, ranks=1).compute_s

    @property
    def efficiency_base(self) -> float:
        """What a step would take if messages took no time."""
        return self.one_rank_s if self.scaling == WEAK else self.one_rank_s / self.ranks

    def program(self) -> Program:
        """The operations of each rank; each bucket is averaged when its last gradient is there."""
        layers = self.layers
        width = exchange.datatype_of(self.training).itemsize
        arriving = [width * size for _, sizes in reversed(layers) for size in reversed(sizes)]
        plan = plan_of(self.training, arriving) if self.ranks > 1 else []
        programs = [self.average(sum(arriving[begin:end])) for begin, end in plan]
        ends = [end for _, end in plan]

        def operations(rank: int) -> Iterator[Operation]:
            yield Compute(self.samples * sum(cost.forward for cost, _ in layers), "forward")
            arrived = bucket = 0
            for cost, sizes in reversed(layers):
                if cost.backward:
                    yield Compute(self.samples * cost.backward, "backward")
                arrived += len(sizes)
                while self.training.overlap and bucket < len(ends) and ends[bucket] <= arrived:
                    yield Background(programs[bucket].operations(rank), bucket, "allreduce")
                    bucket += 1
            if self.training.overlap:
                if programs:
                    yield Wait(tuple(range(len(programs))))
                return
            for program in programs:
                yield from program.operations(rank)

        return Program(self.ranks, operations, f"train {self.training.model}")

    def average(self, nbytes: int) -> Program:
        """An allreduce of so many bytes, by the algorithm that the training names."""
        word = self.training.allreduce
        if word == LIBRARY:
            return by_textbook("allreduce", self.ranks, nbytes)
        options = Options(binding=SIMULATED, algorithm=word)
        return Point("allreduce", options, "MPICH", self.ranks, nbytes // 4 * 4).program()

    def simulate(self, run: Run) -> Outcome:
        """What comes of the step."""
        return run(self.program())


def check(training: Training) -> None:
    """Raise `UsageError` for options that cannot be simulated, or that exclude each other."""
    exchange.check(training)
    refused = {
        "--strategy": training.strategy != "data",
        "--negotiation": training.negotiation != "none",
        "--hierarchical": training.hierarchical,
        "--test": training.test != "none",
    }
    if name := next((name for name, given in refused.items() if given), None):
        raise UsageError(f"simulate train has no {name}: leave it out")
    if training.model in SMALL_MODELS and training.layer_times == "work":
        raise UsageError(
            f"nobody knows how long {training.model} computes: choose a model that is replayed, "
            "such as --model resnet50"
        )


@dataclass(frozen=True)
class Trained:
    """A simulated step: how long it took the slowest rank."""

    scenario: str
    step: Step
    seconds: float

    @property
    def efficiency(self) -> float:
        """What a step would take without messages, as a part of what it takes."""
        return self.step.efficiency_base / self.seconds

    def row(self, run: str, application: Application[Training]) -> ApplicationRow:
        """Its row, as of a measured run."""
        step = self.step
        known = {
            "run": run,
            "application": application.name,
            "ranks": step.ranks,
            "nodes": 1,
            "host_cores": 1,
            "buffer": "numpy",
            "binding": SIMULATED,
            "problem": describe(application, step.training),
            "scaling": step.scaling,
            "threads": 1,
            "cores": step.ranks,
            "blas": "",
            "repeats": 1,
            "time_s": self.seconds,
            "time_low_s": self.seconds,
            "time_high_s": self.seconds,
            "compute_s": step.compute_s,
            "communicate_s": self.seconds - step.compute_s,
            "one_rank_s": step.one_rank_s,
            **dict.fromkeys(
                ("speedup", "speedup_low", "speedup_high"), self.efficiency * step.ranks
            ),
            "efficiency": self.efficiency,
            "variant": self.scenario or None,
        }
        return ApplicationRow(**known)


def sheet(results: Sequence[Trained], remarks: Sequence[str]) -> Sheet:
    """A line for each number of ranks in each scenario."""
    several = any(one.scenario for one in results)
    columns = ("ranks", *(("network",) if several else ()))
    columns += ("samples each", "step", "computing", "not hidden", "samples/s", "efficiency")
    lines = []
    for one in results:
        step = one.step
        lines.append(
            (
                str(step.ranks),
                *((one.scenario,) if several else ()),
                str(step.samples),
                value_text(one.seconds * MICRO, "us"),
                value_text(step.compute_s * MICRO, "us"),
                value_text((one.seconds - step.compute_s) * MICRO, "us"),
                digits(step.all_samples / one.seconds),
                f"{one.efficiency:.1%}",
            )
        )
    first = results[0].step
    overlap = "with" if first.training.overlap else "without"
    title = f"train {first.training.model}, {first.scaling} scaling, {overlap} overlap, simulated"
    said = ("Efficiency: the step without messages, as a part of the step.", *remarks)
    return Sheet(title, columns, tuple(lines), said, 2 if several else 1)

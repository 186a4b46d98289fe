"""Training of neural networks: samples, layers or both divided over the ranks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

from omb_py.apps import Application, CheckedResult, Kernel, Sequential
from omb_py.apps.runtime.team import Team
from omb_py.apps.training import REAL_MODELS, REPLAYED_MODELS, Training
from omb_py.apps.training.data import batches, check_samples, load
from omb_py.apps.training.networks import network
from omb_py.core.errors import UsageError


@dataclass(frozen=True)
class OptionRule:
    """Options, when they mean something, and what they are for, in words."""

    options: tuple[str, ...]
    given: Callable[[Training], bool]
    what: str


OPTION_RULES = (
    OptionRule(
        ("compute", "sample_time"),
        lambda training: training.model in REPLAYED_MODELS,
        "models that are replayed",
    ),
    OptionRule(
        ("data", "hidden", "layers", "learning_rate", "seed", "broadcast"),
        lambda training: training.model in REAL_MODELS,
        f"models that learn, {' and '.join(REAL_MODELS)}",
    ),
    OptionRule(
        ("cycle_time",), lambda training: training.negotiation != "none", "--negotiation cached"
    ),
    OptionRule(
        ("ranks_per_node",),
        lambda training: training.hierarchical or training.allreduce == "hierarchical",
        "--hierarchical and --allreduce hierarchical",
    ),
    OptionRule(
        ("micro_batches",),
        lambda training: training.strategy != "data",
        "--strategy model and hybrid",
    ),
    OptionRule(("stages",), lambda training: training.strategy == "hybrid", "--strategy hybrid"),
)


def check(training: Training) -> None:
    """Raise `UsageError` for an option that was changed and means nothing."""
    defaults = {one.name: one.default for one in fields(training)}
    for meaning in OPTION_RULES:
        for name in () if meaning.given(training) else meaning.options:
            if getattr(training, name) != defaults[name]:
                option = name.replace("_", "-")
                raise UsageError(f"--{option} is for {meaning.what}: leave it out, or choose that")


def prepare(training: Training) -> Callable[[], dict[str, Any]]:
    """A function that trains from the beginning with NumPy, its samples loaded before.

    It returns ``losses``, the mean one of a sample for each epoch, and ``parameters``, the final
    ones as NumPy arrays in order of declaration.
    """
    import numpy as np

    samples, labels, classes = load(training)
    net = network(training, np, classes, samples.shape[1:])
    initial = net.initial(training.seed)

    def train() -> dict[str, Any]:
        parameters = [one.copy() for one in initial]
        net.bind(parameters, [np.empty_like(one) for one in initial])
        losses = []
        for _ in range(training.epochs):
            loss = 0.0
            for start, stop in batches(len(samples), training.batch):
                loss += net.loss_and_gradients(samples[start:stop], labels[start:stop])
                net.descend(training.learning_rate / (stop - start))
            losses.append(loss / len(samples))
        return {"losses": losses, "parameters": parameters}

    return train


ROUNDING = 2.0**-10
"""How far gradients may be from those of one process, of the maximum one.

They are sums of products in single precision, whose unit of rounding is 2**-24: that is the error
of a sum of 2**14 numbers, at most. Found are up to 4e-6 where a batch has 2 to 1024 samples.
"""

HALF_ROUNDING = 2.0**-8
"""How far replayed averages may be off in half precision; in single precision they are exact."""


def kernel(team: Team, training: Training) -> Kernel[Training]:
    """What trains in the way asked for; raises `UsageError` where that cannot be."""
    real = training.model in REAL_MODELS
    if training.strategy != "data" and not real:
        raise UsageError(
            f"{training.model} is replayed, whose layers are not computed: use --strategy "
            f"data, or --model {' or '.join(REAL_MODELS)}"
        )
    check(training)
    if training.strategy != "data":
        from omb_py.apps.training.pipeline import PipelinedTraining

        return PipelinedTraining(team, training)
    if not real:
        from omb_py.apps.training.replay import ReplayedTraining

        return ReplayedTraining(team, training)
    from omb_py.apps.training.data_parallel import DataParallelTraining

    return DataParallelTraining(team, training)


def sequential(training: Training) -> Sequential | None:
    """The reference: the network trained by NumPy in one process; None for a replayed one."""
    if training.model not in REAL_MODELS:
        return None
    return Sequential("NumPy", prepare(training))


def compare(training: Training, result: Any, reference: Any) -> CheckedResult:
    """Whether gradients were averaged rightly, or a network learns as in one process."""
    if training.model not in REAL_MODELS:
        return mean_part(training, result["difference"])
    return loss_part(result, reference)


def mean_part(training: Training, difference: float) -> CheckedResult:
    """Whether every rank had the averages that are known."""
    limit = HALF_ROUNDING if training.compression == "fp16" else 0.0
    text = f"averages differ from those expected by {difference:.2g} (limit {limit:.2g})"
    return CheckedResult(difference <= limit, text, difference)


def loss_part(result: Any, reference: Any) -> CheckedResult:
    """Whether the loss falls, parameters are the same on all ranks, and gradients are right."""
    difference, different = result["gradients"], result["different"]
    averages = result.get("averages", 0.0)
    first, last = result["losses"][0], result["losses"][-1]
    falls = last < first or len(result["losses"]) == 1
    said = [
        f"loss {'falls' if falls else 'DOES NOT fall'} from {first:.4g} to {last:.4g} "
        f"(NumPy's: {reference['losses'][-1]:.4g})",
        f"gradients differ from NumPy's of the same parameters by {difference:.2g} of the largest "
        f"(limit {ROUNDING:.2g})",
    ]
    if "averages" in result:
        said.append(f"averages are off by {averages:.2g} of what rounding allows (limit 1)")
    if different:
        said.append(f"rank {different[0]} has OTHER parameters than rank 0")
    right = difference <= ROUNDING and averages <= 1
    return CheckedResult(falls and right and not different, "; ".join(said), difference)


def weak_scaled(training: Training, ranks: int) -> Training:
    """As many samples for each rank, in an epoch and in a step.

    Raises `UsageError` where there are not so many.
    """
    found = training.samples * ranks
    check_samples(training, found)
    return replace(training, samples=training.samples * ranks, batch=training.batch * ranks)


def trained_samples(training: Training) -> int:
    """The samples of all epochs."""
    return training.samples * training.epochs


APPLICATION = Application(
    name="train",
    title="Training",
    summary="Training of a neural network, its gradients averaged as by Horovod or DDP.",
    problem=Training,
    kernel=kernel,
    metric=lambda training, seconds: trained_samples(training) / seconds,
    unit="samples/s",
    compare=compare,
    sequential=sequential,
    computes=lambda training: training.model in REAL_MODELS or training.sample_time > 0,
    weak_scaled=weak_scaled,
    details=(
        "mlp and cnn learn; the other models are replayed: gradients of their tensors' shapes "
        "travel, and computing takes --sample-time for each sample. Epochs after the first have "
        "a rate of their own."
    ),
)

"""Training of neural networks: samples, layers or both divided over the ranks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from omb_py.apps import Application, Check, Kernel, Sequential
from omb_py.errors import UsageError
from omb_py.measure.team import Team
from omb_py.training import REAL_MODELS, Training, meaning
from omb_py.training.data import DIGITS, used

ROUNDING = {"none": 1e-3, "fp16": 5e-2}
"""How far parameters may be from those of one process, of the greatest one, by --compression.

In other orders of summation each step rounds otherwise, and the steps after it go on from there.
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
    meaning.check(training)
    if training.strategy != "data":
        from omb_py.training.pipeline import PipelinedTraining

        return PipelinedTraining(team, training)
    if not real:
        from omb_py.training.replay import ReplayedTraining

        return ReplayedTraining(team, training)
    from omb_py.training.data_parallel import DataParallelTraining

    return DataParallelTraining(team, training)


def sequential(training: Training) -> Sequential | None:
    """The same network trained by NumPy in one process; nothing for one that is replayed."""
    if training.model not in REAL_MODELS:
        return None
    from omb_py.training.sequential import prepared

    return Sequential("NumPy", prepared(training))


def compare(training: Training, result: Any, reference: Any) -> Check:
    """Whether gradients were averaged rightly, or a network has learned as in one process."""
    if training.model not in REAL_MODELS:
        return averaged(training, result["difference"])
    return learned(training, result, reference)


def averaged(training: Training, difference: float) -> Check:
    """Whether every rank had the averages that are known."""
    limit = HALF_ROUNDING if training.compression == "fp16" else 0.0
    text = f"averages differ from those expected by {difference:.2g} (limit {limit:.2g})"
    return Check(difference <= limit, text, difference)


def learned(training: Training, result: Any, reference: Any) -> Check:
    """Whether the loss falls, and parameters are the same on all ranks and those of one process."""
    import numpy as np

    difference = max(
        float(np.abs(own - other).max() / np.abs(other).max())
        for own, other in zip(result["parameters"], reference["parameters"], strict=True)
    )
    limit = ROUNDING[training.compression]
    first, last = result["losses"][0], result["losses"][-1]
    falls = last < first or training.epochs == 1
    different = result.get("different", ())
    said = [
        f"loss {'falls' if falls else 'DOES NOT fall'} from {first:.4g} to {last:.4g}",
        f"parameters differ from NumPy's by {difference:.2g} of the greatest (limit {limit:.2g})",
    ]
    if different:
        said.append(f"rank {different[0]} has OTHER parameters than rank 0")
    return Check(falls and difference <= limit and not different, "; ".join(said), difference)


def grown(training: Training, ranks: int) -> Training:
    """As many samples for each rank, in an epoch and in a step.

    Raises `UsageError` where there are not so many.
    """
    found = training.samples * ranks
    if training.model in REAL_MODELS and training.data == "digits" and found > DIGITS:
        raise UsageError(
            f"there are {DIGITS} handwritten digits, not {found}: use --data generated, or fewer "
            "--samples"
        )
    return replace(training, samples=training.samples * ranks, batch=training.batch * ranks)


def trained_samples(training: Training) -> int:
    """The samples of all epochs."""
    samples = used(training) if training.model in REAL_MODELS else training.samples
    return samples * training.epochs


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
    grown=grown,
    details=(
        "mlp and cnn learn; the other models are replayed: gradients of their tensors' shapes "
        "travel, and computing takes --sample-time for each sample. Epochs after the first have "
        "a rate of their own."
    ),
)

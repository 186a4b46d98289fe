"""The messages of neural networks' training: samples, layers or both divided over the ranks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from omb_py.apps import Application, CheckedResult, Kernel, RunSettings
from omb_py.apps.runtime.team import Team
from omb_py.apps.training import RESIDUAL, TRANSFORMERS, Training
from omb_py.core.errors import UsageError


@dataclass(frozen=True)
class OptionRule:
    """Options, when they mean something, and what they are for, in words."""

    options: tuple[str, ...]
    given: Callable[[Training], bool]
    what: str


OPTION_RULES = (
    OptionRule(("layers",), lambda one: one.model in RESIDUAL, f"--model {' or '.join(RESIDUAL)}"),
    OptionRule(
        ("buckets", "fusion", "allreduce", "broadcast", "overlap", "negotiate"),
        lambda training: training.strategy != "model",
        "--strategy data and hybrid, which average gradients",
    ),
    OptionRule(
        ("ranks_per_node",),
        lambda training: training.allreduce == "hierarchical",
        "--allreduce hierarchical",
    ),
    OptionRule(
        ("micro_batches", "schedule"),
        lambda training: training.strategy != "data",
        "--strategy model and hybrid",
    ),
    OptionRule(("stages",), lambda training: training.strategy == "hybrid", "--strategy hybrid"),
)


def check(training: Training) -> None:
    """Raise `UsageError` for an option that was changed without an effect."""
    defaults = Training()
    for meaning in OPTION_RULES:
        for name in () if meaning.given(training) else meaning.options:
            if getattr(training, name) != getattr(defaults, name):
                option = name.replace("_", "-")
                raise UsageError(f"--{option} is for {meaning.what}: leave it out, or choose that")


def applies(training: Training, name: str) -> bool:
    """Return whether an option means something."""
    return all(rule.given(training) for rule in OPTION_RULES if name in rule.options)


def kernel(team: Team, training: Training) -> Kernel[Training]:
    """Return the kernel of a training; raise `UsageError` if the problem is impossible."""
    if training.model in TRANSFORMERS and training.strategy != "data":
        raise UsageError(
            f"of {training.model} only the parameters are known: leave out --strategy "
            f"{training.strategy}, or choose a model without attention, such as resnet50"
        )
    check(training)
    from omb_py.apps.training.kernel import TrainingKernel

    return TrainingKernel(team, training)


def compare(training: Training, result: Any, reference: Any) -> CheckedResult:
    """Check that every rank had the known averages, and the data that other stages sent."""
    difference, lost, limit = result["difference"], result["lost"], result["limit"]
    said = ["nothing is averaged"]
    if difference is not None:
        said = [f"averages differ from those expected by {difference:.2g} (limit {limit:.2g})"]
    if lost:
        said.append(f"rank {lost[0]} has OTHER values than the stages beside it sent")
    elif training.strategy != "data":
        said.append("stages received what was sent to them")
    right = difference is None or difference <= limit
    return CheckedResult(right and not lost, "; ".join(said), difference)


def settings(training: Training, given: RunSettings) -> RunSettings:
    """Return settings without references without computing, since there is no speed-up."""
    return replace(given, references=given.references and training.sample_time > 0)


def weak_scaled(training: Training, ranks: int) -> Training:
    """Return the problem with as many samples for each rank, in an epoch and in a step."""
    return replace(training, samples=training.samples * ranks, batch=training.batch * ranks)


APPLICATION = Application(
    name="train",
    title="Training",
    summary="What training by data, model or hybrid parallelism sends.",
    problem=Training,
    kernel=kernel,
    metric=lambda training, seconds: training.samples * training.epochs / seconds,
    unit="samples/s",
    compare=compare,
    settings=settings,
    split_wait=False,
    weak_scaled=weak_scaled,
    applies=applies,
    details=(
        "Gradients, first weights and activations have the shapes of the network's layers and are "
        "really sent; computing takes --sample-time for each sample. Epochs after the first have a "
        "rate of their own."
    ),
)

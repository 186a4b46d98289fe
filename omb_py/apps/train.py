"""Training of neural networks: samples, layers or both divided over the ranks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from math import isfinite
from typing import Any

from omb_py.apps import Alternative, Application, CheckedResult, Kernel, Sequential
from omb_py.apps.runtime.team import Team
from omb_py.apps.training import SMALL_MODELS, TRANSFORMERS, Training
from omb_py.apps.training.architectures import network, sample_shape
from omb_py.apps.training.data import batches, check_samples, load
from omb_py.core.errors import UsageError


@dataclass(frozen=True)
class OptionRule:
    """Options, when they mean something, and what they are for, in words."""

    options: tuple[str, ...]
    given: Callable[[Training], bool]
    what: str


LAYERED = ("mlp", "resnet")
"""Models with as many layers as the user wants."""

OPTION_RULES = (
    OptionRule(
        ("compute",),
        lambda training: training.model not in SMALL_MODELS,
        "models that can be replayed",
    ),
    OptionRule(
        ("image",),
        lambda training: training.model not in (*SMALL_MODELS, *TRANSFORMERS),
        "convolutional models that can be replayed",
    ),
    OptionRule(
        ("sample_time",),
        lambda training: not training.learns and training.layer_times == "work",
        "replayed models with --layer-times work",
    ),
    OptionRule(
        ("layer_times",),
        lambda training: not training.learns and training.model not in TRANSFORMERS,
        "replayed models whose layers are known",
    ),
    OptionRule(
        ("data",),
        lambda training: training.model in SMALL_MODELS,
        " and ".join(SMALL_MODELS),
    ),
    OptionRule(("hidden",), lambda training: training.model == "mlp", "--model mlp"),
    OptionRule(("layers",), lambda training: training.model in LAYERED, " and ".join(LAYERED)),
    OptionRule(("learning_rate",), lambda training: training.learns, "models that learn"),
    OptionRule(
        ("seed",),
        lambda training: training.learns,
        "models that learn",
    ),
    OptionRule(
        (
            "fusion",
            "buckets",
            "compression",
            "allreduce",
            "broadcast",
            "overlap",
            "hierarchical",
        ),
        lambda training: training.strategy != "model",
        "--strategy data and hybrid, which average gradients",
    ),
    OptionRule(
        ("test_samples",),
        lambda training: training.test != "none",
        "--test sequential and parallel",
    ),
    OptionRule(
        ("negotiation",),
        lambda training: training.strategy == "data",
        "--strategy data, since stages that wait for each other would miss its cycles",
    ),
    OptionRule(
        ("cycle_time",),
        lambda training: training.negotiation != "none",
        "--negotiation cached and uncached",
    ),
    OptionRule(
        ("ranks_per_node",),
        lambda training: training.hierarchical or training.allreduce == "hierarchical",
        "--hierarchical and --allreduce hierarchical",
    ),
    OptionRule(
        ("micro_batches", "schedule", "partition"),
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


def applies(training: Training, name: str) -> bool:
    """Whether an option means something."""
    return all(rule.given(training) for rule in OPTION_RULES if name in rule.options)


def data_parallel(training: Training) -> Alternative[Training] | None:
    """The same training with the whole network on every rank; None where it is that already."""
    if training.strategy == "data":
        return None
    whole = replace(training, strategy="data")
    defaults = {one.name: one.default for one in fields(training)}
    changed: dict[str, Any] = {
        name: defaults[name] for name in defaults if not applies(whole, name)
    }
    return Alternative("data-parallel", replace(whole, **changed))


def prepare(training: Training) -> Callable[[], dict[str, Any]]:
    """A function that trains from the beginning with NumPy, its samples loaded before.

    It tests after each epoch where the problem says so. It returns ``losses``, the mean one of a
    sample for each epoch, and ``parameters``, the final ones as NumPy arrays in order of
    declaration.
    """
    import numpy as np

    loaded = load(training, sample_shape(training))
    samples, labels = (one[: training.samples] for one in (loaded.images, loaded.labels))
    tests, answers = (one[training.samples :] for one in (loaded.images, loaded.labels))
    net = network(training, np)
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
            for start, stop in batches(len(tests), training.batch):
                (scores,), _ = net.forward((tests[start:stop],))
                (scores.argmax(axis=1) == answers[start:stop]).sum()
        return {"losses": losses, "parameters": parameters}

    return train


def kernel(team: Team, training: Training) -> Kernel[Training]:
    """What trains as the problem says; raises `UsageError` where that cannot be."""
    if training.model in TRANSFORMERS:
        refused = ""
        if training.strategy != "data":
            refused = f"--strategy {training.strategy}"
        elif training.learns:
            refused = "--compute real"
        if refused:
            raise UsageError(
                f"of {training.model} only the parameters are known: leave out {refused}, or "
                "choose a model without attention, such as resnet50"
            )
    check(training)
    from omb_py.apps.training.checking import CheckedTraining

    return CheckedTraining(team, training)


def sequential(training: Training) -> Sequential | None:
    """The reference: the network trained by NumPy in one process; None for a replayed one."""
    if not training.learns:
        return None
    return Sequential("NumPy", prepare(training))


def compare(training: Training, result: Any, reference: Any) -> CheckedResult:
    """Whether gradients were averaged rightly, or a network learns as in one process."""
    if training.learns:
        return learned_part(training, result, reference)
    return replayed_part(training, result)


def replayed_part(training: Training, result: Any) -> CheckedResult:
    """Whether every rank had the averages that are known, and what other stages sent."""
    difference, limit, lost = result["difference"], result["limit"], result["lost"]
    said = ["nothing is averaged"]
    if limit is not None:
        said = [f"averages differ from those expected by {difference:.2g} (limit {limit:.2g})"]
    if lost:
        said.append(f"rank {lost[0]} has OTHER values than the stages beside it sent")
    elif training.strategy != "data":
        said.append("stages received what was sent to them")
    right = limit is None or difference <= limit
    return CheckedResult(right and not lost, "; ".join(said), difference)


def learned_part(training: Training, result: Any, reference: Any) -> CheckedResult:
    """Whether every operation is right, parameters are the same on all ranks, and the loss falls.

    That of a small network must at the usual rate of learning; else it depends on the rate.
    """
    worst, different = result["worst"], result["different"]
    first, last = result["losses"][0], result["losses"][-1]
    of_numpy = reference["losses"][-1]
    if not isfinite(last) and not isfinite(of_numpy):
        text = f"the training diverges (loss {last:.4g}), in NumPy, too: lower --learning-rate"
        return CheckedResult(False, text, result["difference"])
    one = len(result["losses"]) == 1
    falls = last < first or one
    must_fall = training.model in SMALL_MODELS and training.learning_rate == Training.learning_rate
    change = "falls" if falls else "does not fall"
    loss = f"is {last:.4g}" if one else f"{change} from {first:.4g} to {last:.4g}"
    said = [
        f"loss {loss} (NumPy's: {of_numpy:.4g})",
        f"every operation is within {worst.part:.2g} of what rounding allows (limit 1; largest: "
        f"{worst.where})",
        f"gradients of the first step differ from one process's by {result['difference']:.2g} of "
        "the largest",
    ]
    if not worst.part <= 1:
        said[1] = f"{worst.where}: off by {worst.part:.3g} of what rounding allows (limit 1)"
    if different:
        said.append(f"rank {different[0]} has OTHER parameters than its stage's first rank")
    right = worst.part <= 1 and not different and (falls or not must_fall)
    return CheckedResult(right, "; ".join(said), result["difference"])


def weak_scaled(training: Training, ranks: int) -> Training:
    """As many samples for each rank, in an epoch and in a step.

    Raises `UsageError` where there are not so many.
    """
    grown = training
    if training.test != "none":
        grown = replace(training, test_samples=training.test_samples * ranks)
    check_samples(grown, grown.samples * ranks)
    return replace(grown, samples=training.samples * ranks, batch=training.batch * ranks)


def trained_samples(training: Training) -> int:
    """The samples of all epochs."""
    return training.samples * training.epochs


APPLICATION = Application(
    name="train",
    title="Training",
    summary="Training of a neural network by data, model or hybrid parallelism.",
    problem=Training,
    kernel=kernel,
    metric=lambda training, seconds: trained_samples(training) / seconds,
    unit="samples/s",
    compare=compare,
    sequential=sequential,
    computes=lambda training: training.learns or training.sample_time > 0,
    weak_scaled=weak_scaled,
    applies=applies,
    alternative=data_parallel,
    sequential_is_one_rank=lambda training: not training.learns,
    details=(
        "mlp and cnn learn; the other models are replayed: gradients and activations of their "
        "layers' shapes travel, and computing takes --sample-time for each sample, unless "
        "--compute real is given. Epochs after the first have a rate of their own."
    ),
)

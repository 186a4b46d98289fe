"""Options of a training that mean nothing beside others: they are refused, not ignored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

from omb_py.apps.training import REAL_MODELS, REPLAYED_MODELS, Training
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
        ("data", "hidden", "layers", "learning_rate", "seed"),
        lambda training: training.model in REAL_MODELS,
        f"models that learn, {' and '.join(REAL_MODELS)}",
    ),
    OptionRule(
        ("cycle_time",), lambda training: training.negotiation != "none", "--negotiation cached"
    ),
    OptionRule(("ranks_per_node",), lambda training: training.hierarchical, "--hierarchical"),
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

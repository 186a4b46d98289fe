"""Sweeps that measure what guidelines compare, in shuffled rounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from omb_py.analysis.guidelines.rules import Guideline, size_beside
from omb_py.sweeps.config import Experiment, Sweep

NAME = "guidelines"

TWO_RANKS = ("latency",)
"""Benchmarks that only a job of two ranks measures."""


def sizes_of(
    rules: Iterable[Guideline], sizes: Sequence[int], ranks: int
) -> dict[str, tuple[int, ...]]:
    """For each benchmark of guidelines the sizes to measure: those named, and what they need
    beside other benchmarks, up to the largest one."""
    found: dict[str, set[int]] = {}
    for rule in rules:
        if rule.left in TWO_RANKS and ranks != 2:
            continue
        found.setdefault(rule.left, set()).update(sizes)
        for name in rule.right:
            beside = {size_beside(rule.left, name, size, ranks) for size in sizes}
            found.setdefault(name, set()).update(size for size in beside if size <= max(sizes))
    return {name: tuple(sorted(sizes)) for name, sizes in found.items()}


def sweep(
    name: str,
    sizes: Mapping[str, tuple[int, ...]],
    ranks: int,
    rounds: int,
    common: Mapping[str, object],
    algorithms: Mapping[str, tuple[str, ...]] | None = None,
) -> Sweep:
    """A sweep of benchmarks at sizes, with the library's ``algorithms`` of each if there are any.

    ``common`` are further keys of all experiments.
    """
    experiments = [
        Experiment.model_validate(
            {
                "benchmarks": benchmark,
                "ranks": ranks,
                "sizes": list(wanted) or None,
                **({"coll_algorithms": algorithms[benchmark]} if algorithms else {}),
                **common,
            }
        )
        for benchmark, wanted in sizes.items()
    ]
    return Sweep(name=name, launches=rounds, experiments=tuple(experiments))

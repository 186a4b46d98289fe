"""In which order a stage of a pipeline takes micro-batches forward and backward.

GPipe takes all of them forward, then all of them backward, the last one first (Huang et al.: GPipe,
NeurIPS 2019). 1F1B takes one back as soon as it can, so that a stage keeps as many as there are
stages after it, and itself (Narayanan et al.: Efficient Large-Scale Language Model Training on GPU
Clusters, SC 2021, section 2.2.1). Parameters change when all are back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Pass:
    """A micro-batch goes through a stage, forward or backward."""

    forward: bool
    part: int


def gpipe(stages: int, stage: int, parts: int) -> list[Pass]:
    """All forward, then all backward."""
    return [
        *(Pass(True, part) for part in range(parts)),
        *(Pass(False, part) for part in reversed(range(parts))),
    ]


def one_forward_one_backward(stages: int, stage: int, parts: int) -> list[Pass]:
    """As many forward as there are stages behind this one, then by turns, then the rest back."""
    ahead = min(stages - stage - 1, parts)
    found = [Pass(True, part) for part in range(ahead)]
    for part in range(parts - ahead):
        found += [Pass(True, ahead + part), Pass(False, part)]
    return found + [Pass(False, part) for part in range(parts - ahead, parts)]


SCHEDULES: dict[str, Callable[[int, int, int], list[Pass]]] = {
    "gpipe": gpipe,
    "1f1b": one_forward_one_backward,
}
"""What ``--schedule`` names: the passes of a stage, for so many stages and micro-batches."""


def under_way(passes: Sequence[Pass]) -> int:
    """The most micro-batches that a stage keeps at a time: forward, but not back yet."""
    most = kept = 0
    for one in passes:
        kept += 1 if one.forward else -1
        most = max(most, kept)
    return most


def bubble(schedule: str, parts: int, seconds: Sequence[tuple[float, float]]) -> float:
    """The share of time in which a stage has nothing to do, of all stages' time.

    ``seconds`` are those of each stage for a micro-batch, forward and backward; sending takes none.
    Where all stages take as long, it is (S - 1) / (M + S - 1) for S stages and M micro-batches
    (Huang et al. 2019).
    """
    stages = len(seconds)
    waiting = [SCHEDULES[schedule](stages, stage, parts)[::-1] for stage in range(stages)]
    ends: dict[tuple[int, Pass], float] = {}
    free = [0.0] * stages
    while any(waiting):
        for stage, left in enumerate(waiting):
            while left and (start := _start(ends, stages, stage, left[-1])) is not None:
                one = left.pop()
                took = seconds[stage][0 if one.forward else 1]
                free[stage] = ends[stage, one] = max(free[stage], start) + took
    whole = stages * max(free)
    busy = parts * sum(map(sum, seconds))
    return 1 - busy / whole if whole else 0.0


def _start(ends: dict[tuple[int, Pass], float], stages: int, stage: int, one: Pass) -> float | None:
    """When what a pass needs is there; None where that is not known yet."""
    if one.forward:
        return ends.get((stage - 1, one)) if stage else 0.0
    if stage == stages - 1:
        return ends.get((stage, Pass(True, one.part)))
    return ends.get((stage + 1, one))
